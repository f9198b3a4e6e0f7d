"""Compute the keys of Hudi's own mapping of values to a curve, bit for bit, with its faults.

Zeros sort below negatives, NaN and nulls sort among values, an int next to a long has no effect,
short text is padded on the left, the Hilbert curve confuses -x with x. Columns are taken in the
order of a Java hash map of their positions in the file. Source: ZOrderingUtil,
SpaceCurveSortingHelper and HilbertCurveUtils, the same in 0.15 and 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask, view_values
from reconciler.errors import UnsupportedError
from reconciler.layout.curves.curve_keys import hilbert_keys, interleave_bits
from reconciler.layout.curves.lanes import (
    SIGN,
    Lane,
    double_values,
    is_null,
    is_text,
    text_bytes,
    to_plain_array,
    truncate_decimals,
    unordered_column_error,
)

#: Hudi truncates a Hilbert key to 63 bytes
MAX_HILBERT_COLUMNS: Final = 8

_LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
_INT_SIGN: Final = np.uint64(1 << 31)
_NAN: Final = np.uint64(0x7FF8_0000_0000_0000)
_DAY: Final = 86_400_000
_GREGORIAN: Final = -141_427  # days: 1582-10-15
#: types with a key of four bytes, and the value of null in it
_INTS: Final = {pa.bool_(): 0, pa.int16(): 0x7FFF, pa.int32(): 0x7FFF_FFFF}
_FLOAT_MAX: Final = float(np.finfo(np.float32).max)
_DOUBLE_MAX: Final = float(np.finfo(np.float64).max)


def column_order(positions: Sequence[int]) -> tuple[int, ...]:
    """Return the order in which Hudi takes the columns.

    ``positions``: positions of the columns in a file, which begins with the meta columns.

    >>> column_order([17, 11, 10])
    (0, 2, 1)
    """
    size = 16
    while len(positions) > size * 3 // 4:
        size *= 2
    return tuple(sorted(range(len(positions)), key=lambda nth: positions[nth] % size))


def direct_keys(
    curve: Literal["z-order", "hilbert"], columns: Sequence[Any], names: Sequence[str], zone: str
) -> Lane:
    """Return the key of each row: 64 bits per column for Z-order, 63 for the Hilbert curve."""
    if curve == "hilbert" and len(columns) > MAX_HILBERT_COLUMNS:
        raise UnsupportedError(
            f"Hudi's Hilbert keys hold {MAX_HILBERT_COLUMNS} columns, not {len(columns)}: "
            "use mapping: rank"
        )
    to_word = _z_order_word if curve == "z-order" else _hilbert_word
    words = [to_word(to_plain_array(c), n, zone) for c, n in zip(columns, names, strict=True)]
    return interleave_bits(words, 64) if curve == "z-order" else hilbert_keys(words, 63)


def _z_order_word(column: Any, name: str, zone: str) -> Lane:
    """Return the eight bytes that Z-order uses for each value."""
    kind, nulls = column.type, is_null(column)
    if is_text(kind):
        return _padded_text(column, nulls, 0)
    if pa.types.is_floating(kind):
        greatest = _DOUBLE_MAX if pa.types.is_float64(kind) else _FLOAT_MAX
        values = np.where(nulls, greatest, double_values(column))
        bits = _double_bits(values)
        return np.where(values > 0, bits ^ SIGN, np.where(values < 0, ~bits, bits))
    if pa.types.is_int8(kind):
        return _whole_numbers(column, nulls, 0x7F).astype(np.uint8).astype(np.uint64)
    if kind in _INTS:
        return _int_words(_whole_numbers(column, nulls, _INTS[kind]))
    return _long_values(column, name, zone, nulls).view(np.uint64) ^ SIGN


def _hilbert_word(column: Any, name: str, zone: str) -> Lane:
    """Return the long that the Hilbert curve uses for each value."""
    kind, nulls = column.type, is_null(column)
    if is_text(kind):
        return _padded_text(column, nulls, _LONG_MAX)
    if pa.types.is_floating(kind):
        return np.where(nulls, np.uint64(_LONG_MAX), _double_bits(double_values(column)))
    if pa.types.is_boolean(kind):
        return (_whole_numbers(column, nulls, 0) * _LONG_MAX).view(np.uint64)
    if pa.types.is_int8(kind):
        return _whole_numbers(column, nulls, _LONG_MAX).astype(np.uint8).astype(np.uint64)
    return _long_values(column, name, zone, nulls).view(np.uint64)


def _double_bits(values: Floats) -> Lane:
    """Return the bits of doubles like Double.doubleToLongBits, with a single NaN."""
    return np.where(np.isnan(values), _NAN, values.astype(np.float64).view(np.uint64))


def _int_words(values: Integers) -> Lane:
    """Return the low four bytes of ints; the high ones are zero."""
    return (values.view(np.uint64) & np.uint64(0xFFFF_FFFF)) ^ _INT_SIGN


def _whole_numbers(column: Any, nulls: Mask, null: int) -> Integers:
    values = column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.int64())
    stored = view_values(values, f"<i{values.type.bit_width // 8}")
    return np.where(nulls, np.int64(null), stored.astype(np.int64))


def _padded_text(column: Any, nulls: Mask, null: int) -> Lane:
    """Return the first eight bytes of text; shorter text is aligned right."""
    values = text_bytes(column)
    missing = np.uint64(8) - np.minimum(values.lengths(), np.uint64(8))
    return np.where(nulls, np.uint64(null), values.lane(0) >> (missing * np.uint64(8)))


def _long_values(column: Any, name: str, zone: str, nulls: Mask) -> Integers:
    kind = column.type
    if pa.types.is_date(kind):
        days = _whole_numbers(column.cast(pa.date32()).view(pa.int32()), nulls, 0)
        values = _midnight_millis(_to_java_calendar(days), zone)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        micros = _whole_numbers(column.cast(pa.timestamp("us", kind.tz)).view(pa.int64()), nulls, 0)
        millis = micros // 1000
        days = millis // _DAY
        values = millis + (_to_java_calendar(days) - days) * _DAY
    elif pa.types.is_decimal(kind):
        values = truncate_decimals(column)
    elif pa.types.is_signed_integer(kind):
        values = _whole_numbers(column, nulls, 0)
    else:
        raise unordered_column_error(name, kind)
    return np.where(nulls, np.int64(_LONG_MAX), values)


def _to_java_calendar(days: Integers) -> Integers:
    """Return the days with the same dates in Java's calendar, Julian before 1582-10-15."""
    if not (days < _GREGORIAN).any():
        return days
    dates = pa.array(days.astype(np.int32)).cast(pa.date32())
    year, month, day = (
        np.asarray(part(dates)).astype(np.int64) for part in (pc.year, pc.month, pc.day)
    )
    late = (14 - month) // 12
    years, months = year + 4800 - late, month + 12 * late - 3
    number = day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083
    julian = np.minimum(number - 2_440_588, _GREGORIAN)  # the ten days that the calendar skips
    return np.where(days < _GREGORIAN, julian, days)


def _midnight_millis(days: Integers, zone: str) -> Integers:
    """Return the milliseconds of each day's midnight in a zone."""
    different, which = np.unique(days, return_inverse=True)
    begins = np.array([_midnight_of_day(int(day), zone) for day in different], np.int64)
    return begins[which] if len(days) else days


def _midnight_of_day(day: int, zone: str) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        local = (epoch + timedelta(days=day)).replace(tzinfo=ZoneInfo(zone))
        offset = local.utcoffset()
    except OverflowError:
        offset = None
    return day * _DAY - (int(offset.total_seconds() * 1000) if offset else 0)
