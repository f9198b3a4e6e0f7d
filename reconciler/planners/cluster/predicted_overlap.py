"""Predict how many files cover a row after some are clustered along a curve; pure."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from reconciler.arrays import Floats, Integers
from reconciler.planners.cluster.overlap import FileBoxes

#: points times files that are processed together
_CHUNK: Final = 2**21
#: boxes of files along a curve overlap each other: growth per doubling of the number of files;
#: measured with uniform rows (tests/unit/planners/cluster/test_layout_figures.py)
_GROWTH: Final = {"z-order": 0.64, "hilbert": 0.28}
_HILBERT: Final = (1.5, 1.8)  # greatest overlap with two columns, and with more


def estimate_curve_overlap(curve: str | None, columns: int, files: int) -> float:
    """Estimate how many of ``files`` files along one curve cover a row on average.

    Leaves of a kd-tree and ranges of one column do not overlap. Pieces of a curve are not boxes, so
    their bounds overlap.

    >>> estimate_curve_overlap("kd-tree", 2, 30), round(estimate_curve_overlap("z-order", 2, 30), 1)
    (1.0, 2.3)
    """
    growth = _GROWTH.get(curve or "", 0.0)
    if columns < 2 or files <= 2 or not growth:  # noqa: PLR2004 - two halves do not overlap
        return 1.0
    most = columns + 0.3 if curve == "z-order" else _HILBERT[columns > 2]  # noqa: PLR2004
    return min(1.0 + growth * math.log2(files), most)


def predict_overlap(boxes: FileBoxes, group: Integers, covering: Floats) -> float:
    """Predict the mean overlap of one partition after its groups are rewritten.

    ``group``: per file, -1 if it stays. ``covering``: per group, how many of its new files cover a
    row that the group covers.
    """
    points = boxes.sample_points()
    order = np.argsort(group, kind="stable")
    stays = int(np.count_nonzero(group < 0))
    members = order[stays:]
    of = group[members]
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    total = 0.0
    step = max(_CHUNK // len(group), 1)
    for first in range(0, points.shape[-1], step):
        covered = boxes.covers(points[:, :, first : first + step])[0]
        total += int(np.count_nonzero(covered[:, order[:stays]]))
        if len(starts):
            is_in = np.logical_or.reduceat(covered[:, members], starts, axis=1)
            total += float((is_in * covering[of[starts]]).sum())
    return total / int(points.shape[-1])
