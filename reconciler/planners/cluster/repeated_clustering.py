"""What was laid out as declared, at different times, and overlaps by now; pure.

Files of one clustering overlap as much as its curve lets them, and would again. Those of several
clusterings overlap each other besides: that is what a rewrite of both can take away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler.arrays import sort_unique
from reconciler.planners.cluster.grouping import SliceGroups, pack_next_fit
from reconciler.planners.cluster.overlap import FileBoxes, find_worthwhile_groups
from reconciler.planners.cluster.predicted_overlap import estimate_curve_overlap, predict_overlap
from reconciler.planners.cluster.slice_order import sort_slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.planners.cluster.group_choice import ClusteringInput

#: what is laid out as declared is rewritten only for so much less overlap
_LEAST_GAIN: Final = 0.1
#: files may overlap by so much more than is predicted of them
_PREDICTION_ERROR: Final = 1.25


def group_overlapping_clusterings(need: ClusteringInput, settled: NDArray[np.int64]) -> SliceGroups:
    """Groups of files that were laid out as declared, at different times, and overlap by now."""
    found = need.candidates
    nothing = SliceGroups(np.zeros(0, np.int64), np.zeros(1, np.int64))
    if not len(settled) or need.ranges is None:
        return nothing
    nowhere = np.zeros(len(need.triggers.fires), np.bool_)
    order = sort_slices(need, settled, nowhere)
    groups = pack_next_fit(order, found.partition, found.bytes, need.max_group_bytes)
    groups = groups.take(
        np.flatnonzero((_count_instants(need, groups) > 1) & need.passes.needs_pass(groups))
    )
    bases = np.flatnonzero(found.has_base)
    of = found.partition[groups.first_members]
    covering = _curve_overlap(need, need.count_outputs(groups))
    is_worth = np.zeros(len(groups), np.bool_)
    every = np.arange(len(need.triggers.fires) + 1)
    of_bases = np.searchsorted(found.partition[bases], every).tolist()
    of_groups = np.searchsorted(of, every).tolist()
    for partition in sort_unique(of).tolist():
        start, end = of_bases[partition : partition + 2]
        first, last = of_groups[partition : partition + 2]
        some = groups.take(np.arange(first, last))
        places = np.searchsorted(bases[start:end], some.members)
        for boxes in FileBoxes.on_scales(need.ranges, found.base_row[bases[None, start:end]]):
            is_worth[first:last] |= find_worthwhile_groups(
                boxes, places, some.starts[:-1], _LEAST_GAIN, covering[first:last]
            )
    return groups.take(np.flatnonzero(is_worth))


def find_slices_to_combine(
    need: ClusteringInput, new: NDArray[np.bool_], settled: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Per slice, whether it was laid out as declared and is to be so again, with what is new.

    That is where both, laid out each by itself, would overlap too much again: the next plan would
    find it so. ``new``, ``settled``: the slices that triggers ask for.
    """
    found, above = need.candidates, need.clustering.when.overlap_above
    chosen = np.zeros(len(found), np.bool_)
    if need.ranges is None or above is None:
        return chosen
    both = np.zeros(len(need.triggers.fires), np.bool_)
    both[found.partition[settled]] = True
    some = np.zeros_like(both)
    some[found.partition[new]] = True
    with np.errstate(invalid="ignore"):
        both &= some & (need.triggers.overlap > above)
    bases = np.flatnonzero(found.has_base)
    ends = np.searchsorted(found.partition[bases], np.arange(len(both) + 1))
    for partition in np.flatnonzero(both).tolist():
        here = bases[ends[partition] : ends[partition + 1]]
        if _is_better_together(need, here, new[here], settled[here], above):
            chosen[here] = settled[here]
    return chosen


def _is_better_together(
    need: ClusteringInput,
    here: NDArray[np.int64],
    new: NDArray[np.bool_],
    settled: NDArray[np.bool_],
    above: float,
) -> bool:
    """Of one partition, whose base files are ``here``: too much overlap apart, less together."""
    assert need.ranges is not None, "something is known of its files"
    anew = SliceGroups(here[settled], np.array([0, int(settled.sum())], np.int64))
    is_anew = bool(_count_instants(need, anew)[0] > 1)
    apart = np.where(new, 0, np.where(settled & is_anew, 1, -1))
    together = np.where(new | settled, 0, -1)
    counts = [_count_files(need, here[part]) for part in (new, settled, new | settled)]
    one, other, all_ = _curve_overlap(need, np.array(counts, np.int64)).tolist()
    before = after = 0.0
    for boxes in FileBoxes.on_scales(need.ranges, need.candidates.base_row[here][None]):
        before = max(before, predict_overlap(boxes, apart, np.array([one, other])))
        after = max(after, predict_overlap(boxes, together, np.array([all_])))
    return before * _PREDICTION_ERROR > above and after <= (1 - _LEAST_GAIN) * before


def _count_files(need: ClusteringInput, slices: NDArray[np.int64]) -> int:
    """How many files come of slices that are laid out together."""
    group = SliceGroups(slices, np.array([0, len(slices)], np.int64))
    return int(need.count_outputs(group)[0])


def _count_instants(need: ClusteringInput, groups: SliceGroups) -> NDArray[np.int64]:
    """Per group by how many writes its base files were made."""
    files = need.candidates.view.files
    written = files.instant[need.candidates.base_row[groups.members]]
    ends = zip(groups.starts[:-1].tolist(), groups.starts[1:].tolist(), strict=True)
    return np.array([len(sort_unique(written[start:end])) for start, end in ends], np.int64)


def _curve_overlap(need: ClusteringInput, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per group how many of its new files cover a row that it covers."""
    asked = need.clustering
    found = [
        estimate_curve_overlap(asked.curve, len(asked.columns), files) for files in outputs.tolist()
    ]
    return np.array(found, np.float64)
