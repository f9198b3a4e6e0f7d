"""The groups that are worth rewriting: small files together, and what overlaps; pure.

Hudi takes whatever is small, again and again. Here a partition has to need it, files that an
earlier clustering laid out as declared stay out of it, and only what is new makes a group: so what
is left over once is left over again, and a second run finds nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.hudi.arrow import unique
from reconciler.planners.candidates import Candidates
from reconciler.planners.grouping import Groups, joined, next_fit, settle
from reconciler.planners.overlap import Boxes, Ranges, locality, worth
from reconciler.planners.standing import Standing
from reconciler.planners.triggers import Triggers
from reconciler.sizing.estimate import RecordSize
from reconciler.spec.model import Clustering

#: what is laid out as declared is rewritten only for so much less overlap
_LEAST_GAIN: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Need:
    """What is asked for, and of which slices. ``target``: bytes of a file.

    ``is_settled``: per slice, an earlier clustering laid its base file out as declared, and its log
    files don't say much else. ``data``: int64 per slice, bytes of rows it brings into new files.
    """

    clustering: Clustering
    target: int
    found: Candidates
    triggers: Triggers
    is_settled: NDArray[np.bool_]
    data: NDArray[np.int64]
    sizes: RecordSize
    ranges: Ranges | None

    @property
    def most(self) -> int:
        """The most bytes of a group of several slices."""
        budget = self.clustering.budget
        return min(budget.per_group, budget.rewrite or budget.per_group)

    def outputs(self, groups: Groups) -> NDArray[np.int64]:
        return self.sizes.files_for(groups.sums(self.data), self.target)


def by_benefit(need: Need, standing: Standing) -> Groups:
    """Groups in the order in which they gain most for their bytes.

    The slices of no group are decided about in ``standing``; those of a group stay open.
    """
    _leave_out(need, standing)
    found, is_open = need.found, standing.is_open
    new = np.flatnonzero(is_open & ~need.is_settled)
    taken, left = settle(
        _in_order(need, new),
        lambda order: next_fit(order, found.partition, found.bytes, need.most),
        lambda groups: _is_worth(need, groups),
        found.partition,
    )
    _say_left(need, standing, left)
    settled = is_open & need.is_settled
    groups = _with_companions(need, joined(taken), settled & need.triggers.is_small)
    settled[groups.members] = False
    again = _overlapping(need, np.flatnonzero(settled & need.triggers.is_wide))
    settled[again.members] = False
    files = found.view.files
    instant = files.instant[found.base_row] if len(files) else found.base_row
    standing.decide(
        "clustered",
        settled,
        instant,
        lambda code: f"clustering {files.instants[code]} laid it out as declared",
    )
    groups = joined([groups, again])
    mean = groups.sums(found.bytes) / np.maximum(groups.sizes, 1)
    first = np.argsort(groups.first, kind="stable")
    return groups.take(first[np.argsort(mean[first], kind="stable")])


def _leave_out(need: Need, standing: Standing) -> None:
    found, triggers = need.found, need.triggers
    standing.decide(
        "logs",
        ~found.has_base,
        0,
        lambda _: "it is log files alone: a compaction gives it a base file",
    )
    fires = triggers.fires[found.partition]
    standing.decide("when", ~fires, found.partition, triggers.says)
    limit = units.format_size(triggers.limit)
    measured = ~np.isnan(triggers.overlap[found.partition])
    share = " and few files cover its rows" if measured.any() else ""
    standing.decide(
        "large",
        ~(triggers.is_small | triggers.is_wide),
        measured,
        lambda is_measured: (
            f"its base file is not below files.small ({limit})" + (share if is_measured else "")
        ),
    )


def _in_order(need: Need, slices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slices by partition; within it near ones together where it overlaps, else the biggest first.

    Equal ones in the order of their file groups.
    """
    found = need.found
    near = np.zeros(len(slices), np.uint64)
    if need.ranges is not None and len(slices):
        overlap = need.triggers.overlap[found.partition[slices]]
        is_near = overlap > (need.clustering.when.overlap_above or np.inf)
        if need.triggers.scans is not None:
            is_near |= need.triggers.scans.fires[found.partition[slices]]
        here = np.flatnonzero(is_near)
        of = found.partition[slices[here]]
        near[here] = locality(need.ranges, found.base_row[slices[here]], of)
    return slices[np.lexsort((slices, -found.bytes[slices], near, found.partition[slices]))]


