"""Convert values to lanes: unsigned 64-bit numbers that compare like the values.

A value with several lanes has the most significant one first. Text and bytes compare byte by byte;
for UTF-8 that is the order of code points, as in Spark, in Parquet's statistics and in Hudi. -0.0
equals 0.0, and NaN is above infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Floats, Integers, Mask, to_numpy, view_values
from reconciler.errors import UnsupportedError
from reconciler.lazy_dataclass import dataclass

Lane = NDArray[np.uint64]

SIGN: Final = np.uint64(1 << 63)
#: the lane of every NaN; only doubles have it
NAN: Final = np.uint64(0xFFF8_0000_0000_0000)

_WORD: Final = 8
_LANE: Final = 64
_MAX_LONG_DIGITS: Final = 18  # decimal digits that always fit into 63 bits
_BLOCK_ROWS: Final = 1 << 15  # rows at a time, so that all arrays stay in the CPU cache


def row_blocks(count: int) -> Iterator[slice]:
    """Yield the ranges of blocks that together have ``count`` rows."""
    return (slice(start, start + _BLOCK_ROWS) for start in range(0, count, _BLOCK_ROWS))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextBytes:
    """The bytes of a column of text or bytes: row i is ``data[starts[i]:ends[i]]``.

    ``words``: the eight bytes from every offset of ``data`` on, as a number.
    """

    words: Lane
    starts: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.starts)

    def lane(self, depth: int, rows: Integers | None = None) -> Lane:
        """Return the eight bytes from ``8 * depth`` on, big-endian, with zeros past the end."""
        at = slice(None) if rows is None else rows
        starts, ends = self.starts[at], self.ends[at]
        begins = np.minimum(starts + _WORD * depth, ends)
        missing = _WORD - np.minimum(ends - begins, _WORD)
        shift = (missing * 8).astype(np.uint64)
        return (self.words[begins].byteswap() >> shift) << shift

    def lengths(self, rows: Integers | None = None) -> Lane:
        """Return the number of bytes of each row."""
        at = slice(None) if rows is None else rows
        return (self.ends[at] - self.starts[at]).astype(np.uint64)


def to_plain_array(column: Any) -> Any:
    """Return a column as one array without chunks, dictionary or extension type."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text or bytes."""
    types = pa.types
    views = types.is_string_view(kind) or types.is_binary_view(kind)
    long = types.is_large_string(kind) or types.is_large_binary(kind)
    fixed = types.is_fixed_size_binary(kind) and not types.is_decimal(kind)
    return bool(views or long or fixed or types.is_string(kind) or types.is_binary(kind))


def is_null(column: Any) -> Mask:
    """Return a mask of the rows that are null."""
    if pa.types.is_null(column.type):
        return np.ones(len(column), np.bool_)
    return to_numpy(column.is_null()) if column.null_count else np.zeros(len(column), np.bool_)


def text_bytes(column: Any) -> TextBytes:
    """Return the bytes of a column of text or bytes; the content of null rows is undefined."""
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
    """Return the lanes of a column of fixed width; the content of null rows is undefined.

    There is one lane, or two to four for decimals of more than 18 digits. Raises UnsupportedError
    for a type whose values have no order, such as a struct.
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
        return (view_values(column, str(kind)).astype(np.uint64),)
    if types.is_integer(kind) or types.is_temporal(kind):
        return (_signed_lane(column, name),)
    raise unordered_column_error(name, kind)


def unordered_column_error(name: str, kind: pa.DataType) -> UnsupportedError:
    """Return the error for a column whose values have no order."""
    return UnsupportedError(f"rows cannot be clustered by column {name}, which is {kind}")


def _signed_lane(column: Any, name: str) -> Lane:
    widths = {8: "i1", 16: "<i2", 32: "<i4", 64: "<i8"}
    if pa.types.is_interval(column.type) or column.type.bit_width not in widths:
        raise unordered_column_error(name, column.type)
    values = view_values(column, widths[column.type.bit_width])
    return values.astype(np.int64).view(np.uint64) ^ SIGN


def double_values(column: Any) -> Floats:
    """Return the values of a column of numbers as doubles."""
    return view_values(column.cast(pa.float64()), "<f8")


def _double_lane(column: Any) -> Lane:
    with np.errstate(invalid="ignore"):  # a NaN may be signalling
        values = view_values(column, "<f8") + 0.0  # -0.0 becomes 0.0
    bits = values.view(np.uint64)
    below_zero = (bits.view(np.int64) >> np.int64(63)).view(np.uint64)  # all ones or none
    lane: Lane = bits ^ (below_zero | SIGN)
    lane[np.isnan(values)] = NAN
    return lane


def _decimal_lanes(column: Any) -> Sequence[Lane]:
    if column.type.bit_width < 2 * _LANE:
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    count = column.type.bit_width // _LANE
    words = view_values(column, "<u8", count)
    if column.type.precision <= _MAX_LONG_DIGITS:
        return (words[:, 0] ^ SIGN,)
    return (words[:, -1] ^ SIGN, *(words[:, i].copy() for i in range(count - 2, -1, -1)))


def truncate_decimals(column: Any) -> Integers:
    """Convert decimals like Java's BigDecimal.longValue: the lowest 64 bits, without fraction."""
    whole = column.cast(pa.decimal256(76, 0), safe=False)
    return view_values(whole, "<u8", 4)[:, 0].view(np.int64)
