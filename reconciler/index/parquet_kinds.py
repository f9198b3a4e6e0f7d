"""Convert the bounds of a Parquet file into bounds of the table's column. Vectorised, no I/O.

A file may be older than the column's type. If readers widen its values, the bounds widen outwards.
If readers change the order of values (numbers as text), the bounds become unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Mask, to_arrow, to_nullable, to_numpy, view_values
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_DATE: Final = -141_427  # 1582-10-15 in days since 1970
_FIRST_TIME: Final = -2_208_988_800  # 1900-01-01 in seconds since 1970
#: days that a change of calendar moves a date at most, rounded up
_MOVED: Final = 400
_DAY: Final = 86_400
_PER_SECOND: Final = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 10**9}
_MICROS: Final = 1_000_000
_UNIT: Final = re.compile(r"isAdjustedToUTC=(true|false), timeUnit=(\w+)")
_TEXT: Final = frozenset({"STRING", "ENUM", "JSON", "NONE"})
_WHOLE: Final = frozenset({"INT32", "INT64"})
#: whole numbers up to these limits are exact as floats
_EXACT: Final = {pa.float32(): 1 << 24, pa.float64(): 1 << 53}
_WIDE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetKind:
    """A column of a file as its footer describes it.

    ``logical``: name of the logical type. ``unit``: for times, units per second. ``is_utc``: for
    times, whether they are adjusted to UTC.
    """

    physical: str
    logical: str
    scale: int = 0
    unit: int = 0
    is_utc: bool = False
    is_signed: bool = True

    @classmethod
    def from_parquet(cls, column: Any) -> ParquetKind:
        """Return the kind of pyarrow's ColumnSchema."""
        logical, description = column.logical_type.type, str(column.logical_type)
        time = _UNIT.search(description) if logical == "TIMESTAMP" else None
        return cls(
            physical=column.physical_type,
            logical=logical,
            scale=column.scale if logical == "DECIMAL" else 0,
            unit=_PER_SECOND.get(time[2], 0) if time else 0,
            is_utc=bool(time) and time[1] == "true" if time else False,
            is_signed="isSigned=false" not in description,
        )

    @property
    def is_float(self) -> bool:
        return self.physical in {"FLOAT", "DOUBLE"}

    @property
    def is_bytes(self) -> bool:
        return self.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

    @property
    def has_order(self) -> bool:
        """True if the bounds are meaningful: not for 96-bit times and unsigned numbers."""
        return self.physical != "INT96" and self.is_signed

    @property
    def calendar_limits(self) -> tuple[int, int] | None:
        """The value from which all calendars agree, and the bound from which that is certain.

        None if the calendar does not matter.
        """
        if self.logical == "DATE":
            return _FIRST_DATE, _FIRST_DATE + _MOVED
        if self.unit:
            return _FIRST_TIME * self.unit, (_FIRST_TIME + _MOVED * _DAY) * self.unit
        return None


INT64: Final = ParquetKind(physical="INT64", logical="NONE")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkBounds:
    """The least and the greatest value of each chunk, null if unknown.

    ``is_exact_least``, ``is_exact_greatest``: True if the bound is a value of the chunk.
    """

    least: Any
    greatest: Any
    is_exact_least: Mask
    is_exact_greatest: Mask

    @classmethod
    def unknown(cls, kind: Any, chunks: int) -> Self:
        """Return the bounds of so many chunks of which nothing is known."""
        nothing, never = pa.nulls(chunks, kind), np.zeros(chunks, np.bool_)
        return cls(least=nothing, greatest=nothing, is_exact_least=never, is_exact_greatest=never)


#: the least or the greatest value of each chunk, and a mask of those that are exact
_Side = tuple[Any, Mask]


def convert_bounds(kind: ParquetKind, wanted: Any, low: Any, high: Any) -> ChunkBounds:
    """Convert bounds of chunks of one kind to the column's type ``wanted`` (``indexed_type``).

    ``low``, ``high``: pyarrow's raw statistics, None if missing; for numbers also an Arrow array.
    """
    least = _convert_side(kind, wanted, low, is_least=True)
    greatest = _convert_side(kind, wanted, high, is_least=False)
    if least is None or greatest is None:
        return ChunkBounds.unknown(wanted, len(low))
    return _drop_inconsistent(least, greatest)


