"""Measure and predict how many files cover a row on the clustering columns; pure.

A file is a box: per column, from its least to its greatest value. The distribution of rows inside
the box is unknown, so it is assumed even on several scales: over the ranks of values in the table,
which works for any ordered type and any skew; over the values as numbers; and over their
magnitudes. Each scale can show too little overlap but rarely too much, so the greatest counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Codes, Floats, Integers, Mask, sort_unique
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.newest_slices import CandidateSlices

#: least and greatest number of points per partition, and the limit of points times files
_POINTS: Final = (32, 128)
_MAX_CELLS: Final = 2**25
#: points times files that are processed together
_CHUNK: Final = 2**21
#: points per file in partitions of few files
_POINTS_PER_FILE: Final = 8
#: files measured at once
_AT_ONCE: Final = 2**12
#: bits of a column in a z-order
_BITS: Final = 16
#: measured overlap of adjacent files of uneven width
_MIN_OVERLAP: Final = 2.0
#: boxes of files along a curve overlap each other: growth per doubling of the number of files;
#: measured with uniform rows (tests/unit/planners/cluster/test_layout_figures.py)
_GROWTH: Final = {"z-order": 0.64, "hilbert": 0.28}
_HILBERT: Final = (1.5, 1.8)  # greatest overlap with two columns, and with more


@dataclass(frozen=True, slots=True, eq=False)
class FileBoxes:
    """Files as boxes for many partitions of equal size: (columns, partitions, files).

    Unknown bounds are those of the whole partition. ``rows``: (partitions, files).
    """

    lower: Floats
    upper: Floats
    rows: Floats

    @classmethod
    def on_scales(cls, ranges: ColumnRanges, files: Integers) -> list[Self]:
        """Return the boxes of files on every scale; ``files``: int64, (partitions, files)."""
        rows = np.maximum(ranges.rows[files], 1).astype(np.float64)
        pairs = ((ranges.lower, ranges.upper), *ranges.scales)
        return [cls._build(lower[:, files], upper[:, files], rows) for lower, upper in pairs]

    @classmethod
    def _build(cls, lower: Floats, upper: Floats, rows: Floats) -> Self:
        unknown = np.isnan(lower) | np.isnan(upper)
        if not unknown.any():
            return cls(lower, upper, rows)
        least = np.where(unknown, np.inf, lower).min(axis=-1, keepdims=True)
        most = np.where(unknown, -np.inf, upper).max(axis=-1, keepdims=True)
        nothing = least > most
        least[nothing] = most[nothing] = 0.0
        return cls(np.where(unknown, least, lower), np.where(unknown, most, upper), rows)

    def sample_points(self) -> Floats:
        """Return sample points, even over rows and boxes: (columns, partitions, points)."""
        count, files = self.rows.shape
        points = int(np.clip(_MAX_CELLS // files, *_POINTS))
        points = min(points, max(_POINTS_PER_FILE * files, 2 * _POINTS[0]))
        ends = np.cumsum(self.rows, axis=1)
        each = np.arange(count)[:, None]
        flat = (ends / ends[:, -1:] + each).ravel()
        at = np.searchsorted(flat, (np.arange(points) + 0.5) / points + each)
        which = np.minimum(at - each * files, files - 1)
        within = (0.5 + np.arange(1, points + 1) * additive_steps(len(self.lower))[:, None]) % 1.0
        lower, upper = self.lower[:, each, which], self.upper[:, each, which]
        return lower + within[:, None, :] * (upper - lower)

    def covers(self, points: Floats) -> Mask:
        """Return which point is in which file of its partition: (partitions, points, files)."""
        is_in = np.ones((*points.shape[1:], self.rows.shape[-1]), np.bool_)
        for lower, upper, value in zip(self.lower, self.upper, points[..., None], strict=True):
            is_in &= lower[:, None, :] <= value
            is_in &= value <= upper[:, None, :]
        return is_in

    def covered_shares(self, points: Floats) -> Floats:
        """Return per file the share of the points of its partition that it covers.

        The shape is (partitions, files). The sum over files is the mean overlap.
        """
        count, files = self.rows.shape
        width = points.shape[-1]
        step = max(_CHUNK // (files * width), 1)
        some = max(_CHUNK // (files * step), 1)
        covered = np.zeros((count, files), np.int64)
        for first in range(0, count, step):
            chunk = slice(first, first + step)
            boxes = FileBoxes(self.lower[:, chunk], self.upper[:, chunk], self.rows[chunk])
            for start in range(0, width, some):
                covered[chunk] += boxes.covers(points[:, chunk, start : start + some]).sum(axis=1)
        share: Floats = covered / width
        return share


def count_measurable_files(
    candidates: CandidateSlices, ranges: ColumnRanges, partitions: int
) -> Integers:
    """Return the base files of each of the partitions, 0 if no range of them is known."""
    bases = np.flatnonzero(candidates.has_base)
    partition = candidates.partition[bases]
    is_known = ranges.is_known[candidates.base_row[bases]]
    known = np.bincount(partition, weights=is_known, minlength=partitions)
    counts: Integers = np.bincount(partition, minlength=partitions)
    return np.where(known > 0, counts, 0)


def iterate_boxes(
    candidates: CandidateSlices, ranges: ColumnRanges, counts: Integers, more_than: float
) -> Iterator[tuple[Integers, Integers, FileBoxes]]:
    """Yield the boxes of partitions with ``more_than`` so many files, those of equal size together.

    ``counts``: base files per partition. Yields the partitions, their slices (partitions by files),
    and the boxes of these on every scale.
    """
    bases = np.flatnonzero(candidates.has_base)
    starts = np.searchsorted(candidates.partition[bases], np.arange(len(counts)))
    for count in sort_unique(counts[counts > more_than]).tolist():
        alike = np.flatnonzero(counts == count)
        step = max(_AT_ONCE // count, 1)
        for first in range(0, len(alike), step):
            partitions = alike[first : first + step]
            slices = bases[starts[partitions][:, None] + np.arange(count)]
            for boxes in FileBoxes.on_scales(ranges, candidates.base_row[slices]):
                yield partitions, slices, boxes


def z_order_keys(ranges: ColumnRanges, files: Integers, partition: Codes) -> NDArray[np.uint64]:
    """Return a z-order key per file, so that near files of a partition have near keys.

    ``files``: their rows, partition by partition; ``partition``: each file's partition. Files
    without statistics are in the middle.
    """
    keys = np.zeros(len(files), np.uint64)
    if not len(files):
        return keys
    starts = np.flatnonzero(np.diff(partition, prepend=-1))
    sizes = np.diff(np.append(starts, len(files)))
    bits = min(64 // max(len(ranges.lower), 1), _BITS)
    cells = []
    for lower, upper in zip(ranges.lower[:, files], ranges.upper[:, files], strict=True):
        centre = (lower + upper) / 2
        low = np.repeat(np.fmin.reduceat(centre, starts), sizes)
        high = np.repeat(np.fmax.reduceat(centre, starts), sizes)
        place = np.where(high > low, (centre - low) / np.where(high > low, high - low, 1.0), 0.5)
        place[np.isnan(place)] = 0.5
        cells.append(np.minimum(place * 2**bits, 2**bits - 1).astype(np.uint64))
    for bit in range(bits - 1, -1, -1):
        for cell in cells:
            keys = (keys << np.uint64(1)) | ((cell >> np.uint64(bit)) & np.uint64(1))
    return keys


def additive_steps(columns: int) -> Floats:
    """Return steps of an additive sequence that fills a cube evenly.

    They are powers of the root of x^(d+1) = x + 1.

    >>> additive_steps(1).round(6).tolist()
    [0.618034]
    """
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (columns + 1))
    return root ** -np.arange(1.0, columns + 1.0)


def find_wide_files(shares: Floats, above: float) -> Mask:
    """Return the files that cause an overlap above the limit.

    A file is wide if files like it alone would cover a row with half of the limit or more. So the
    other files, and what the wide ones become, stay below the limit. Adjacent files of uneven width
    do not count as wide if the limit allows it.
    """
    least = max(above / 2, _MIN_OVERLAP) if above > _MIN_OVERLAP + 1 else above - 1
    wide: Mask = shares * shares.shape[-1] > least
    return wide


def find_worthwhile_groups(
    boxes: FileBoxes,
    members: Integers,
    starts: Integers,
    least_gain: float,
    covering: Floats,
) -> Mask:
    """Return which groups to rewrite to reduce overlap.

    ``boxes``: the boxes of one partition; ``members``: positions in them, group by group from
    ``starts``; ``covering``: per group, how many of its new files cover a row that the group
    covers. A group must reduce the overlap of its own files by the share ``least_gain``, and all
    groups together that of their partition; otherwise none is chosen.
    """
    points = boxes.sample_points()
    saved = np.zeros(len(starts), np.float64)
    own = np.zeros(len(starts), np.int64)
    total = 0
    step = max(_CHUNK // len(boxes.rows[0]), 1)
    for first in range(0, points.shape[-1], step):
        covered = boxes.covers(points[:, :, first : first + step])[0]
        inside = np.add.reduceat(covered[:, members], starts, axis=1, dtype=np.int32)
        saved += (inside - np.where(inside > 0, covering, 0.0)).sum(axis=0)
        own += inside.sum(axis=0)
        total += int(np.count_nonzero(covered))
    gains: Mask = saved > 0
    gains &= saved >= least_gain * own
    return gains if saved[gains].sum() >= least_gain * total else np.zeros(len(starts), np.bool_)


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
    member_groups = group[members]
    starts = np.flatnonzero(np.diff(member_groups, prepend=-1))
    total = 0.0
    step = max(_CHUNK // len(group), 1)
    for first in range(0, points.shape[-1], step):
        covered = boxes.covers(points[:, :, first : first + step])[0]
        total += int(np.count_nonzero(covered[:, order[:stays]]))
        if len(starts):
            is_in = np.logical_or.reduceat(covered[:, members], starts, axis=1)
            total += float((is_in * covering[member_groups[starts]]).sum())
    return total / int(points.shape[-1])
