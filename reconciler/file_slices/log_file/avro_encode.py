"""Encode Arrow columns as Avro binary: one column of all records at a time.

Every column becomes an array of byte strings, which Arrow joins to records. No Python object is
made per record. The inverse of ``merge.avro_decode``; the bytes are those of Java's BinaryEncoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.merge.avro_schema import AvroKind, AvroNode
from reconciler.hudi.codecs.log_blocks import CONTENT_VERSION

#: records encoded per batch, sized for the processor's cache
_BATCH_RECORDS: Final = 32 * 1024
_LONGEST: Final = 10  # bytes of a varint
_WORD: Final = 16  # bytes of a decimal128
_LENGTH_BYTES: Final = 4  # bytes of a record's length
_MILLIS: Final = 1000
_REMEDY: Final = "evolve the table's schema with Hudi to fit its rows"

#: strings of bytes, one per value; a scalar if all are equal
Pieces = list[Any]


def encode_records(batch: Any, schema: AvroNode, path: str) -> Iterator[Any]:
    """Yield the records of a batch as large binary arrays, a part of the batch at a time.

    ``schema``: of a record; the batch has its columns, in the types of ``AvroNode.arrow``. Raises
    FormatError naming ``path`` and the column for a null that the schema forbids.
    """
    for start in range(0, len(batch), _BATCH_RECORDS):
        rows = batch.slice(start, _BATCH_RECORDS)
        pieces: Pieces = []
        for name, node in schema.fields:
            encoder = _ValueEncoder(f"{path}, column {name}")
            pieces += encoder.encode(node, rows.column(name), None)
        yield join_pieces(pieces, len(rows))


def encode_avro_content(parts: Iterable[Any]) -> bytes:
    """Return the content of an AVRO_DATA block with records (``encode_records``)."""
    count, chunks = 0, []
    for records in parts:
        lengths = to_numpy(pc.binary_length(records)).astype(">i4")
        prefixes = _to_binary(lengths.view(np.uint8), np.full(len(records), _LENGTH_BYTES))
        framed = join_pieces([prefixes, records], len(records))
        ends = _read_offsets(framed)
        chunks.append(framed.buffers()[2][int(ends[0]) : int(ends[-1])].to_pybytes())
        count += len(records)
    return struct.pack(">ii", CONTENT_VERSION, count) + b"".join(chunks)


def encode_values(node: AvroNode, column: Any, where: str) -> Pieces:
    """Return the pieces of every value of a column without nulls; ``where``: its name in errors."""
    return _ValueEncoder(where).encode(node, column, None)


def encode_longs(values: Integers) -> Any:
    """Return int64 numbers as Avro's zig-zag varints, a large binary array.

    >>> [value.hex() for value in encode_longs(np.array([48, 64, -1])).to_pylist()]
    ['60', '8001', '01']
    """
    signed = values.astype(np.int64)
    number = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    length = np.ones(len(number), np.int64)
    for nth in range(1, _LONGEST):
        is_longer = number >= np.uint64(1 << 7 * nth)
        if not is_longer.any():
            break
        length += is_longer
    width = np.arange(int(length.max(initial=1)))
    groups = (number[:, None] >> (7 * width).astype(np.uint64)) & np.uint64(0x7F)
    groups = groups.astype(np.uint8) | np.where(width < length[:, None] - 1, 0x80, 0).astype(
        np.uint8
    )
    return _to_binary(groups[width < length[:, None]], length)


class _ValueEncoder:
    """Encodes values of one column; ``where`` names it in errors."""

    def __init__(self, where: str) -> None:
        self._where = where

    def encode(self, node: AvroNode, column: Any, parent: Mask | None) -> Pieces:
        """Return the pieces of every value, to be joined in their order.

        ``parent``: which rows count, where the column is a child of others that may be null.
        """
        if node.kind is AvroKind.NULL:
            return [encode_longs(np.zeros(1, np.int64))[0]] if node.branches else []
        is_null = to_numpy(column.is_null()) if column.null_count else None
        if is_null is not None and node.null is None:
            missing = is_null if parent is None else is_null & parent
            if missing.any():
                raise FormatError(
                    self._where,
                    f"rows cannot be written: it is null in {int(missing.sum())} of {len(column)} "
                    "rows, and the schema requires a value",
                    _REMEDY,
                )
        is_valid = parent if is_null is None else ~is_null if parent is None else parent & ~is_null
        body = self._encode_body(node, column, is_valid)
        if not node.branches:
            return body
        present, absent = _encode_branches(node)
        if is_null is None or node.null is None:
            return [present, *body]
        value = join_pieces([present, *body], len(column))
        return [pc.if_else(to_arrow(is_null), absent, value)]

    def _encode_body(  # noqa: PLR0911 (one per kind)
        self, node: AvroNode, column: Any, is_valid: Mask | None
    ) -> Pieces:
        match node.kind:
            case AvroKind.NULL:
                return []
            case AvroKind.BOOLEAN | AvroKind.FLOAT | AvroKind.DOUBLE:
                return [_encode_plain(node, column)]
            case AvroKind.INT | AvroKind.LONG:
                return [encode_longs(_to_numbers(node, column))]
            case AvroKind.ENUM:
                return [encode_longs(self._find_symbols(node, column, is_valid))]
            case AvroKind.BYTES | AvroKind.STRING:
                return self._encode_bytes(node, column)
            case AvroKind.FIXED:
                return [self._encode_fixed(node, column, is_valid)]
            case AvroKind.ARRAY | AvroKind.MAP:
                return self._encode_entries(node, column, is_valid)
            case AvroKind.RECORD:
                return self._encode_fields(node, column, is_valid)
            case _:
                assert_never(node.kind)

    def _encode_fields(self, node: AvroNode, column: Any, is_valid: Mask | None) -> Pieces:
        pieces: Pieces = []
        for at, (name, field) in enumerate(node.fields):
            inner = _ValueEncoder(f"{self._where}.{name}")
            pieces += inner.encode(field, column.field(at), is_valid)
        return pieces

    def _find_symbols(self, node: AvroNode, column: Any, is_valid: Mask | None) -> Integers:
        found = pc.index_in(column, value_set=pa.array(node.symbols, pa.string()))
        is_unknown = to_numpy(found.is_null())
        if is_valid is not None:
            is_unknown = is_unknown & is_valid
        if is_unknown.any():
            value = column[int(np.flatnonzero(is_unknown)[0])].as_py()
            raise FormatError(self._where, f"{value!r} is none of its symbols", _REMEDY)
        return to_numpy(found.fill_null(0)).astype(np.int64)

    def _encode_bytes(self, node: AvroNode, column: Any) -> Pieces:
        if node.logical == "decimal":
            words = _read_decimals(column)
            used = _count_decimal_bytes(words)
            is_used = np.arange(_WORD) >= _WORD - used[:, None]
            return [encode_longs(used), _to_binary(words[is_used], used)]
        values = column.fill_null("" if node.kind is AvroKind.STRING else b"")
        return [
            encode_longs(to_numpy(pc.binary_length(values)).astype(np.int64)),
            values.cast(pa.large_binary()),
        ]

    def _encode_fixed(self, node: AvroNode, column: Any, is_valid: Mask | None) -> Any:
        if node.logical == "decimal":
            words, size = _read_decimals(column), node.size
            sign = np.where(words[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004
            wide = np.hstack([np.repeat(sign, max(size - _WORD, 0), axis=1), words])
            return _to_binary(wide[:, wide.shape[1] - size :].ravel(), np.full(len(words), size))
        values = column.cast(pa.large_binary()).fill_null(bytes(node.size))
        is_wrong = to_numpy(pc.binary_length(values)) != node.size
        if is_valid is not None:
            is_wrong = is_wrong & is_valid
        if is_wrong.any():
            value = values[int(np.flatnonzero(is_wrong)[0])].as_py()
            raise FormatError(
                self._where, f"a value has {len(value)} bytes, expected {node.size}", _REMEDY
            )
        return values

    def _encode_entries(self, node: AvroNode, column: Any, is_valid: Mask | None) -> Pieces:
        """Encode lists or maps: the number of entries, the entries, and a zero."""
        offsets = to_numpy(column.offsets).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        count = np.diff(offsets)
        keeps = None if is_valid is None else np.repeat(is_valid, count)
        entry: Pieces = []
        if node.kind is AvroKind.MAP:
            keys = column.keys.slice(first, last - first)
            entry += self._encode_body(AvroNode(kind=AvroKind.STRING), keys, None)
            items = column.items.slice(first, last - first)
            entry += _ValueEncoder(f"{self._where}.value").encode(node.items, items, keeps)
        else:
            items = column.values.slice(first, last - first)
            entry += _ValueEncoder(f"{self._where}.element").encode(node.items, items, keeps)
        joined = join_pieces(entry, last - first)
        # lists of byte strings become byte strings: the same bytes, cut where the lists end
        bodies = _from_offsets(_read_offsets(joined)[offsets - first], joined.buffers()[2])
        prefix = encode_longs(count)
        filled = pc.if_else(to_arrow(count > 0), prefix, pa.scalar(b"", pa.large_binary()))
        return [filled, bodies, pa.scalar(b"\0", pa.large_binary())]


def _encode_branches(node: AvroNode) -> tuple[Any, Any]:
    """Return the bytes of a union's branch of values, and of that of nulls, as scalars."""
    value = 0 if node.null is None or node.null > 0 else 1
    present, absent = encode_longs(np.array([value, node.null or 0], np.int64)).to_pylist()
    return pa.scalar(present, pa.large_binary()), pa.scalar(absent, pa.large_binary())


