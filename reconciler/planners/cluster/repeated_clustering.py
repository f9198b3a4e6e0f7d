"""Find clustered files of different clusterings that overlap and should be combined; pure.

The overlap of files of one clustering comes from its curve, so a rewrite would not reduce it. Files
of several clusterings also overlap each other, which a rewrite of both removes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Floats, Integers, Mask, sort_unique
from reconciler.planners.cluster.clustering_input import ClusteringInput
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.overlap import (
    FileBoxes,
    estimate_curve_overlap,
    find_worthwhile_groups,
    predict_overlap,
)

#: least reduction of overlap for which clustered files are rewritten
_MIN_GAIN: Final = 0.1
#: factor by which overlap may exceed the prediction
_PREDICTION_ERROR: Final = 1.25


def group_overlapping_clusterings(need: ClusteringInput, settled: Integers) -> SliceGroups:
    """Return groups of clustered files from different clusterings that overlap too much."""
    candidates = need.candidates
    nothing = SliceGroups(np.zeros(0, np.int64), np.zeros(1, np.int64))
    if not len(settled) or need.ranges is None:
        return nothing
    nowhere = np.zeros(len(need.triggers.fires), np.bool_)
    groups = need.pack(need.sort_slices(settled, nowhere))
    groups = groups.filter((_count_instants(need, groups) > 1) & need.passes.needs_pass(groups))
    partitions = candidates.partition[groups.first_members]
    covering = _curve_overlap(need, need.count_outputs(groups))
    is_worth = np.zeros(len(groups), np.bool_)
    for partition in sort_unique(partitions).tolist():
        first, last = np.searchsorted(partitions, [partition, partition + 1]).tolist()
        some, bases = groups.take(np.arange(first, last)), candidates.bases_of(partition)
        places = np.searchsorted(bases, some.members)
        for boxes in FileBoxes.on_scales(need.ranges, candidates.base_row[bases][None]):
            is_worth[first:last] |= find_worthwhile_groups(
                boxes, places, some.starts[:-1], _MIN_GAIN, covering[first:last]
            )
    return groups.filter(is_worth)


def find_slices_to_combine(need: ClusteringInput, new: Mask, settled: Mask) -> Mask:
    """Return per slice whether it is clustered and should be rewritten together with new slices.

    That is so if both, rewritten separately, would still overlap too much, which the next plan
    would find. ``new``, ``settled``: slices that triggers select.
    """
    candidates, above = need.candidates, need.clustering.when.overlap_above
    chosen = np.zeros(len(candidates), np.bool_)
    if need.ranges is None or above is None:
        return chosen
    both = np.zeros(len(need.triggers.fires), np.bool_)
    both[candidates.partition[settled]] = True
    some = np.zeros_like(both)
    some[candidates.partition[new]] = True
    with np.errstate(invalid="ignore"):
        both &= some & (need.triggers.overlap > above)
    for partition in np.flatnonzero(both).tolist():
        bases = candidates.bases_of(partition)
        if _is_better_together(need, bases, new[bases], settled[bases], above):
            chosen[bases] = settled[bases]
    return chosen


def _is_better_together(
    need: ClusteringInput,
    bases: Integers,
    new: Mask,
    settled: Mask,
    above: float,
) -> bool:
    """Return whether rewriting new and settled slices together is better than apart.

    ``bases``: the base files of one partition.
    """
    assert need.ranges is not None, "statistics of its files are known"
    anew = SliceGroups(bases[settled], np.array([0, int(settled.sum())], np.int64))
    is_anew = bool(_count_instants(need, anew)[0] > 1)
    apart = np.where(new, 0, np.where(settled & is_anew, 1, -1))
    together = np.where(new | settled, 0, -1)
    counts = [_count_files(need, bases[part]) for part in (new, settled, new | settled)]
    one, other, all_ = _curve_overlap(need, np.array(counts, np.int64)).tolist()
    before = after = 0.0
    for boxes in FileBoxes.on_scales(need.ranges, need.candidates.base_row[bases][None]):
        before = max(before, predict_overlap(boxes, apart, np.array([one, other])))
        after = max(after, predict_overlap(boxes, together, np.array([all_])))
    return before * _PREDICTION_ERROR > above and after <= (1 - _MIN_GAIN) * before


def _count_files(need: ClusteringInput, slices: Integers) -> int:
    """Return how many files the slices become when they are rewritten together."""
    group = SliceGroups(slices, np.array([0, len(slices)], np.int64))
    return int(need.count_outputs(group)[0])


def _count_instants(need: ClusteringInput, groups: SliceGroups) -> Integers:
    """Return per group how many instants wrote its base files."""
    files = need.candidates.view.files
    written = files.instant[need.candidates.base_row[groups.members]]
    ends = zip(groups.starts[:-1].tolist(), groups.starts[1:].tolist(), strict=True)
    return np.array([len(sort_unique(written[start:end])) for start, end in ends], np.int64)


def _curve_overlap(need: ClusteringInput, outputs: Integers) -> Floats:
    """Return per group how many of its new files cover a row that the group covers."""
    clustering = need.clustering
    overlaps = [
        estimate_curve_overlap(clustering.curve, len(clustering.columns), files)
        for files in outputs.tolist()
    ]
    return np.array(overlaps, np.float64)
