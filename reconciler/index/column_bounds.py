"""Compare column statistics with a predicate's sets of values, for all files at once."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy, view_values
from reconciler.index.model import ColumnStats
from reconciler.index.value_sets import HIGHEST, LOWEST, Cut, ValueSet

#: up to this many spans are compared one by one; more are found by binary search
_MAX_COMPARED_SPANS: Final = 4
#: the most decimal digits that always fit into 64 bits
_LONG_DIGITS: Final = 18
_MIN_LONG: Final = -(1 << 63)


class ColumnBounds:
    """The statistics of one column, prepared for comparisons with sets of values."""

    def __init__(self, stats: ColumnStats) -> None:
        self._least = _make_side(stats.least, is_least=True)
        self._greatest = _make_side(stats.greatest, is_least=False)
        self._may_have_null = stats.nulls != 0
        self._has_values: Mask = ~stats.is_all_null
        self._may_have_nan = ~stats.is_nan_free & self._has_values

    def may_hold(self, values: ValueSet) -> Mask:
        """Return a mask of the files that may hold a value of the set."""
        mask = self._overlaps(values) & self._has_values
        if values.nan:
            mask |= self._may_have_nan
        if values.null:
            mask |= self._may_have_null
        return mask

    def _overlaps(self, values: ValueSet) -> Mask:
        spans = values.spans
        if len(spans) > _MAX_COMPARED_SPANS:
            # spans that begin before the greatest value, minus those that end before the least
            begins = self._greatest.count_passed([low for low, _ in spans])
            ended = self._least.count_passed([high for _, high in spans])
            return np.asarray(begins > ended)
        mask = np.zeros(len(self._may_have_null), np.bool_)
        for low, high in spans:
            mask |= self._greatest.is_beyond(low) & ~self._least.is_beyond(high)
        return mask


def _make_side(column: Any, *, is_least: bool) -> _NumberSide | _ArrowSide:
    """Prepare one side of the bounds; an unknown bound becomes the outermost value of the type."""
    kind, types = column.type, pa.types
    if types.is_floating(kind):
        filled = column.cast(pa.float64()).fill_null(-np.inf if is_least else np.inf)
        return _NumberSide(view_values(filled, np.float64))
    if types.is_decimal(kind) and not _is_short(column):
        return _ArrowSide(column, None if is_least else column.is_null())
    if types.is_string(kind) or types.is_binary(kind):
        return _ArrowSide(column.cast(pa.binary()), None if is_least else column.is_null())
    whole = _whole_numbers(column)
    if column.null_count:
        limit = np.iinfo(np.int64)
        whole = np.where(to_numpy(column.is_null()), limit.min if is_least else limit.max, whole)
    return _NumberSide(whole)


def _is_short(column: Any) -> bool:
    """Return whether every decimal fits into 64 bits and no bound of a wider type is unknown."""
    if column.type.precision <= _LONG_DIGITS:
        return True
    words = view_values(column, np.int64, 2)
    return not column.null_count and bool(np.all(words[:, 1] == words[:, 0] >> 63))


def _whole_numbers(column: Any) -> Integers:
    """Return booleans, numbers, short decimals, days and times as their stored integers."""
    kind, types = column.type, pa.types
    if types.is_decimal(kind):
        return view_values(column, np.int64, 2)[:, 0]
    if types.is_date32(kind):
        column = column.cast(pa.int32())
    elif types.is_boolean(kind):
        column = column.cast(pa.int8())
    return view_values(column.cast(pa.int64()), np.int64)


class _NumberSide:
    """The least values, or the greatest values, of all files as numbers of 64 bits."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values

    def is_beyond(self, cut: Cut) -> Mask:
        """Return a mask of the values that lie after a cut."""
        cut = self._clip_cut(cut)
        if cut in (LOWEST, HIGHEST):
            return np.full(len(self._values), cut == LOWEST)
        _, value, is_after = cut
        return np.asarray(self._values > value if is_after else self._values >= value)

    def count_passed(self, cuts: Sequence[Cut]) -> Integers:
        """Return, for each value, the number of sorted cuts that it lies after."""
        plain = [self._clip_cut(cut) for cut in cuts]
        kind = self._values.dtype
        ats = np.array([cut[1] for cut in plain if cut[0] == 0 and not cut[2]], kind)
        pasts = np.array([cut[1] for cut in plain if cut[0] == 0 and cut[2]], kind)
        passed = np.searchsorted(ats, self._values, "right")
        passed += np.searchsorted(pasts, self._values, "left")
        return passed + plain.count(LOWEST)

    def _clip_cut(self, cut: Cut) -> Cut:
        """Return the cut, moved to the end of the order if its value exceeds 64 bits."""
        if cut[0] or self._values.dtype != np.int64 or _MIN_LONG <= cut[1] < -_MIN_LONG:
            return cut
        return LOWEST if cut[1] < 0 else HIGHEST


class _ArrowSide:
    """A side of bytes, or of decimals that exceed 64 bits.

    ``is_open``: the bounds that are unlimited.
    """

    def __init__(self, column: Any, is_open: Any | None) -> None:
        self._is_open = None if is_open is None else to_numpy(is_open)
        self._column, self._files = column, len(column)

    def is_beyond(self, cut: Cut) -> Mask:
        if cut in (LOWEST, HIGHEST):
            return np.full(self._files, cut == LOWEST)
        scalar = self._cut_values([cut])[0]
        compare = pc.greater if cut[2] else pc.greater_equal
        mask = to_numpy(compare(self._column, scalar).fill_null(False))
        return mask if self._is_open is None else mask | self._is_open

    def count_passed(self, cuts: Sequence[Cut]) -> Integers:
        ats = self._cut_values([cut for cut in cuts if cut[0] == 0 and not cut[2]])
        pasts = self._cut_values([cut for cut in cuts if cut[0] == 0 and cut[2]])
        passed = self._count_points(ats, pc.less_equal) + self._count_points(pasts, pc.less)
        passed += cuts.count(LOWEST)
        return passed if self._is_open is None else np.where(self._is_open, len(cuts), passed)

    def _cut_values(self, cuts: Sequence[Cut]) -> Any:
        kind = self._column.type
        if not pa.types.is_decimal(kind):
            return pa.array([cut[1] for cut in cuts], kind)
        return pa.array(
            [_make_decimal(cut[1], kind.scale) for cut in cuts], pa.decimal256(76, kind.scale)
        )

    def _count_points(self, points: Any, compare: Any) -> Integers:
        """Count, by binary search, the sorted points that compare true with each value.

        A null compares true with no point.
        """
        low = np.zeros(self._files, np.int64)
        high = np.full(self._files, len(points))
        for _ in range(len(points).bit_length()):
            middle = (low + high) // 2
            is_in = middle < len(points)
            tried = points.take(to_arrow(np.minimum(middle, len(points) - 1)))
            is_so = to_numpy(compare(tried, self._column).fill_null(False)) & is_in
            low = np.where(is_so, middle + 1, low)
            high = np.where(is_so, high, middle)
        return low


def _make_decimal(unscaled: int, scale: int) -> Decimal:
    """Return the exact decimal, whatever the precision of the context."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))
