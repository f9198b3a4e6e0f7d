"""Avro binary straight to Arrow columns: a field of all records at a time, no object per record.

Records of a log block lie behind their lengths, so every record's start is known; a field is read
at all positions at once, and what comes out is where the next field starts. Lists and maps take as
many rounds as the longest of them has entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import booleans, integers
from reconciler.hudi.schemaless import require
from reconciler.merge.avro_schema import Kind, Node

#: records decoded together: enough to be quick, few enough to stay in the cache
_TOGETHER: Final = 32 * 1024
#: zeros behind the data: what reads over its end by a number's length is found out afterwards
_PADDING: Final = 16
_LONGEST: Final = 10  # bytes of a varint
_WORD: Final = 16  # bytes of a decimal128
_LATEST: Final = 1 << 53  # milliseconds that fit as microseconds

Places = NDArray[np.int64]
#: owner, key and value of the entries of one round
Parts = list[tuple[Places, Any, Any]]


def decode_records(
    content: bytes, starts: Places, ends: Places, schema: Node, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """The named columns, as far as the schema has them, of records at ``starts`` in ``content``.

    Raises ValueError, LookupError or an Arrow error for bytes that are not what they claim.
    """
    data = np.frombuffer(content + bytes(_PADDING), np.uint8)
    reader = _Reader(data, pa.py_buffer(data), len(content))
    wanted = [(name, node) for name, node in schema.fields if name in columns]
    names = [name for name, _ in wanted]
    for first in range(0, len(starts), _TOGETHER):
        at = starts[first : first + _TOGETHER].copy()
        found = []
        for name, node in schema.fields:
            if name in columns:
                column, at = reader.read(node, at)
                found.append(column)
            else:
                at = reader.skip(node, at)
        require(bool((at == ends[first : first + _TOGETHER]).all()), "a record has another length")
        fields = [pa.field(name, node.arrow) for name, node in wanted]
        count = len(at)
        yield (
            pa.RecordBatch.from_arrays(found, schema=pa.schema(fields))
            if names
            else pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values at many places of ``data``; ``size`` without the padding."""

    data: NDArray[np.uint8]
    buffer: Any
    size: int

    def read(self, node: Node, at: Places) -> tuple[Any, Places]:
        """The values of one type at ascending places, and where the next ones start."""
        if not node.branches:
            return self._value(node, at)
        branch, at = self._branch(node, at)
        present = np.flatnonzero(branch != node.null) if node.null is not None else None
        if present is None or len(present) == len(at):
            return self._value(node, at)
        column, after = self._value(node, at[present])
        at[present] = after
        place = np.zeros(len(at), np.int64)
        place[present] = np.arange(len(present))
        gone = np.ones(len(at), np.bool_)
        gone[present] = False
        return column.take(pc.if_else(booleans(gone), None, integers(place))), at

    def skip(self, node: Node, at: Places) -> Places:
        """Where the next values start."""
        if not node.branches:
            return self._over(node, at)
        branch, at = self._branch(node, at)
        if node.null is None:
            return self._over(node, at)
        present = np.flatnonzero(branch != node.null)
        at[present] = self._over(node, at[present])
        return at

    def _branch(self, node: Node, at: Places) -> tuple[Places, Places]:
        branch, at = self._long(at)
        require(bool(((branch >= 0) & (branch < node.branches)).all()), "a union has no such type")
        return branch, at

    def _value(self, node: Node, at: Places) -> tuple[Any, Places]:  # noqa: PLR0911
        match node.kind:
            case Kind.NULL:
                return pa.nulls(len(at)), at
            case Kind.BOOLEAN:
                bits = self.data[at]
                require(not (bits > 1).any(), "a boolean is neither 0 nor 1")
                return booleans(bits.astype(np.bool_)), at + 1
            case Kind.INT | Kind.LONG | Kind.ENUM:
                value, at = self._long(at)
                return _number(node, value), at
            case Kind.FLOAT | Kind.DOUBLE:
                width = _WIDTHS[node.kind]
                raw = pa.py_buffer(self._fixed(at, width))
                return pa.Array.from_buffers(node.arrow, len(at), [None, raw]), at + width
            case Kind.BYTES | Kind.STRING | Kind.FIXED:
                return self._bytes(node, at)
            case Kind.ARRAY | Kind.MAP:
                return self._many(node, at)
            case Kind.RECORD:
                columns = []
                for _, field in node.fields:
                    column, at = self.read(field, at)
                    columns.append(column)
                return _struct(node, columns, len(at)), at
            case _:
                assert_never(node.kind)

    def _over(self, node: Node, at: Places) -> Places:
        match node.kind:
            case Kind.NULL | Kind.BOOLEAN | Kind.FLOAT | Kind.DOUBLE:
                return at + _WIDTHS[node.kind]
            case Kind.INT | Kind.LONG | Kind.ENUM:
                return self._long(at)[1]
            case Kind.BYTES | Kind.STRING | Kind.FIXED:
                return self._span(node, at)[1]
            case Kind.ARRAY | Kind.MAP:
                return self._rounds(node, at, None)
            case Kind.RECORD:
                for _, field in node.fields:
                    at = self.skip(field, at)
                return at
            case _:
                assert_never(node.kind)

    def _long(self, at: Places) -> tuple[Places, Places]:
        """Zig-zag numbers of variable length."""
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.uint64)
        after = at + 1
        more = np.flatnonzero(byte >= 0x80)  # noqa: PLR2004 (continuation bit)
        shift = 7
        while len(more):
            require(shift < 7 * _LONGEST, "a number has no end")
            byte = self.data[after[more]]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            after[more] += 1
            more = more[byte >= 0x80]  # noqa: PLR2004
            shift += 7
        signed = (value >> np.uint64(1)).view(np.int64) ^ -((value & np.uint64(1)).view(np.int64))
        return signed, after

    def _fixed(self, at: Places, width: int) -> NDArray[np.uint8]:
        """``width`` bytes at every place, a row each."""
        require(not len(at) or int(at.max()) + width <= len(self.data), "it is cut off")
        found: NDArray[np.uint8] = self.data[at[:, None] + np.arange(width)]
        return found

    def _span(self, node: Node, at: Places) -> tuple[Places, Places]:
        """Where bytes of a fixed or written length start and end."""
        if node.kind is Kind.FIXED:
            start, length = at, np.full(len(at), node.size, np.int64)
        else:
            length, start = self._long(at)
            require(bool(((length >= 0) & (length <= self.size)).all()), "a length is impossible")
        end = start + length
        require(not len(end) or int(end.max()) <= self.size, "it is cut off")
        return start, end

    def _bytes(self, node: Node, at: Places) -> tuple[Any, Places]:
        start, end = self._span(node, at)
        if node.logical == "decimal":
            return self._decimals(node, start, end), end
        # every other value is a gap between two of ours, and is not taken
        bounds = np.empty(2 * len(at) + 1, np.int64)
        bounds[0:-1:2], bounds[1::2] = start, end
        bounds[-1] = end[-1] if len(end) else 0
        raw = pa.py_buffer(bounds)
        both = pa.Array.from_buffers(pa.large_binary(), 2 * len(at), [None, raw, self.buffer])
        ours = both.take(integers(np.arange(0, 2 * len(at), 2)))
        kind = pa.string() if node.kind is Kind.STRING else pa.binary()
        return pc.cast(ours, kind), end

    def _decimals(self, node: Node, start: Places, end: Places) -> Any:
        """Big-endian numbers of any length as decimals of 16 bytes."""
        length = end - start
        require(bool((length > 0).all()), "a decimal has no bytes")
        sign = np.where(self.data[start] >= 0x80, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004
        out = np.empty((len(start), _WORD), np.uint8)
        for place in range(_WORD):
            out[:, place] = np.where(
                place < length, self.data[np.maximum(end - 1 - place, 0)], sign
            )
        extra = int(length.max()) if len(length) else 0
        for place in range(_WORD, extra):
            over = place < length
            same = self.data[np.maximum(end - 1 - place, 0)] == sign
            require(bool((~over | same).all()), "a decimal is too large")
        raw = pa.py_buffer(out)
        return pa.Array.from_buffers(node.arrow, len(start), [None, raw])

    def _many(self, node: Node, at: Places) -> tuple[Any, Places]:
        parts: Parts = []
        after = self._rounds(node, at, parts)
        owner = np.concatenate([part[0] for part in parts] or [np.zeros(0, np.int64)])
        order = integers(np.argsort(owner, kind="stable"))
        offsets = np.zeros(len(at) + 1, np.int32)
        np.cumsum(np.bincount(owner, minlength=len(at)), out=offsets[1:])
        empty = pa.array([], node.items.arrow)
        values = pa.concat_arrays([part[2] for part in parts] or [empty]).take(order)
        if node.kind is Kind.ARRAY:
            return pa.ListArray.from_arrays(integers(offsets), values, type=node.arrow), after
        keys = pa.concat_arrays([part[1] for part in parts] or [pa.array([], pa.string())])
        kept = keys.take(order)
        return pa.MapArray.from_arrays(integers(offsets), kept, values, type=node.arrow), after

    def _rounds(
        self, node: Node, at: Places, parts: list[tuple[Places, Any, Any]] | None
    ) -> Places:
        """Over the blocks of lists or maps; ``parts`` gets owner, key and value of each entry."""
        at = at.copy()
        active = np.arange(len(at))
        while len(active):
            count, at[active] = self._long(at[active])
            sized = np.flatnonzero(count < 0)  # then the size in bytes follows
            if len(sized):
                _, at[active[sized]] = self._long(at[active[sized]])
                count = np.abs(count)
            require(bool(((count >= 0) & (count <= self.size)).all()), "a list is impossible")
            active, count = active[count > 0], count[count > 0]
            round_ = 0
            mine = active
            while len(mine := active[count > round_]):
                at[mine] = self._entry(node, at[mine], mine, parts)
                require(int(at[mine].max()) <= self.size, "it is cut off")
                round_ += 1
        return at

    def _entry(self, node: Node, at: Places, owner: Places, parts: Parts | None) -> Places:
        keyed = node.kind is Kind.MAP
        if parts is None:
            at = self._over(_TEXT, at) if keyed else at
            return self.skip(node.items, at)
        key = None
        if keyed:
            key, at = self._bytes(_TEXT, at)
        value, at = self.read(node.items, at)
        parts.append((owner, key, value))
        return at


_TEXT: Final = Node(kind=Kind.STRING)
_WIDTHS: Final = {Kind.NULL: 0, Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}


def _number(node: Node, value: Places) -> Any:
    if node.kind is Kind.ENUM:
        require(
            bool(((value >= 0) & (value < len(node.symbols))).all()), "an enum has no such symbol"
        )
        return pa.array(node.symbols, pa.string()).take(integers(value))
    if node.kind is Kind.INT:
        small = value.astype(np.int32)
        require(bool((small == value).all()), "an int has more than 32 bits")
        return integers(small).view(node.arrow)
    if node.logical.endswith("millis"):
        require(bool((np.abs(value) < _LATEST).all()), "a time is out of range")
        value = value * 1000
    return integers(value).view(node.arrow)


def _struct(node: Node, columns: list[Any], count: int) -> Any:
    if not columns:
        return pa.array([{}] * count, node.arrow)
    return pa.StructArray.from_arrays(columns, fields=list(node.arrow))
