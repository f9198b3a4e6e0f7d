"""Simulate the next insert for ``--simulate-insert``: what new rows will do to a table's files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.assign import BucketAssignment, assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    MergeOnRead,
    SmallFiles,
    TableKind,
)
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass

#: greatest number of equal inserts that are simulated one after the other
_MAX_INSERTS: Final = 5_000
_COUNTS: Final = ("rows", "filled", "filled_rows", "rewritten", "new", "small")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextInsert:
    """The rows of the next insert; ``partition`` None: spread like those of the last writes."""

    rows: int
    partition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """The bytes of the smallest and of the largest of some files."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertForecast:
    """The effect of new ``rows`` on a partition; ``partition`` None: on several together.

    ``filled``: small files that take some of the rows. ``filled_rows``: the rows that they take.
    ``rewritten``: bytes of those files, 0 if rows are appended as log files. ``new``: new files for
    the remaining rows. ``filled_sizes``, ``new_sizes``: sizes afterwards, None without such files.
    ``small``: number of all these files that are small afterwards. ``merged``: files among the
    filled ones whose old rows join another one; None if there are none. ``written``: bytes of all
    these files afterwards, or of the log files that take the rows.
    """

    partition: str | None = field(default=None, metadata={"optional": True})
    rows: int
    filled: int
    filled_rows: int
    filled_sizes: SizeRange | None = field(metadata={"name": "filledTo"})
    rewritten: int
    new: int
    new_sizes: SizeRange | None = field(metadata={"name": "newOf"})
    small: int
    merged: int | None = field(default=None, metadata={"optional": True})
    written: int | None = field(default=None, metadata={"optional": True})


def sum_by_partition(recent: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Sum the new rows of the last writes by partition, without partitions of zero.

    >>> sum_by_partition([{"p=1": 10, "p=2": 0}, {"p=1": 5, "p=3": 5}])
    {'p=1': 15, 'p=3': 5}
    """
    total: Counter[str] = Counter()
    for rows in recent:
        total.update(rows)
    return {partition: total[partition] for partition in sorted(total) if total[partition] > 0}


def apportion_rows(rows: int, shares: Mapping[str, int]) -> dict[str, int]:
    """Divide rows among partitions in proportion to ``shares``, by largest remainders.

    Of equal remainders the first partition gets the row. Empty without shares.

    >>> apportion_rows(10, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 3, 'c': 3}
    """
    weight = sum(shares.values())
    if weight <= 0:
        return {}
    whole = {partition: rows * share // weight for partition, share in shares.items()}
    rest = sorted(shares, key=lambda partition: (-(rows * shares[partition] % weight), partition))
    for partition in rest[: rows - sum(whole.values())]:
        whole[partition] += 1
    return whole


def simulate_inserts(
    groups: FileGroupSizes,
    rows: Mapping[str, int],
    kind: TableKind,
    rule: AssignmentRule,
    *,
    has_commits: bool = True,
) -> tuple[InsertForecast, ...]:
    """Return what the writer will do with new rows, for each partition in order.

    ``has_commits``: True if the table has a completed write.
    """
    workload = make_insert_workload(dict(rows))
    assigned = assign_rows(groups, workload, kind, rule, has_commits=has_commits)
    appends = isinstance(kind, MergeOnRead) and kind.indexes_logs
    return tuple(
        _forecast_partition(partition, assigned, assigned.partition == code, rule, appends=appends)
        for code, partition in enumerate(workload.partitions)
    )


def estimate_amplification(rule: AssignmentRule, rows: int, *, appends: bool = False) -> float:
    """Return the bytes written per byte of new rows, if equal inserts go on in one partition.

    Of so many inserts that two files are filled, in a partition without files before, but of a few
    thousand at most. ``appends``: rows are appended as log files, which are written once.
    """
    record, target = rule.record_size, rule.sizes.target
    if appends or rows <= 0:
        return 1.0
    batch = rows * record.per_row
    inserts = min(max(math.ceil(2 * target / batch), 1), _MAX_INSERTS)
    size, written = np.zeros(0, np.int64), 0
    for _ in range(inserts):
        size = np.sort(size)
        filled = rule.fill(_make_small_files(size, record.fixed), rows)
        new = rule.split(rows - int(filled.takes.sum()))
        data = np.maximum(size - record.fixed, 0)
        moves = np.flatnonzero(filled.moves_to >= 0)
        gained = np.rint(filled.takes * record.per_row).astype(np.int64)
        np.add.at(gained, filled.moves_to[moves], data[moves])
        gained[moves] -= data[moves]
        size, is_written = size + gained, (filled.takes > 0) | (filled.moves_to >= 0)
        is_written[filled.moves_to[moves]] = True
        made = record.fixed + np.rint(new * record.per_row).astype(np.int64)
        written += int(size[is_written].sum() + made.sum())
        size = np.concatenate([size, made])
        size = size[size < rule.sizes.small]
    return round(written / (inserts * batch), 2)


def _make_small_files(size: Integers, fixed: int) -> SmallFiles:
    none = np.zeros(len(size), np.bool_)
    return SmallFiles(
        size=size,
        growth=np.zeros_like(size),
        rewritten=np.maximum(size - fixed, 0),
        is_updated=none,
        is_free=none,
    )


def combine_forecasts(forecasts: Sequence[InsertForecast]) -> InsertForecast:
    """Combine the forecasts of several partitions into one."""
    return InsertForecast(
        filled_sizes=_combine_ranges([forecast.filled_sizes for forecast in forecasts]),
        new_sizes=_combine_ranges([forecast.new_sizes for forecast in forecasts]),
        merged=sum(forecast.merged or 0 for forecast in forecasts) or None,
        written=sum(forecast.written or 0 for forecast in forecasts),
        **{name: sum(getattr(forecast, name) for forecast in forecasts) for name in _COUNTS},
    )


def _combine_ranges(ranges: Sequence[SizeRange | None]) -> SizeRange | None:
    ends = [end for span in ranges if span is not None for end in (span.least, span.most)]
    return _size_range(np.array(ends, np.int64))


def _forecast_partition(
    partition: str, assigned: BucketAssignment, place: Mask, rule: AssignmentRule, *, appends: bool
) -> InsertForecast:
    is_new, inserts = assigned.is_new[place], assigned.inserts[place]
    expected = assigned.expected_size[place]
    return InsertForecast(
        partition=partition,
        rows=int(inserts.sum()),
        filled=int(np.count_nonzero(~is_new)),
        filled_rows=int(inserts[~is_new].sum()),
        filled_sizes=_size_range(expected[~is_new]),
        rewritten=0 if appends else int(assigned.size[place].sum()),
        new=int(np.count_nonzero(is_new)),
        new_sizes=_size_range(expected[is_new]),
        small=int(np.count_nonzero(expected < rule.sizes.small)),
        merged=sum(bool(place[source]) for source, _into in assigned.list_moves()) or None,
        written=round(int(inserts.sum()) * rule.record_size.per_row)
        if appends
        else int(expected.sum()),
    )


def _size_range(sizes: Integers) -> SizeRange | None:
    return SizeRange(least=int(sizes.min()), most=int(sizes.max())) if len(sizes) else None
