"""How many files cover a row's values on the clustering columns; pure.

Files are boxes: per column from their least to their greatest value. Where in its box a file has
its rows nobody says. Evenly over the places of such values among all of the table, which serves any
type that has an order and is not stretched by skew; or evenly over the values themselves, as
numbers or by their magnitudes. Each of these takes some rows to be where few files are and so sees
too little overlap, hardly ever too much: what shows most counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_numpy_bools, to_numpy_numbers
from reconciler.planners.cluster.value_scales import scale_values

#: points looked at in a partition, and the most of points times files
_POINTS: Final = (32, 128)
_MAX_CELLS: Final = 2**25
_CHUNK: Final = 2**21
#: points for a file, as long as there are few
_POINTS_PER_FILE: Final = 8
#: bits of a column in a z-order
_BITS: Final = 16
#: what files of uneven width come to that don't overlap
_LEAST_OVERLAP: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRanges:
    """Statistics of the base files, one element a file of the table; log files' mean nothing.

    ``lower``, ``upper``: float64, columns by files, ranks; NaN where the file's values are not
    known, which may then be any. ``rows``: int64 per file, records. ``scales``: the same as
    ``lower`` and ``upper`` on other scales, which keep the order.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    rows: NDArray[np.int64]
    scales: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...] = ()

    @classmethod
    def build(cls, bounds: Sequence[tuple[Any, Any]], rows: NDArray[np.int64]) -> Self:
        """From least and greatest values: per column two Arrow arrays, one element a file.

        Null where there is no statistic. The arrays are of one type with an order.
        """
        both = [pa.concat_arrays([lower, upper]) for lower, upper in bounds]
        ranks = [_rank_values(values) for values in both]
        others = [scale_values(values, of) for values, of in zip(both, ranks, strict=True)]
        pairs = [_split_bounds(ranks, len(rows))]
        for nth in range(2 if any(others) else 0):
            found = [o[nth] if o else of for o, of in zip(others, ranks, strict=True)]
            pairs.append(_split_bounds(found, len(rows)))
        (lower, upper), *rest = pairs
        return cls(lower=lower, upper=upper, rows=rows, scales=tuple(rest))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Per file, whether anything is known of it."""
        known = ~np.isnan(self.lower) & ~np.isnan(self.upper)
        return np.asarray(known.any(axis=0), np.bool_)


def _rank_values(values: Any) -> NDArray[np.float64]:
    ranks = pc.rank(values, tiebreaker="dense")  # nulls come last
    found = to_numpy_numbers(ranks).astype(np.float64)
    found[to_numpy_bools(pc.is_null(values, nan_is_null=True))] = np.nan
    return found


def _split_bounds(
    columns: Sequence[NDArray[np.float64]], files: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is said of least and of greatest values, columns by files."""
    both = np.array(columns, np.float64).reshape(len(columns), 2, files)
    return both[:, 0], both[:, 1]


