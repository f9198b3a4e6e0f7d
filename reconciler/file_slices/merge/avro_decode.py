"""Decode Avro binary straight to Arrow columns: one field of all records at a time.

Each record of a log block follows its length, so the start of every record is known. A field is
decoded at all offsets at once, which also gives the offsets of the next field. Lists and maps take
as many rounds as the longest one has entries. No Python object is made per record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.file_slices.merge.avro_schema import AvroKind, AvroNode
from reconciler.hudi.codecs.avro_binary import require
from reconciler.lazy_dataclass import dataclass

#: records decoded per batch, sized for the processor's cache
_BATCH_RECORDS: Final = 32 * 1024
#: zero bytes after the data, so that a read past its end can be detected afterwards
_PADDING: Final = 16
_LONGEST: Final = 10  # bytes of a varint
_WORD: Final = 16  # bytes of a decimal128
_LATEST: Final = 1 << 53  # milliseconds that fit as microseconds

Offsets = Integers
#: owner, key and value of the entries of one round
EntryParts = list[tuple[Offsets, Any, Any]]


def decode_records(
    content: bytes, starts: Offsets, ends: Offsets, schema: AvroNode, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the named columns that the schema has, of records at ``starts`` in ``content``.

    Raises ValueError, LookupError or an Arrow error for damaged bytes.
    """
    data = np.frombuffer(content + bytes(_PADDING), np.uint8)
    reader = _ColumnReader(data, pa.py_buffer(data), len(content))
    wanted = pa.schema([(name, node.arrow) for name, node in schema.fields if name in columns])
    for first in range(0, len(starts), _BATCH_RECORDS):
        at = starts[first : first + _BATCH_RECORDS].copy()
        columns_read = []
        for name, node in schema.fields:
            if name in columns:
                column, at = reader.read(node, at)
                columns_read.append(column)
            else:
                at = reader.skip(node, at)
        is_end = at == ends[first : first + _BATCH_RECORDS]
        _require_all(is_end, "a record's length differs from its fields")
        if wanted.names:
            yield pa.RecordBatch.from_arrays(columns_read, schema=wanted)
        else:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * len(at), pa.struct([])))