def _is_worth(need: Need, groups: Groups) -> NDArray[np.bool_]:
    """Fewer files come out, or several that are laid out anew; a lone small one if it may."""
    outputs = need.outputs(groups)
    if not need.clustering.columns:
        return outputs < groups.sizes
    worth: NDArray[np.bool_] = (groups.sizes > 1) | (outputs > 1)
    if need.clustering.single_file:
        worth |= need.triggers.is_small[groups.first]
    return worth


def _say_left(need: Need, standing: Standing, left: NDArray[np.int64]) -> None:
    if not need.clustering.columns:
        no_gain = "packing it with others of its partition would make no fewer files"
    else:
        no_gain = "by itself it would cover as many rows as before"
        standing.decide(
            "singleFile",
            left[need.triggers.is_small[left]],
            0,
            lambda _: "nothing else of its partition is rewritten with it (clustering.singleFile)",
        )
    standing.decide("noGain", left, 0, lambda _: no_gain)


def _with_companions(need: Need, groups: Groups, is_able: NDArray[np.bool_]) -> Groups:
    """The groups, joined by small files of earlier clusterings that make one file less each.

    A file joins what is at least as big as itself: so a row is rewritten a few times in its life,
    and not with every file that comes after it.
    """
    found = need.found
    able = np.flatnonzero(is_able)
    if not len(able) or not len(groups):
        return groups
    able = able[np.lexsort((able, found.bytes[able], found.partition[able]))]
    every = np.arange(len(need.triggers.fires) + 1)
    bounds = np.searchsorted(found.partition[able], every)
    starts, ends = bounds[:-1].copy(), bounds[1:]
    total, data = groups.sums(found.bytes), groups.sums(need.data)
    partition = found.partition[groups.first]
    joining: list[list[int]] = [[] for _ in range(len(groups))]
    for number in np.flatnonzero((starts < ends)[partition]).tolist():
        at, end = int(starts[partition[number]]), int(ends[partition[number]])
        while at < end and _fits(need, int(able[at]), total[number], data[number]):
            joining[number].append(int(able[at]))
            total[number] += found.bytes[able[at]]
            data[number] += need.data[able[at]]
            at += 1
        starts[partition[number]] = at
    parts = [
        Groups(members, np.array([0, len(members)], np.int64))
        for number, more in enumerate(joining)
        for members in [np.concatenate([groups[number], np.array(more, np.int64)])]
    ]
    return joined(parts)


def _fits(need: Need, candidate: int, total: np.int64, data: np.int64) -> bool:
    size = need.found.bytes[candidate]
    if size > total or total + size > need.most:
        return False
    before, after = need.sizes.files_for(
        np.array([data, data + need.data[candidate]]), need.target
    ).tolist()
    return bool(after == before)


def _overlapping(need: Need, settled: NDArray[np.int64]) -> Groups:
    """Groups of files that were laid out as declared, at different times, and overlap by now."""
    found = need.found
    nothing = Groups(np.zeros(0, np.int64), np.zeros(1, np.int64))
    if not len(settled):
        return nothing
    groups = next_fit(_in_order(need, settled), found.partition, found.bytes, need.most)
    bases = np.flatnonzero(found.has_base)
    of = found.partition[groups.first]
    is_worth = np.zeros(len(groups), np.bool_)
    scans = need.triggers.scans
    if scans is not None:
        is_worth |= scans.again[of]
    every = np.arange(len(need.triggers.fires) + 1)
    of_bases = np.searchsorted(found.partition[bases], every).tolist()
    of_groups = np.searchsorted(of, every).tolist()
    if need.ranges is None:
        return groups.take(np.flatnonzero(is_worth))
    for partition in unique(of[groups.sizes > 1]).tolist():
        start, end = of_bases[partition : partition + 2]
        first, last = of_groups[partition : partition + 2]
        some = groups.take(np.arange(first, last))
        places = np.searchsorted(bases[start:end], some.members)
        for boxes in Boxes.on_scales(need.ranges, found.base_row[bases[None, start:end]]):
            is_worth[first:last] |= worth(boxes, places, some.starts[:-1], _LEAST_GAIN)
    return groups.take(np.flatnonzero(is_worth))