def _drop_inconsistent(least: _Side, greatest: _Side) -> ChunkBounds:
    """Drop bounds in the wrong order, which are damaged; equal bounds are exact."""
    (low, is_low), (high, is_high) = least, greatest
    is_wrong = is_true(pc.greater(low, high))
    if is_wrong.any():
        wrong = to_arrow(is_wrong)
        low = pc.if_else(wrong, pa.scalar(None, low.type), low)
        high = pc.if_else(wrong, pa.scalar(None, high.type), high)
    is_one = is_true(pc.equal(low, high))
    return ChunkBounds(
        least=low,
        greatest=high,
        is_exact_least=(is_low | is_one) & to_numpy(low.is_valid()),
        is_exact_greatest=(is_high | is_one) & to_numpy(high.is_valid()),
    )


def _convert_side(
    kind: ParquetKind, wanted: Any, values: Sequence[Any], *, is_least: bool
) -> _Side | None:
    """Convert one side of the bounds, and tell which are exact; None if not comparable."""
    types = pa.types
    column: Any = None
    is_exact = np.ones(len(values), np.bool_)
    if kind.physical == "BOOLEAN" and types.is_boolean(wanted):
        column = _make_array(values, pa.bool_())
    elif kind.is_float and types.is_floating(wanted):
        return _convert_floats(kind, wanted, values, is_least=is_least)
    elif kind.logical == "DECIMAL":
        column = _convert_decimals(kind, wanted, values) if types.is_decimal(wanted) else None
    elif kind.is_bytes and kind.logical in _TEXT:
        is_text = types.is_string(wanted) or types.is_binary(wanted)
        column = _cast(_make_array(values, pa.binary()), wanted) if is_text else None
    elif kind.logical == "DATE":
        column = _make_array(values, pa.int32()).cast(wanted) if types.is_date32(wanted) else None
    elif kind.logical == "TIMESTAMP":
        return _convert_times(kind, wanted, values, is_least=is_least)
    elif kind.physical in _WHOLE and kind.logical in {"NONE", "INT"}:
        if types.is_floating(wanted):
            return _round_integers(wanted, values, is_least=is_least)
        is_whole = types.is_signed_integer(wanted)
        column = _cast(_make_array(values, pa.int64()), wanted) if is_whole else None
    return None if column is None else (column, is_exact)


def _cast(column: Any, wanted: Any) -> Any:
    """Cast to the wanted type; values that do not fit become null."""
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        return pa.concat_arrays([_cast_one(value, wanted) for value in column])


def _cast_one(value: Any, wanted: Any) -> Any:
    try:
        return pa.array([value.cast(wanted).as_py()], wanted)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return pa.nulls(1, wanted)


def _convert_floats(
    kind: ParquetKind, wanted: Any, values: Sequence[Any], *, is_least: bool
) -> _Side | None:
    """Convert floats: NaN becomes unknown, zeros get the outer sign.

    A float as a double is widened by one step: Hudi converts a float's shortest text to a double,
    other programs convert its bits.
    """
    if kind.physical == "DOUBLE" and pa.types.is_float32(wanted):
        return None
    is_wider = kind.physical == "FLOAT" and pa.types.is_float64(wanted)
    column = _make_array(values, pa.float32() if kind.physical == "FLOAT" else pa.float64())
    plain = _fill_nulls(column, np.nan)
    is_known = ~np.isnan(plain)
    zero = plain.dtype.type(-0.0 if is_least else 0.0)
    plain = np.where(plain == 0, zero, plain)
    is_exact = is_known.copy()
    if is_wider:
        outwards = np.float32(-np.inf if is_least else np.inf)
        plain = np.nextafter(plain, outwards).astype(np.float64)
        is_exact[:] = False
    return to_nullable(plain, is_known, wanted), is_exact


