"""Add small files of earlier clusterings to groups where that saves a file; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reconciler.arrays import Mask
from reconciler.planners.cluster.grouping import SliceGroups, concatenate_groups

if TYPE_CHECKING:
    from reconciler.planners.cluster.clustering_input import ClusteringInput


def add_small_files(need: ClusteringInput, groups: SliceGroups, is_able: Mask) -> SliceGroups:
    """Return the groups with small clustered files added where each one saves a file.

    A file is added only to a group at least as big as itself. So a row is rewritten a few times in
    its life, and not with every new file.
    """
    found = need.candidates
    able = np.flatnonzero(is_able)
    if not len(able) or not len(groups):
        return groups
    able = able[np.lexsort((able, found.bytes[able], found.partition[able]))]
    every = np.arange(len(need.triggers.fires) + 1)
    bounds = np.searchsorted(found.partition[able], every)
    starts, ends = bounds[:-1].copy(), bounds[1:]
    total, data = groups.sum_values(found.bytes), groups.sum_values(need.row_bytes)
    partition = found.partition[groups.first_members]
    joining: list[list[int]] = [[] for _ in range(len(groups))]
    for number in np.flatnonzero((starts < ends)[partition]).tolist():
        at, end = int(starts[partition[number]]), int(ends[partition[number]])
        while at < end and _has_room(need, int(able[at]), total[number], data[number]):
            joining[number].append(int(able[at]))
            total[number] += found.bytes[able[at]]
            data[number] += need.row_bytes[able[at]]
            at += 1
        starts[partition[number]] = at
    parts = [
        SliceGroups(members, np.array([0, len(members)], np.int64))
        for number, more in enumerate(joining)
        for members in [np.concatenate([groups[number], np.array(more, np.int64)])]
    ]
    return concatenate_groups(parts)


def _has_room(need: ClusteringInput, candidate: int, total: np.int64, data: np.int64) -> bool:
    size = need.candidates.bytes[candidate]
    if size > total or total + size > need.max_group_bytes:
        return False
    before, after = need.sizes.count_files(
        np.array([data, data + need.row_bytes[candidate]]), need.target
    ).tolist()
    return bool(after == before)