@dataclass(frozen=True, slots=True, eq=False)
class FileBoxes:
    """Files as boxes, many partitions of equally many files at once; (columns, partitions, files).

    What is not known reaches from end to end of its partition. ``rows``: (partitions, files).
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def on_scales(cls, ranges: ColumnRanges, files: NDArray[np.int64]) -> list[Self]:
        """The boxes of files on every scale, by their rows: int64, (partitions, files)."""
        rows = np.maximum(ranges.rows[files], 1).astype(np.float64)
        pairs = ((ranges.lower, ranges.upper), *ranges.scales)
        return [cls._build(lower[:, files], upper[:, files], rows) for lower, upper in pairs]

    @classmethod
    def _build(
        cls, lower: NDArray[np.float64], upper: NDArray[np.float64], rows: NDArray[np.float64]
    ) -> Self:
        unknown = np.isnan(lower) | np.isnan(upper)
        if not unknown.any():
            return cls(lower, upper, rows)
        least = np.where(unknown, np.inf, lower).min(axis=-1, keepdims=True)
        most = np.where(unknown, -np.inf, upper).max(axis=-1, keepdims=True)
        nothing = least > most
        least[nothing] = most[nothing] = 0.0
        return cls(np.where(unknown, least, lower), np.where(unknown, most, upper), rows)

    def sample_points(self) -> NDArray[np.float64]:
        """Values of rows, evenly over rows and boxes: (columns, partitions, points)."""
        count, files = self.rows.shape
        points = int(np.clip(_MAX_CELLS // files, *_POINTS))
        points = min(points, max(_POINTS_PER_FILE * files, 2 * _POINTS[0]))
        ends = np.cumsum(self.rows, axis=1)
        each = np.arange(count)[:, None]
        flat = (ends / ends[:, -1:] + each).ravel()
        at = np.searchsorted(flat, (np.arange(points) + 0.5) / points + each)
        which = np.minimum(at - each * files, files - 1)
        within = (0.5 + np.arange(1, points + 1) * _additive_steps(len(self.lower))[:, None]) % 1.0
        lower, upper = self.lower[:, each, which], self.upper[:, each, which]
        found: NDArray[np.float64] = lower + within[:, None, :] * (upper - lower)
        return found

    def covers(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which point is in which file of its partition: (partitions, points, files)."""
        is_in = np.ones((*points.shape[1:], self.rows.shape[-1]), np.bool_)
        for lower, upper, value in zip(self.lower, self.upper, points[..., None], strict=True):
            is_in &= lower[:, None, :] <= value
            is_in &= value <= upper[:, None, :]
        return is_in

    def covered_shares(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per file, (partitions, files), the share of the points of its partition that it covers.

        Their sum is the mean overlap.
        """
        count, files = self.rows.shape
        width = points.shape[-1]
        step = max(_CHUNK // (files * width), 1)
        some = max(_CHUNK // (files * step), 1)
        covered = np.zeros((count, files), np.int64)
        for first in range(0, count, step):
            here = slice(first, first + step)
            boxes = FileBoxes(self.lower[:, here], self.upper[:, here], self.rows[here])
            for start in range(0, width, some):
                covered[here] += boxes.covers(points[:, here, start : start + some]).sum(axis=1)
        share: NDArray[np.float64] = covered / width
        return share


def z_order_keys(
    ranges: ColumnRanges, files: NDArray[np.int64], partition: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """A number a file: files near each other in a partition have numbers near each other (z-order).

    ``files``: their rows, partition by partition; ``partition``: of each. Files of which nothing is
    known lie in the middle.
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


def _additive_steps(columns: int) -> NDArray[np.float64]:
    """Steps of an additive sequence that fills a cube evenly: powers of a root of x^(d+1) = x + 1.

    >>> _steps(1).round(6).tolist()
    [0.618034]
    """
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (columns + 1))
    return root ** -np.arange(1.0, columns + 1.0)


def find_wide_files(shares: NDArray[np.float64], above: float) -> NDArray[np.bool_]:
    """The files that are to blame for an overlap ``above`` the limit.

    Were all files like one of them, half of the limit or more would cover a row: so the rest, and
    what they become, overlap less than the limit. Where the limit has the room, files side by side
    are not to blame for their uneven widths.
    """
    least = max(above / 2, _LEAST_OVERLAP) if above > _LEAST_OVERLAP + 1 else above - 1
    wide: NDArray[np.bool_] = shares * shares.shape[-1] > least
    return wide


def find_worthwhile_groups(
    boxes: FileBoxes,
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    least_gain: float,
    covering: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """The groups to rewrite for less overlap.

    ``boxes`` are those of one partition; ``members`` are places in them, group by group from
    ``starts`` on; ``covering``: per group how many of its new files cover a row that it covers.
    Such a group loses the share ``least_gain`` of the overlap of its own files at least, and all
    together do of their partition's; else none is worth it.
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
    gains: NDArray[np.bool_] = saved > 0
    gains &= saved >= least_gain * own
    return gains if saved[gains].sum() >= least_gain * total else np.zeros(len(starts), np.bool_)
