"""The queries that a layout optimizes for, as boxes among a sample's rows.

A declared query counts twice with equal weight: as it is, and as similar queries, with ranges of
the same width on the same columns around other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask
from reconciler.layout.curves.lanes import is_text
from reconciler.layout.curves.query_boxes import BoundValue, Box, ValueRange, find_boxes
from reconciler.layout.curves.sorted_sample import SampledColumn
from reconciler.lazy_dataclass import dataclass

_MAX_SIMILAR_BOXES: Final = 4000  # boxes of similar queries, for all queries together
_GOLDEN: Final = 0.6180339887498949


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryBoxes:
    """Boxes per column: shares of the rows from ``low`` to ``high``, and the boxes' weights."""

    low: Floats
    high: Floats
    weights: Floats

    def boundary_shares(self) -> Floats:
        """Return, for each column, the share of the weight of boxes with an end in it."""
        ends = (self.low > 0) | (self.high < 1)
        shares: Floats = ends @ self.weights / self.weights.sum()
        return shares

    def select_meeting(self, low: Floats, high: Floats) -> QueryBoxes:
        """Return the boxes that meet one given box, columns by one."""
        met = self._find_meeting(low, high)[0]
        return QueryBoxes(low=self.low[:, met], high=self.high[:, met], weights=self.weights[met])

    def meeting_weights(self, low: Floats, high: Floats) -> Floats:
        """Return the weight of the boxes that meet each given box, columns by boxes."""
        return self._find_meeting(low, high) @ self.weights

    def _find_meeting(self, low: Floats, high: Floats) -> Mask:
        meets = np.ones((low.shape[1], len(self.weights)), np.bool_)
        for column in range(len(low)):
            meets &= self.low[column] < high[column][:, np.newaxis]
            meets &= self.high[column] > low[column][:, np.newaxis]
        return meets


def build_query_boxes(
    queries: Sequence[str], samples: Sequence[SampledColumn]
) -> QueryBoxes | None:
    """Return the boxes of SQL predicates; None if none of them limits a column of the layout."""
    if not samples[0].rows:
        return None
    alternatives = [spans for where in queries if (spans := _find_box_shares(where, samples))]
    if not alternatives:
        return None
    lows, highs, weights = [], [], []
    count = sum(map(len, alternatives))
    anywhere = iter(_pick_spread_rows(samples, count, max(_MAX_SIMILAR_BOXES // count, 4)))
    for spans in alternatives:
        for span in spans:
            for low, high in (
                _exact_box(span, len(samples)),
                _similar_boxes(span, samples, next(anywhere)),
            ):
                lows.append(low)
                highs.append(high)
                weights.append(np.full(low.shape[1], 1 / (len(spans) * low.shape[1])))
    return QueryBoxes(
        low=np.concatenate(lows, axis=1),
        high=np.concatenate(highs, axis=1),
        weights=np.concatenate(weights),
    )


#: by column, the shares of the rows between which a query reads
_BoxShares = Mapping[int, tuple[float, float]]


def _find_box_shares(where: str, samples: Sequence[SampledColumn]) -> list[_BoxShares]:
    """Return the alternatives of a predicate; empty if one does not limit any column."""
    boxes = [_box_shares(box, samples) for box in find_boxes(where)]
    return boxes if all(boxes) else []


def _box_shares(box: Box, samples: Sequence[SampledColumn]) -> _BoxShares:
    shares = {}
    for nth, column in enumerate(samples):
        ends = [_range_shares(span, column) for span in box.get(column.name.lower(), ())]
        known = [end for end in ends if end is not None]
        if known:
            low = max(low for low, _ in known)
            shares[nth] = (low, max(low, min(high for _, high in known)))
    return shares


def _range_shares(bounds: ValueRange, sample: SampledColumn) -> tuple[float, float] | None:
    """Return the shares of rows below a range and up to its end; None if not comparable."""
    try:
        low = _count_below(sample, bounds.low, 0, or_equal=bounds.excludes_low)
        high = _count_below(sample, bounds.high, sample.valid, or_equal=not bounds.excludes_high)
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    return low / sample.rows, max(low, high) / sample.rows


def _count_below(
    sample: SampledColumn, value: BoundValue | None, default: int, *, or_equal: bool
) -> int:
    """Count the rows with a smaller value, or with the same value if ``or_equal``.

    ``default``: the count if the value is None.
    """
    if value is None:
        return default
    compare = pc.less_equal if or_equal else pc.less
    kind = sample.column.type
    column = sample.column
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return int(pc.sum(compare(column, _to_scalar(value, column.type))).as_py() or 0)


def _to_scalar(value: BoundValue, kind: pa.DataType) -> Any:
    if isinstance(value, Decimal | int) and pa.types.is_floating(kind):
        return pa.scalar(float(value), kind)
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(value)
        if kind.tz is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return pa.scalar(moment, kind)
    if isinstance(value, str) and is_text(kind) and not _is_string(kind):
        return pa.scalar(value.encode(), kind)
    return pa.scalar(value).cast(kind)


def _is_string(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _exact_box(span: _BoxShares, columns: int) -> tuple[Floats, Floats]:
    low, high = np.full((columns, 1), -1.0), np.full((columns, 1), 2.0)
    for column, ends in span.items():
        low[column], high[column] = ends
    return low, high


def _pick_spread_rows(samples: Sequence[SampledColumn], count: int, each: int) -> Integers:
    """Pick ``count`` times ``each`` rows spread over the sample, whatever its order."""
    order = np.lexsort([column.run for column in reversed(samples)])
    shares = np.arange(1, count * each + 1) * _GOLDEN % 1
    rows: Integers = order[(shares * len(order)).astype(np.int64)]
    return rows.reshape(count, each)


def _similar_boxes(
    span: _BoxShares, samples: Sequence[SampledColumn], rows: Integers
) -> tuple[Floats, Floats]:
    """Return boxes with the same side lengths around some rows of the sample."""
    low, high = np.full((len(samples), len(rows)), -1.0), np.full((len(samples), len(rows)), 2.0)
    for column, (begin, end) in span.items():
        width = end - begin
        starts = samples[column].starts / samples[column].rows
        run = samples[column].run[rows]
        middle = (starts[run] + starts[run + 1]) / 2
        low[column] = np.clip(middle - width / 2, 0, 1 - width)
        high[column] = low[column] + width
    return low, high