@dataclass(frozen=True, slots=True)
class _ColumnReader:
    """Reads values at many offsets of ``data``; ``size`` excludes the padding."""

    data: NDArray[np.uint8]
    buffer: Any
    size: int

    def read(self, node: AvroNode, at: Offsets) -> tuple[Any, Offsets]:
        """Return the values of one type at ascending offsets, and the offsets after them."""
        if not node.branches:
            return self._read_value(node, at)
        branch, at = self._read_branch(node, at)
        present = np.flatnonzero(branch != node.null) if node.null is not None else None
        if present is None or len(present) == len(at):
            return self._read_value(node, at)
        column, after = self._read_value(node, at[present])
        at[present] = after
        index = np.zeros(len(at), np.int64)
        index[present] = np.arange(len(present))
        is_null = np.ones(len(at), np.bool_)
        is_null[present] = False
        return column.take(pc.if_else(to_arrow(is_null), None, to_arrow(index))), at

    def skip(self, node: AvroNode, at: Offsets) -> Offsets:
        """Return the offsets after the values."""
        if not node.branches:
            return self._skip_value(node, at)
        branch, at = self._read_branch(node, at)
        if node.null is None:
            return self._skip_value(node, at)
        present = np.flatnonzero(branch != node.null)
        at[present] = self._skip_value(node, at[present])
        return at

    def _read_branch(self, node: AvroNode, at: Offsets) -> tuple[Offsets, Offsets]:
        branch, at = self._read_long(at)
        _require_all((branch >= 0) & (branch < node.branches), "a union branch is out of range")
        return branch, at

    def _read_value(self, node: AvroNode, at: Offsets) -> tuple[Any, Offsets]:  # noqa: PLR0911
        match node.kind:
            case AvroKind.NULL:
                return pa.nulls(len(at)), at
            case AvroKind.BOOLEAN:
                bits = self.data[at]
                require(not (bits > 1).any(), "a boolean is neither 0 nor 1")
                return to_arrow(bits.astype(np.bool_)), at + 1
            case AvroKind.INT | AvroKind.LONG | AvroKind.ENUM:
                value, at = self._read_long(at)
                return _to_number_array(node, value), at
            case AvroKind.FLOAT | AvroKind.DOUBLE:
                width = _WIDTHS[node.kind]
                raw = pa.py_buffer(self._read_fixed(at, width))
                return pa.Array.from_buffers(node.arrow, len(at), [None, raw]), at + width
            case AvroKind.BYTES | AvroKind.STRING | AvroKind.FIXED:
                return self._read_bytes(node, at)
            case AvroKind.ARRAY | AvroKind.MAP:
                return self._read_entries(node, at)
            case AvroKind.RECORD:
                columns = []
                for _, field in node.fields:
                    column, at = self.read(field, at)
                    columns.append(column)
                return _to_struct_array(node, columns, len(at)), at
            case _:
                assert_never(node.kind)

    def _skip_value(self, node: AvroNode, at: Offsets) -> Offsets:
        match node.kind:
            case AvroKind.NULL | AvroKind.BOOLEAN | AvroKind.FLOAT | AvroKind.DOUBLE:
                return at + _WIDTHS[node.kind]
            case AvroKind.INT | AvroKind.LONG | AvroKind.ENUM:
                return self._read_long(at)[1]
            case AvroKind.BYTES | AvroKind.STRING | AvroKind.FIXED:
                return self._read_span(node, at)[1]
            case AvroKind.ARRAY | AvroKind.MAP:
                return self._read_rounds(node, at, None)
            case AvroKind.RECORD:
                for _, field in node.fields:
                    at = self.skip(field, at)
                return at
            case _:
                assert_never(node.kind)

    def _read_long(self, at: Offsets) -> tuple[Offsets, Offsets]:
        """Read zig-zag numbers of variable length."""
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.uint64)
        after = at + 1
        more = np.flatnonzero(byte >= 0x80)  # noqa: PLR2004 (continuation bit)
        shift = 7
        while len(more):
            require(shift < 7 * _LONGEST, "a number is longer than 10 bytes")
            byte = self.data[after[more]]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            after[more] += 1
            more = more[byte >= 0x80]  # noqa: PLR2004
            shift += 7
        signed = (value >> np.uint64(1)).view(np.int64) ^ -((value & np.uint64(1)).view(np.int64))
        return signed, after

    def _read_fixed(self, at: Offsets, width: int) -> NDArray[np.uint8]:
        """Return ``width`` bytes at every offset, one row each."""
        require(not len(at) or int(at.max()) + width <= len(self.data), "the data is truncated")
        rows: NDArray[np.uint8] = self.data[at[:, None] + np.arange(width)]
        return rows

    def _read_span(self, node: AvroNode, at: Offsets) -> tuple[Offsets, Offsets]:
        """Return where bytes of a fixed or stored length start and end."""
        if node.kind is AvroKind.FIXED:
            start, length = at, np.full(len(at), node.size, np.int64)
        else:
            length, start = self._read_long(at)
            _require_all((length >= 0) & (length <= self.size), "a length is out of range")
        end = start + length
        require(not len(end) or int(end.max()) <= self.size, "the data is truncated")
        return start, end

    def _read_bytes(self, node: AvroNode, at: Offsets) -> tuple[Any, Offsets]:
        start, end = self._read_span(node, at)
        if node.logical == "decimal":
            return self._read_decimals(node, start, end), end
        # every second value is a gap between two wanted ones and is dropped
        bounds = np.empty(2 * len(at) + 1, np.int64)
        bounds[0:-1:2], bounds[1::2] = start, end
        bounds[-1] = end[-1] if len(end) else 0
        raw = pa.py_buffer(bounds)
        both = pa.Array.from_buffers(pa.large_binary(), 2 * len(at), [None, raw, self.buffer])
        values = both.take(to_arrow(np.arange(0, 2 * len(at), 2)))
        kind = pa.string() if node.kind is AvroKind.STRING else pa.binary()
        return pc.cast(values, kind), end

    def _read_decimals(self, node: AvroNode, start: Offsets, end: Offsets) -> Any:
        """Read big-endian numbers of any length as decimals of 16 bytes."""
        length = end - start
        _require_all(length > 0, "a decimal has no bytes")
        sign = np.where(self.data[start] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004
        out = np.empty((len(start), _WORD), np.uint8)
        for index in range(_WORD):
            out[:, index] = np.where(
                index < length, self.data[np.maximum(end - 1 - index, 0)], sign
            )
        extra = int(length.max()) if len(length) else 0
        for index in range(_WORD, extra):
            is_longer = index < length
            same = self.data[np.maximum(end - 1 - index, 0)] == sign
            _require_all(~is_longer | same, "a decimal is too large")
        raw = pa.py_buffer(out)
        return pa.Array.from_buffers(node.arrow, len(start), [None, raw])

    def _read_entries(self, node: AvroNode, at: Offsets) -> tuple[Any, Offsets]:
        parts: EntryParts = []
        after = self._read_rounds(node, at, parts)
        owner = np.concatenate([part[0] for part in parts] or [np.zeros(0, np.int64)])
        order = to_arrow(np.argsort(owner, kind="stable"))
        offsets = np.zeros(len(at) + 1, np.int32)
        np.cumsum(np.bincount(owner, minlength=len(at)), out=offsets[1:])
        empty = pa.array([], node.items.arrow)
        values = pa.concat_arrays([part[2] for part in parts] or [empty]).take(order)
        ends = to_arrow(offsets)
        if node.kind is AvroKind.ARRAY:
            return pa.ListArray.from_arrays(ends, values, type=node.arrow), after
        keys = pa.concat_arrays([part[1] for part in parts] or [pa.array([], pa.string())])
        return pa.MapArray.from_arrays(ends, keys.take(order), values, type=node.arrow), after

    def _read_rounds(self, node: AvroNode, at: Offsets, parts: EntryParts | None) -> Offsets:
        """Walk the blocks of lists or maps; return the offsets after them.

        ``parts`` receives owner, key and value of each entry; None skips the entries.
        """
        at = at.copy()
        active = np.arange(len(at))
        while len(active):
            count, at[active] = self._read_long(at[active])
            sized = np.flatnonzero(count < 0)  # a negative count is followed by the size in bytes
            if len(sized):
                _, at[active[sized]] = self._read_long(at[active[sized]])
                count = np.abs(count)
            _require_all((count >= 0) & (count <= self.size), "a list's length is out of range")
            active, count = active[count > 0], count[count > 0]
            round_ = 0
            owners = active
            while len(owners := active[count > round_]):
                at[owners] = self._read_entry(node, at[owners], owners, parts)
                require(int(at[owners].max()) <= self.size, "the data is truncated")
                round_ += 1
        return at

    def _read_entry(
        self, node: AvroNode, at: Offsets, owner: Offsets, parts: EntryParts | None
    ) -> Offsets:
        keyed = node.kind is AvroKind.MAP
        if parts is None:
            at = self._skip_value(_TEXT, at) if keyed else at
            return self.skip(node.items, at)
        key = None
        if keyed:
            key, at = self._read_bytes(_TEXT, at)
        value, at = self.read(node.items, at)
        parts.append((owner, key, value))
        return at


_TEXT: Final = AvroNode(kind=AvroKind.STRING)
_WIDTHS: Final = {AvroKind.NULL: 0, AvroKind.BOOLEAN: 1, AvroKind.FLOAT: 4, AvroKind.DOUBLE: 8}


def _require_all(holds: Mask, problem: str) -> None:
    require(bool(holds.all()), problem)


def _to_number_array(node: AvroNode, value: Offsets) -> Any:
    if node.kind is AvroKind.ENUM:
        _require_all((value >= 0) & (value < len(node.symbols)), "an enum symbol is out of range")
        return pa.array(node.symbols, pa.string()).take(to_arrow(value))
    if node.kind is AvroKind.INT:
        small = value.astype(np.int32)
        _require_all(small == value, "an int has more than 32 bits")
        return to_arrow(small).view(node.arrow)
    if node.logical.endswith("millis"):
        _require_all(np.abs(value) < _LATEST, "a time is out of range")
        value = value * 1000
    return to_arrow(value).view(node.arrow)


def _to_struct_array(node: AvroNode, columns: list[Any], count: int) -> Any:
    if not columns:
        return pa.array([{}] * count, node.arrow)
    return pa.StructArray.from_arrays(columns, fields=list(node.arrow))