def _encode_plain(node: AvroNode, column: Any) -> Any:
    """Return values of a fixed width as they are in memory."""
    if node.kind is AvroKind.BOOLEAN:
        data = to_numpy(column.fill_null(False)).astype(np.uint8)
        return _to_binary(data, np.ones(len(column), np.int64))
    bits = pa.int32() if node.kind is AvroKind.FLOAT else pa.int64()
    words = to_numpy(column.fill_null(0.0).view(bits))
    return _to_binary(words.view(np.uint8), np.full(len(words), words.dtype.itemsize))


def _to_numbers(node: AvroNode, column: Any) -> Integers:
    plain = column.view(pa.int32() if node.kind is AvroKind.INT else pa.int64())
    numbers: Integers = to_numpy(plain.fill_null(0)).astype(np.int64)
    if node.kind is AvroKind.LONG and node.logical.endswith("millis"):
        return numbers // _MILLIS  # rounds down as Java does, before 1970 too
    return numbers


def _read_decimals(column: Any) -> NDArray[np.uint8]:
    """Return the unscaled numbers of decimals, 16 bytes each, the most significant first."""
    whole = column.fill_null(0)
    raw = np.frombuffer(whole.buffers()[1], np.uint8)
    start = whole.offset * _WORD
    words: NDArray[np.uint8] = raw[start : start + len(whole) * _WORD].reshape(-1, _WORD)[:, ::-1]
    return words


