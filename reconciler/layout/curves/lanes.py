"""Values as unsigned 64-bit lanes whose order, most significant lane first, is the values' order.

Text and bytes compare byte by byte, which for UTF-8 is the order of code points, as in Spark, in
Parquet's statistics and in Hudi. -0.0 is 0.0, and NaN is above infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_numpy_bools
from reconciler.errors import UnsupportedError

Lane = NDArray[np.uint64]
Flags = NDArray[np.bool_]

SIGN: Final = np.uint64(1 << 63)
#: the lane of every NaN; only doubles have it
NAN: Final = np.uint64(0xFFF8_0000_0000_0000)

_WORD: Final = 8
_LANE: Final = 64
_MAX_LONG_DIGITS: Final = 18  # that 63 bits always hold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextBytes:
    """The bytes of a column of text or bytes: row i is ``data[starts[i]:ends[i]]``.

    ``words`` holds, for every offset of ``data``, the eight bytes from there as a number.
    """

    words: Lane
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def lane(self, depth: int, rows: NDArray[np.int64] | None = None) -> Lane:
        """Eight bytes from ``8 * depth`` on, the first one most significant; zeros past the end."""
        starts, ends = (self.starts, self.ends) if rows is None else _row_ends(self, rows)
        begins = np.minimum(starts + _WORD * depth, ends)
        missing = _WORD - np.minimum(ends - begins, _WORD)
        shift = (missing * 8).astype(np.uint64)
        return (self.words[begins].byteswap() >> shift) << shift

    def lengths(self, rows: NDArray[np.int64] | None = None) -> Lane:
        """Bytes of each row."""
        starts, ends = (self.starts, self.ends) if rows is None else _row_ends(self, rows)
        return (ends - starts).astype(np.uint64)


def _row_ends(
    text: TextBytes, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return text.starts[rows], text.ends[rows]


def to_plain_array(column: Any) -> Any:
    """One array of a type that stores its values itself: no chunks, dictionary or extension."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_text(kind: pa.DataType) -> bool:
    """Whether values of the type are as long as they like."""
    types = pa.types
    views = types.is_string_view(kind) or types.is_binary_view(kind)
    long = types.is_large_string(kind) or types.is_large_binary(kind)
    fixed = types.is_fixed_size_binary(kind) and not types.is_decimal(kind)
    return bool(views or long or fixed or types.is_string(kind) or types.is_binary(kind))


def is_null(column: Any) -> Flags:
    """Which rows have no value."""
    if pa.types.is_null(column.type):
        return np.ones(len(column), np.bool_)
    return (
        to_numpy_bools(column.is_null()) if column.null_count else np.zeros(len(column), np.bool_)
    )


def text_bytes(column: Any) -> TextBytes:
    """A column of text or bytes by its bytes; what null rows hold means nothing."""
    kind = column.type
    if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        column = column.cast(pa.large_binary())
    wide = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    if not len(column):
        none = np.zeros(0, np.int64)
        return TextBytes(words=np.zeros(1, np.uint64), starts=none, ends=none)
    whole = np.frombuffer(column.buffers()[1], wide)
    bounds = whole[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    data = np.zeros(last - first + _WORD, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(column.buffers()[2], np.uint8)[first:last]
    words = np.ndarray((last - first + 1,), "<u8", data, strides=(1,))
    return TextBytes(words=words, starts=bounds[:-1] - first, ends=bounds[1:] - first)


def fixed_lanes(column: Any, name: str) -> Sequence[Lane]:
    """One lane a column, or two to four for decimals of more than 18 digits; nulls hold anything.

    Raises UnsupportedError for a type whose values have no order, as a struct.
    """
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return (np.zeros(len(column), np.uint64),)
    if types.is_boolean(kind):
        column = column.cast(pa.uint8())
        kind = column.type
    if types.is_floating(kind):
        return (_double_lane(column.cast(pa.float64())),)
    if types.is_decimal(kind):
        return _decimal_lanes(column)
    if types.is_unsigned_integer(kind):
        return (_stored_values(column, str(kind)).astype(np.uint64),)
    if types.is_integer(kind) or types.is_temporal(kind):
        return (_signed_lane(column, name),)
    raise unordered_column_error(name, kind)


def unordered_column_error(name: str, kind: pa.DataType) -> UnsupportedError:
    """A column that rows cannot be ordered by."""
    return UnsupportedError(f"rows cannot be clustered by column {name}, which is {kind}")


def _signed_lane(column: Any, name: str) -> Lane:
    widths = {8: "i1", 16: "<i2", 32: "<i4", 64: "<i8"}
    if pa.types.is_interval(column.type) or column.type.bit_width not in widths:
        raise unordered_column_error(name, column.type)
    values = _stored_values(column, widths[column.type.bit_width])
    return values.astype(np.int64).view(np.uint64) ^ SIGN


def _stored_values(column: Any, dtype: str) -> NDArray[Any]:
    """What the column's memory holds, whatever nulls hold."""
    whole = np.frombuffer(column.buffers()[1] or b"", dtype)
    return whole[column.offset : column.offset + len(column)]


def double_values(column: Any) -> NDArray[np.float64]:
    """The values of a column of numbers with a fraction."""
    return _stored_values(column.cast(pa.float64()), "<f8")


def _double_lane(column: Any) -> Lane:
    with np.errstate(invalid="ignore"):  # a NaN may be a signalling one
        values = _stored_values(column, "<f8") + 0.0  # -0.0 becomes 0.0
    bits = values.view(np.uint64)
    below_zero = (bits.view(np.int64) >> np.int64(63)).view(np.uint64)  # all ones or none
    found: Lane = bits ^ (below_zero | SIGN)
    found[np.isnan(values)] = NAN
    return found


def _decimal_lanes(column: Any) -> Sequence[Lane]:
    if column.type.bit_width < 2 * _LANE:
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    count = column.type.bit_width // _LANE
    words = _stored_words(column, count)
    if column.type.precision <= _MAX_LONG_DIGITS:
        return (words[:, 0] ^ SIGN,)
    return (words[:, -1] ^ SIGN, *(words[:, i].copy() for i in range(count - 2, -1, -1)))


def _stored_words(column: Any, count: int) -> Lane:
    whole = np.frombuffer(column.buffers()[1] or b"", "<u8").reshape(-1, count)
    return whole[column.offset : column.offset + len(column)]


def truncate_decimals(column: Any) -> NDArray[np.int64]:
    """Decimals as Java's BigDecimal.longValue: no fraction, and the lowest 64 bits of the rest."""
    whole = column.cast(pa.decimal256(76, 0), safe=False)
    return _stored_words(whole, 4)[:, 0].view(np.int64)


def sort_text(values: Any) -> Any:
    """The rows of an Arrow array of text in order, nulls last, as an array of row numbers."""
    return pc.array_sort_indices(values, null_placement="at_end")
