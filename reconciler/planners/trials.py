"""Layouts of a whole table tried in miniature: what queries would read of each; pure.

The groups are those that a clustering of everything would rewrite: newest slices of a partition, of
at most ``perGroup`` bytes, each laid out by itself. Tried are the few of which queries read most;
of the others as much is saved of what they read today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from reconciler.curves.drawn import wanted_rows
from reconciler.planners.advice import Candidate, Reading, Trial
from reconciler.planners.drawn import Group
from reconciler.planners.grouping import Groups, next_fit
from reconciler.planners.miniature import Ask
from reconciler.planners.simulate import Expected, counted, error, expected, unsure_of_sizes
from reconciler.state.foresight import Foresight, ToSample
from reconciler.state.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.planners.candidates import Candidates
    from reconciler.planners.scans import Today
    from reconciler.sizing.estimate import RecordSize

#: groups that are tried at most
MOST_TRIED: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """A table that is to be laid out anew, in ``groups`` of its newest slices ``found``.

    ``now``: what the queries read of the slices today; ``rows``: int64 per file of the table, its
    records. ``sizes``: what rows take; ``target``: bytes of a file.
    """

    found: Candidates
    now: Today
    groups: Groups
    rows: NDArray[np.int64]
    sizes: RecordSize
    target: int

    @classmethod
    def of(
        cls,
        found: Candidates,
        now: Today,
        *,
        rows: NDArray[np.int64],
        sizes: RecordSize,
        target: int,
        per_group: int,
    ) -> Self:
        """All slices in their order, in groups of at most so many bytes."""
        groups = next_fit(np.arange(len(found)), found.partition, found.bytes, per_group)
        return cls(found=found, now=now, groups=groups, rows=rows, sizes=sizes, target=target)

    @property
    def outputs(self) -> NDArray[np.int64]:
        """Files that each group becomes."""
        return self.sizes.files_for(self.groups.sums(self._data), self.target)

    @property
    def bytes(self) -> int:
        """Of all files then."""
        return int(self._data.sum() + self.outputs.sum() * self.sizes.fixed)

    @property
    def _data(self) -> NDArray[np.int64]:
        return self.sizes.data_of(self.found.base, self.found.logs)

    def read_today(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Files and bytes that queries read of the groups, queries by groups."""
        kept, bytes_ = self.now.reads.kept, self.found.bytes
        files = [self.groups.sums(mask.astype(np.int64)) for mask in kept]
        sizes = [self.groups.sums(np.where(mask, bytes_, 0)) for mask in kept]
        return np.stack(files), np.stack(sizes)

    @property
    def tried(self) -> NDArray[np.int64]:
        """The groups that are tried, ascending: those with base files that queries read most of."""
        has_base = self.groups.sums(self.found.has_base.astype(np.int64)) > 0
        read = np.where(has_base, self.read_today()[1].sum(axis=0), -1)
        most = np.argsort(-read, kind="stable")[:MOST_TRIED]
        found: NDArray[np.int64] = np.sort(most[has_base[most]])
        return found

    def group(self, number: int) -> Group:
        """A group as it is rewritten in miniature."""
        slices, found = self.groups[number], self.found
        based = slices[found.has_base[slices]]
        return Group(
            members=found.base_row[based],
            sizes=found.base[based],
            rows=int(self.rows[found.base_row[based]].sum()),
            data=int(self._data[slices].sum()),
            outputs=int(self.outputs[number]),
            partition=int(found.partition[slices[0]]),
            is_whole=bool((found.logs[slices] == 0).all()) and len(based) == len(slices),
        )

    def to_sample(self, most: int) -> tuple[ToSample, ...]:
        """What to read of the groups that are tried, for layouts fitted to ``most`` rows in all."""
        groups = [self.group(number) for number in self.tried.tolist()]
        each = max(most // max(len(groups), 1), 1)
        return tuple(_to_sample(group, each) for group in groups)


def _to_sample(group: Group, rows: int) -> ToSample:
    total = float(group.sizes.sum()) or 1.0
    wanted = [wanted_rows(rows, size, total) for size in group.sizes.tolist()]
    return ToSample(files=group.members, fitted=np.array(wanted, np.int64))


def trial(whole: Whole, foresight: Foresight, candidate: Candidate) -> Trial | None:
    """What the queries would read of the table laid out so; None where no row of it is known."""
    ask = Ask(
        queries=tuple(query.where for query in whole.now.queries),
        foresight=foresight,
        layout=Layout(columns=candidate.columns, curve=candidate.curve, mapping=candidate.mapping),
        sizes=whole.sizes,
        target=whole.target,
    )
    numbers = whole.tried.tolist()
    groups = [whole.group(number) for number in numbers]
    counts = [counted(ask, group) for group in groups]
    known = [nth for nth, found in enumerate(counts) if found is not None]
    told = expected(
        [found for found in counts if found is not None],
        [_limit(whole, groups[nth]) for nth in known],
    )
    if not told:
        return None
    both = _grown(whole, told, np.array([numbers[nth] for nth in known], np.int64))
    none = np.zeros(len(ask.queries))
    reads = zip(both.files.tolist(), both.bytes.tolist(), strict=True)
    return Trial(
        candidate=candidate,
        reads=tuple(Reading(files=round(files), bytes=round(size)) for files, size in reads),
        errors=tuple(error(both, none, none, unsure_of_sizes(ask)).round(3).tolist()),
        total=whole.bytes,
    )


def _limit(whole: Whole, group: Group) -> tuple[int, float]:
    """Files that a group becomes, and their bytes."""
    return group.outputs, float(group.data + group.outputs * whole.sizes.fixed)


def _grown(whole: Whole, told: list[Expected], groups: NDArray[np.int64]) -> Expected:
    """What is read of all groups: of those that were not tried, the same share of today."""
    files_now, bytes_now = whole.read_today()
    files = sum(one.files for one in told)
    sizes = sum(one.bytes for one in told)
    by_files = _factor(np.asarray(files), files_now, groups)
    by_bytes = _factor(np.asarray(sizes), bytes_now, groups)
    return Expected(
        files=files + by_files * _others(files_now, groups),
        bytes=sizes + by_bytes * _others(bytes_now, groups),
        of_files=np.asarray(sum(one.of_files for one in told)),
        of_bytes=np.asarray(sum(one.of_bytes for one in told)),
    )


def _factor(
    then: NDArray[np.float64], now: NDArray[np.int64], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Per query what is read then of what is read now; of one that reads nothing, as of all."""
    before = now[:, groups].sum(axis=1).astype(np.float64)
    every = then.sum() / before.sum() if before.sum() else 1.0
    found: NDArray[np.float64] = np.where(before > 0, then / np.maximum(before, 1.0), every)
    return found


def _others(now: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = now.sum(axis=1) - now[:, groups].sum(axis=1)
    return found
