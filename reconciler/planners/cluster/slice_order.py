"""Sort slices for grouping, with slices of near values together where that matters; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.planners.cluster.overlap import z_order_keys

if TYPE_CHECKING:
    from reconciler.planners.cluster.clustering_input import ClusteringInput


def sort_slices(need: ClusteringInput, slices: Integers, is_near: Mask) -> Integers:
    """Sort slices by partition; within it by nearness if it overlaps, else the biggest first.

    ``is_near``: partitions to sort by nearness in any case. Ties keep the order of file groups.
    """
    found = need.candidates
    near = np.zeros(len(slices), np.uint64)
    if need.ranges is not None and len(slices):
        of = found.partition[slices]
        overlap = need.triggers.overlap[of]
        wanted = (overlap > (need.clustering.when.overlap_above or np.inf)) | is_near[of]
        here = np.flatnonzero(wanted)
        near[here] = z_order_keys(need.ranges, found.base_row[slices[here]], of[here])
    return slices[np.lexsort((slices, -found.bytes[slices], near, found.partition[slices]))]
