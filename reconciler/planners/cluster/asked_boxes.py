"""The boxes of values that readers ask for: those of declared queries, or boxes of 1 %; pure.

A declared query is the boxes of its predicate on the clustering columns. A literal that does not
compare with the statistics (a day beside days since 1970) counts as a range of 1 % of the column.
Without queries, boxes of all clustering columns that hold 1 % of the rows lie where the rows lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import Floats, Integers
from reconciler.layout.curves.query_boxes import BoundValue, Box, ValueRange, find_boxes
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.file_boxes import FileRanges
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.spec.model import Query

#: share of the rows that a box holds if no query is declared
BOX_SHARE: Final = 0.01
#: boxes that are tried in a partition without queries: among few files, and among many
_BOXES: Final = (32, 16)
_MANY_FILES: Final = 32
#: boxes that are tried of all declared queries together
_MAX_BOXES: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class BoxesOnScale:
    """Boxes on one scale: (columns, boxes, partitions). ``starts``: the first box of each query."""

    lower: Floats
    upper: Floats
    starts: Integers


@dataclass(frozen=True, slots=True, eq=False)
class AskedBoxes:
    """What readers ask for; ``ranges`` has the scales on which its boxes are known.

    ``ends``: per scale, the lower and upper ends of the boxes of declared queries, (columns,
    boxes); infinite if unlimited, NaN for a range of 1 %. ``starts``: the first box of each query.
    Both are empty without queries.
    """

    ranges: ColumnRanges
    ends: tuple[tuple[Floats, Floats], ...]
    starts: Integers

    @classmethod
    def build(
        cls,
        queries: Sequence[Query],
        columns: Sequence[str],
        bounds: Sequence[tuple[Any, Any]] | None,
        ranges: ColumnRanges,
    ) -> Self:
        """Build from the declared queries; those that limit no clustering column read all files.

        ``bounds``: the statistics that ``ranges`` were built from.
        """
        boxes = [find_boxes(query.where) for query in queries]
        names = [name.lower() for name in columns]
        if bounds is None or not any(
            name in box for some in boxes for box in some for name in names
        ):
            return cls(ranges, (), np.zeros(0, np.int64))
        if sum(map(len, boxes)) > _MAX_BOXES:  # the queries that come first have their boxes
            most = _MAX_BOXES // len(boxes) or 1
            boxes = [some if len(some) <= most else ({},) for some in boxes][:_MAX_BOXES]
        starts = np.concatenate([[0], np.cumsum([len(some) for some in boxes])[:-1]])
        placed = _place_literals([box for some in boxes for box in some], names, bounds, ranges)
        return cls(*placed, starts.astype(np.int64))

    @property
    def is_declared(self) -> bool:
        """Return whether the boxes are those of declared queries."""
        return bool(self.ends)

    @property
    def scales(self) -> dict[int, tuple[Floats, Floats]]:
        """Return the ranges of files on the scales that boxes are placed on, by their numbers.

        Literals of queries are not placed on ranks if there are other scales: between the few
        bounds of files that cover the same values a rank says nothing.
        """
        pairs = enumerate([(self.ranges.lower, self.ranges.upper), *self.ranges.scales])
        skipped = 1 if self.is_declared and self.ranges.scales else 0
        return {number: pair for number, pair in pairs if number >= skipped}

    def on_scale(self, scale: int, files: FileRanges) -> BoxesOnScale:
        """Return the boxes for the partitions of some files."""
        points = files.sample_points()
        if not self.ends:
            has_spread = files.has_spread
            count = np.maximum(has_spread.sum(axis=0), 1)
            is_many = len(files.rows) > _MANY_FILES * len(files.starts)
            step = max(points.shape[-1] // _BOXES[is_many], 1)
            side = BOX_SHARE ** (1.0 / count)
            lower, upper = _boxes_around(points, side, np.arange(0, points.shape[-1], step))
            starts = np.arange(lower.shape[1], dtype=np.int64)
            return BoxesOnScale(lower, upper, starts)
        low, high = self.ends[scale]
        near = np.arange(low.shape[1]) * 7 % points.shape[-1]  # spread over the rows
        side = np.full(points.shape[1], BOX_SHARE)
        around_low, around_high = _boxes_around(points, side, near)
        return BoxesOnScale(
            np.where(np.isnan(low)[..., None], around_low, low[..., None]),
            np.where(np.isnan(high)[..., None], around_high, high[..., None]),
            self.starts,
        )


def _boxes_around(points: Floats, side: Floats, which: Integers) -> tuple[Floats, Floats]:
    """Return boxes around some points; each side holds the share ``side`` of all points.

    ``points``: (columns, partitions, points); ``side``: per partition.
    """
    count = points.shape[-1]
    ordered = np.sort(points, axis=-1)
    rank = np.argsort(np.argsort(points, axis=-1, kind="stable"), axis=-1, kind="stable")
    share = (rank[..., which] + 0.5) / count
    begin = np.clip(share - side[:, None] / 2, 0.0, 1.0 - side[:, None])
    ends = [_interpolate(ordered, at) for at in (begin, begin + side[:, None])]
    lower, upper = (np.moveaxis(end, 2, 1) for end in ends)
    return lower, upper


def _interpolate(ordered: Floats, share: Floats) -> Floats:
    """Return the value below which a share of the ordered points lies."""
    last = ordered.shape[-1] - 1
    place = np.clip(share * (last + 1) - 0.5, 0.0, last)
    below = np.minimum(place.astype(np.int64), max(last - 1, 0))
    above = np.minimum(below + 1, last)
    low = np.take_along_axis(ordered, below, axis=-1)
    high = np.take_along_axis(ordered, above, axis=-1)
    value: Floats = low + (place - below) * (high - low)
    return value


# --- literals of declared queries ----------------------------------------------------------------


def _place_literals(
    boxes: Sequence[Box],
    names: Sequence[str],
    bounds: Sequence[tuple[Any, Any]],
    ranges: ColumnRanges,
) -> tuple[ColumnRanges, tuple[tuple[Floats, Floats], ...]]:
    """Return the ranges of files on scales that the literals are on too, and the boxes on these.

    The literals are ranked among the bounds as if they were those of more files.
    """
    files = len(ranges.rows)
    extended, known = [], []
    for name, (lower, upper) in zip(names, bounds, strict=True):
        spans = [_LiteralRange.read(box.get(name, ()), lower.type) for box in boxes]
        extended.append(
            (
                pa.concat_arrays([lower, pa.array([s.low for s in spans], lower.type)]),
                pa.concat_arrays([upper, pa.array([s.high for s in spans], upper.type)]),
            )
        )
        known.append([s.is_known for s in spans])
    rows = np.concatenate([ranges.rows, np.zeros(len(boxes), np.int64)])
    both = ColumnRanges.build(extended, rows)
    is_known = np.array(known, np.bool_)
    ends = []
    for lower, upper in ((both.lower, both.upper), *both.scales):
        low, high = lower[:, files:], upper[:, files:]
        ends.append(
            (
                np.where(is_known, np.where(np.isnan(low), -np.inf, low), np.nan),
                np.where(is_known, np.where(np.isnan(high), np.inf, high), np.nan),
            )
        )
    return both, tuple(ends)


@dataclass(frozen=True, slots=True)
class _LiteralRange:
    """The least and greatest literal of a column's conditions, as the statistics have them.

    None is unlimited. ``is_known``: the literals compare with the statistics.
    """

    low: Any
    high: Any
    is_known: bool

    @classmethod
    def read(cls, spans: Sequence[ValueRange], kind: Any) -> Self:
        try:
            lows = [_as_statistic(span.low, kind) for span in spans if span.low is not None]
            highs = [_as_statistic(span.high, kind) for span in spans if span.high is not None]
            return cls(max(lows, default=None), min(highs, default=None), is_known=True)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return cls(None, None, is_known=False)


def _as_statistic(value: BoundValue, kind: Any) -> Any:
    """Return a literal as bounds of files have it; raises if it does not compare with them."""
    types = pa.types
    if isinstance(value, str) != types.is_large_binary(kind):
        raise TypeError(f"{value!r} does not compare with {kind}")
    if isinstance(value, str):
        return value.encode()
    if types.is_floating(kind):
        return float(value)
    if types.is_integer(kind):
        return pa.scalar(int(value), kind).as_py()
    return pa.scalar(Decimal(value), kind).as_py()