def _count_decimal_bytes(words: NDArray[np.uint8]) -> Integers:
    """Return how many of the last bytes are needed, as Java's BigInteger.toByteArray."""
    sign = np.where(words[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004
    is_same_sign = (words[:, 1:] >= 0x80) == (sign == 0xFF)  # noqa: PLR2004
    is_spare = np.logical_and.accumulate((words[:, :-1] == sign) & is_same_sign, axis=1)
    used: Integers = _WORD - is_spare.sum(axis=1).astype(np.int64)
    return used


def _to_binary(data: NDArray[np.uint8], lengths: Integers) -> Any:
    """Return byte strings of these lengths, one after the other in ``data``."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _from_offsets(offsets, pa.py_buffer(np.ascontiguousarray(data)))


def _from_offsets(offsets: Integers, data: Any) -> Any:
    raw = pa.py_buffer(np.ascontiguousarray(offsets, np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, raw, data])


def _read_offsets(strings: Any) -> Integers:
    """Return where each of some large binary values starts in their data, and the last one ends."""
    if not len(strings):
        return np.zeros(1, np.int64)
    whole = np.frombuffer(strings.buffers()[1], np.int64, strings.offset + len(strings) + 1)
    return whole[strings.offset :]


def join_pieces(pieces: Pieces, count: int) -> Any:
    """Join the pieces of every row; a row of no pieces is empty."""
    arrays = [piece for piece in pieces if not isinstance(piece, pa.Scalar)]
    if not arrays:
        text = b"".join(piece.as_py() for piece in pieces)
        return pa.array([text] * count, pa.large_binary())
    if len(pieces) == 1:
        return pieces[0]
    separator = pa.scalar(b"", pa.large_binary())
    return pc.binary_join_element_wise(*pieces, separator)
