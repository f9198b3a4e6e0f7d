"""How many files cover a row's values on the clustering columns; pure.

Files are boxes of ranks: per column the places of their least and greatest value among all such
values of the table. Ranks serve any type that has an order, and skew does not stretch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: points looked at in a partition, and the most of points times files
_POINTS: Final = (32, 512)
_MOST: Final = 2**25
_CHUNK: Final = 2**21
#: what files of uneven width come to that don't overlap
_SIDE_BY_SIDE: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranges:
    """Statistics of the base files, one element a file of the table; log files' mean nothing.

    ``lower``, ``upper``: float64, columns by files, ranks; NaN where the file's values are not
    known, which may then be any. ``rows``: int64 per file, records.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, bounds: Sequence[tuple[Any, Any]], rows: NDArray[np.int64]) -> Self:
        """From least and greatest values: per column two Arrow arrays, one element a file.

        Null where there is no statistic. The arrays are of one type with an order.
        """
        ranked = [_ranked(lower, upper) for lower, upper in bounds]
        shape = (len(bounds), len(rows))
        return cls(
            lower=np.array([lower for lower, _ in ranked], np.float64).reshape(shape),
            upper=np.array([upper for _, upper in ranked], np.float64).reshape(shape),
            rows=rows,
        )


def _ranked(lower: Any, upper: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = pa.concat_arrays([lower, upper])
    ranks = pc.rank(both, tiebreaker="dense")  # nulls come last
    found = np.asarray(ranks, np.float64)
    found[np.asarray(pc.is_null(both, nan_is_null=True), np.bool_)] = np.nan
    return found[: len(lower)], found[len(lower) :]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Some files as boxes, columns by files; what is not known reaches from end to end."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, ranges: Ranges, files: NDArray[np.int64]) -> Self:
        lower, upper = ranges.lower[:, files], ranges.upper[:, files]
        unknown = np.isnan(lower) | np.isnan(upper)
        known = np.where(unknown, np.inf, lower), np.where(unknown, -np.inf, upper)
        least = known[0].min(axis=1, initial=np.inf)
        most = known[1].max(axis=1, initial=-np.inf)
        nothing = least > most
        least[nothing] = most[nothing] = 0.0
        return cls(
            np.where(unknown, least[:, None], lower),
            np.where(unknown, most[:, None], upper),
            np.maximum(ranges.rows[files], 1).astype(np.float64),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: NDArray[np.int64]) -> Boxes:
        return Boxes(self.lower[:, which], self.upper[:, which], self.rows[which])

    def points(self) -> NDArray[np.float64]:
        """Values of rows, columns by points: evenly over rows and boxes, and always the same."""
        count = int(np.clip(_MOST // max(len(self), 1), *_POINTS))
        ends = np.cumsum(self.rows)
        which = np.searchsorted(ends, (np.arange(count) + 0.5) / count * ends[-1])
        within = (0.5 + np.arange(1, count + 1) * _steps(len(self.lower))[:, None]) % 1.0
        lower, upper = self.lower[:, which], self.upper[:, which]
        return lower + within * (upper - lower)

    def shares(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per file the share of the points that it covers; their sum is the mean overlap."""
        covered = np.zeros(len(self), np.int64)
        step = max(_CHUNK // max(len(self), 1), 1)
        for start in range(0, points.shape[1], step):
            some = points[:, start : start + step]
            is_in = np.ones((some.shape[1], len(self)), np.bool_)
            for lower, upper, values in zip(self.lower, self.upper, some, strict=True):
                is_in &= (lower <= values[:, None]) & (values[:, None] <= upper)
            covered += is_in.sum(axis=0)
        share: NDArray[np.float64] = covered / points.shape[1]
        return share

    def locality(self) -> NDArray[np.uint64]:
        """A number a box: boxes that lie near each other have numbers near each other (z-order)."""
        centre = (self.lower + self.upper) / 2
        bits = min(64 // max(len(centre), 1), 16)
        keys = np.zeros(len(self), np.uint64)
        span = np.maximum(np.ptp(centre, axis=1, keepdims=True), 1e-300) if len(self) else 1.0
        low = centre.min(axis=1, keepdims=True, initial=np.inf)
        cells = np.minimum((centre - low) / span * 2**bits, 2**bits - 1).astype(np.uint64)
        for bit in range(bits - 1, -1, -1):
            for column in cells:
                keys = (keys << np.uint64(1)) | ((column >> np.uint64(bit)) & np.uint64(1))
        return keys


def _steps(columns: int) -> NDArray[np.float64]:
    """Steps of an additive sequence that fills a cube evenly: powers of a root of x^(d+1) = x + 1.

    >>> _steps(1).round(6).tolist()
    [0.618034]
    """
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (columns + 1))
    return root ** -np.arange(1.0, columns + 1.0)


def to_blame(shares: NDArray[np.float64], above: float) -> NDArray[np.bool_]:
    """The files that are to blame for an overlap ``above`` the limit.

    Were all files like one of them, more than half of the limit would cover a row: so without them
    the rest overlaps no more than that. Files side by side are not to blame, where
    they are not of very uneven width.
    """
    least = max(above / 2, min(above, _SIDE_BY_SIDE))
    wide: NDArray[np.bool_] = shares * len(shares) > least
    return wide


def gain(boxes: Boxes, members: NDArray[np.int64]) -> float:
    """Share of the overlap at the members' rows that goes when the members don't overlap any more.

    ``members`` are places in the boxes; what is not among them stays as it is.
    """
    points = boxes.take(members).points()
    overlap = float(boxes.shares(points).sum())
    inside = float(boxes.take(members).shares(points).sum())
    return (inside - 1.0) / overlap if overlap > 0 else 0.0
