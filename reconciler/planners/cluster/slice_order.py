"""The order in which slices are put into groups: near ones together where that matters; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reconciler.planners.cluster.overlap import z_order_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.planners.cluster.group_choice import ClusteringInput


def sort_slices(
    need: ClusteringInput, slices: NDArray[np.int64], is_near: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Slices by partition; within it near ones together where it overlaps, else the biggest first.

    ``is_near``: also these partitions. Equal ones in the order of their file groups.
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