def _round_integers(wanted: Any, values: Sequence[Any], *, is_least: bool) -> _Side:
    """Convert whole numbers to floats; inexact ones are rounded outwards."""
    column = _make_array(values, pa.int64())
    whole = _fill_nulls(column, 0)
    kind = np.dtype(np.float32 if pa.types.is_float32(wanted) else np.float64)
    plain = whole.astype(kind)
    is_exact = (whole >= -_EXACT[wanted]) & (whole <= _EXACT[wanted])
    away = np.nextafter(plain, kind.type(-np.inf if is_least else np.inf))
    plain = np.where(is_exact, plain, away)
    plain = np.where(plain == 0, kind.type(-0.0 if is_least else 0.0), plain)
    return to_nullable(plain, to_numpy(column.is_valid()), wanted), is_exact


def _convert_decimals(kind: ParquetKind, wanted: Any, values: Sequence[Any]) -> Any:
    """Convert whole numbers or big-endian two's complement bytes, at the file's scale."""
    if kind.scale > wanted.scale:
        return None
    is_whole = kind.physical in _WHOLE
    whole = [v if is_whole or v is None else int.from_bytes(v, "big", signed=True) for v in values]
    try:
        data = b"".join((v or 0).to_bytes(_WIDE, "little", signed=True) for v in whole)
    except OverflowError:
        return None
    buffers = [to_arrow(_find_known(values)).buffers()[1], pa.py_buffer(data)]
    column = pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(values), buffers)
    return _cast(column, wanted)


def _convert_times(
    kind: ParquetKind, wanted: Any, values: Sequence[Any], *, is_least: bool
) -> _Side | None:
    """Convert to microseconds, rounded outwards; values beyond 64 bits are unknown."""
    if not (pa.types.is_timestamp(wanted) and kind.unit and kind.is_utc == bool(wanted.tz)):
        return None
    column = _make_array(values, pa.int64())
    is_known = to_numpy(column.is_valid())
    plain = _fill_nulls(column, 0)
    is_exact = is_known
    if kind.unit < _MICROS:
        times = _MICROS // kind.unit
        most = np.iinfo(np.int64).max // times
        is_known &= (plain >= -most) & (plain <= most)
        plain = np.where(is_known, plain, 0) * times
    elif kind.unit > _MICROS:
        by = kind.unit // _MICROS
        is_exact = is_known & (plain % by == 0)
        plain = plain // by if is_least else -(-plain // by)
    return to_nullable(plain, is_known, wanted), is_exact


def _fill_nulls(column: Any, value: float) -> NDArray[Any]:
    """Return the values of an array of numbers, with ``value`` in place of nulls."""
    kind = np.dtype(column.type.to_pandas_dtype())
    return np.where(to_numpy(column.is_valid()), view_values(column, kind), kind.type(value))


def _make_array(values: Any, kind: Any) -> Any:
    """Return values, some of them None, as an array of booleans, numbers or bytes.

    An Arrow array is cast. Raises OverflowError for a number that does not fit the type. pyarrow's
    own conversion would import pandas, which takes half a second.

    >>> _make_array([3, None], pa.int32()).to_pylist()
    [3, None]
    """
    if isinstance(values, pa.Array):
        return values.cast(kind)
    is_known = _find_known(values)
    if not pa.types.is_binary(kind):
        filled = [0 if value is None else value for value in values]
        return to_nullable(np.array(filled, kind.to_pandas_dtype()), is_known, kind)
    whole = [value or b"" for value in values]
    ends = np.zeros(len(whole) + 1, np.int32)
    np.cumsum(list(map(len, whole)), out=ends[1:])
    bits = None if is_known.all() else to_arrow(is_known).buffers()[1]
    data = [bits, pa.py_buffer(ends), pa.py_buffer(b"".join(whole))]
    return pa.Array.from_buffers(kind, len(whole), data)


def _find_known(values: Sequence[Any]) -> Mask:
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def is_true(column: Any) -> Mask:
    """Return a mask of the elements of a boolean array that are true and not null."""
    mask: Mask = to_numpy(column) & to_numpy(column.is_valid())
    return mask
