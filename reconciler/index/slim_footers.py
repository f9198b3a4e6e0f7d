"""Split Parquet footers, and merge those of many files into one without their bloom filters.

430 of the 440 kB of a Hudi footer are a bloom filter, which no index needs. A footer is a Thrift
struct: version and schema, number of rows, row groups, key-value pairs, the writer and the column
orders. This module separates the parts that differ between files: rows, row groups and pairs. The
row groups of files that agree in all else become one footer, which pyarrow parses at once. Every
byte except those of long values is checked; a footer in any other form is left whole.
Source: FileMetaData in parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Final

from reconciler.index import thrift_compact, thrift_patterns
from reconciler.index.thrift_compact import BINARY, LIST, STOP, STRUCT, MalformedError
from reconciler.lazy_dataclass import dataclass

_MAGIC: Final = b"PAR1"
_ARROW: Final = b"ARROW:schema"
_TAIL: Final = 8
_VERSION, _SCHEMA, _ROWS, _GROUPS, _PAIRS, _BY, _ORDERS = range(1, 8)
_STOP: Final = bytes([STOP])
_KEY: Final = 1  # field number of a pair's key; the value is the next field
_I32, _I64 = 5, 6


@dataclass(frozen=True, slots=True)
class FooterForm:
    """The bytes that the footers of files with one schema and writer share.

    ``before``: the bytes up to the number of rows. ``after``: the bytes behind the pairs.
    ``arrow``: the pair with the Arrow schema, which pyarrow reads.
    """

    before: bytes
    arrow: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SlimFooter:
    """A footer in parts.

    ``form``: the bytes shared with other files. ``rows``: number of rows of the file. ``groups``:
    the encoded row groups, ``group_count`` of them. ``chunks``: for each row group, the offsets in
    ``groups`` of its column chunks. ``pairs``: the requested key-value pairs.
    ``head_bytes``, ``tail_bytes``: length of the footer before and after the longest value of any
    other pair; the tail includes the last eight bytes of the file.
    """

    form: FooterForm
    rows: int
    groups: bytes
    group_count: int
    chunks: tuple[tuple[int, ...], ...]
    pairs: Mapping[bytes, bytes]
    head_bytes: int
    tail_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterEnds:
    """A footer up to the end of the file, without ``gap`` bytes between ``first`` and ``last``."""

    first: bytes
    last: bytes = b""
    gap: int = 0

    @classmethod
    def from_tail(cls, tail: bytes) -> FooterEnds:
        """Return the footer in the end of a file; ``tail`` may begin before the footer."""
        length = int.from_bytes(tail[-_TAIL:-4], "little") + _TAIL
        if len(tail) < length or not tail.endswith(_MAGIC):
            raise MalformedError("the footer is cut off")
        return cls(first=tail[-length:])


@dataclass(slots=True)
class FooterSlimmer:
    """Splits the footers of one table; remembers the schemas of the last ones, which repeat.

    ``keys``: keys of the pairs to keep.
    """

    keys: frozenset[bytes] = frozenset()
    _known: list[bytes] = field(default_factory=list)

    def slim(self, tail: bytes | FooterEnds) -> SlimFooter | None:
        """Split a footer; None if it has another form, or the gap is not inside a long value."""
        try:
            return self._slim(tail if isinstance(tail, FooterEnds) else FooterEnds.from_tail(tail))
        except MalformedError:
            return None

    def _slim(self, ends: FooterEnds) -> SlimFooter:
        data = ends.first
        before = self._read_schema(data)
        rows, at = thrift_compact.read_varint(
            data, _expect_field(data, len(before), _SCHEMA, (_ROWS, _I64))
        )
        if rows & 1:
            raise MalformedError("the number of rows is negative")
        many, kind, start = thrift_compact.read_list_header(
            data, _expect_field(data, at, _ROWS, (_GROUPS, LIST))
        )
        if kind != STRUCT:
            raise MalformedError("the list of row groups holds something else")
        at, begins = start, []
        for _ in range(many):
            at, chunks = thrift_patterns.split_row_group(data, at)
            begins.append(tuple(chunk - start for chunk in chunks))
        groups = data[start:at]
        number, kind, place = thrift_compact.read_field(data, at, _GROUPS)
        pairs: dict[bytes, bytes] = {}
        first, last, behind = at, _GROUPS, at
        data += ends.last
        if (number, kind) == (_PAIRS, LIST):
            last = _PAIRS
            pairs, at, first, behind = _read_pairs(data, place, ends, self.keys | {_ARROW})
        elif ends.gap:
            raise MalformedError("the gap is not inside one long value")
        return SlimFooter(
            form=FooterForm(before, pairs.pop(_ARROW, None), _normalize_end(data[at:-_TAIL], last)),
            rows=thrift_compact.decode_zigzag(rows),
            groups=groups,
            group_count=many,
            chunks=tuple(begins),
            pairs=pairs,
            head_bytes=first,
            tail_bytes=len(data) - behind,
        )

    def _read_schema(self, data: bytes) -> bytes:
        """Return the bytes of version and schema; known ones need not be parsed again."""
        for before in reversed(self._known):
            if data.startswith(before):
                return before
        at = thrift_compact.skip_value(data, _expect_field(data, 0, 0, (_VERSION, _I32)), _I32)
        at = thrift_compact.skip_value(
            data, _expect_field(data, at, _VERSION, (_SCHEMA, LIST)), LIST
        )
        before = data[:at]
        self._known.append(before)
        return before


def _expect_field(data: bytes, at: int, last: int, expected: tuple[int, int]) -> int:
    """Return where the value of the next field begins; raises unless it is the expected field."""
    number, kind, at = thrift_compact.read_field(data, at, last)
    if (number, kind) != expected:
        raise MalformedError(f"field {number} where {expected[0]} was expected")
    return at


def _read_pairs(
    data: bytes, at: int, ends: FooterEnds, keys: frozenset[bytes]
) -> tuple[dict[bytes, bytes], int, int, int]:
    """Return the wanted pairs by key, the end of all pairs, and the longest other value.

    The last two numbers are where that value begins and ends. ``data``: the first and the last
    bytes together; the length of a value around the gap includes the gap.
    """
    hole, gap = len(ends.first), ends.gap
    pairs: dict[bytes, bytes] = {}
    longest, begin, behind = 0, at, at
    size, kind, at = thrift_compact.read_list_header(data, at)
    if kind != STRUCT:
        raise MalformedError("the key-value pairs are not structs")
    for _ in range(size):
        key, at = thrift_patterns.read_pair_key(data, at)
        start, at = thrift_compact.read_binary(data, at)
        length = at - start
        if gap and at > hole:
            if start > hole or at < hole + gap or key in keys:
                raise MalformedError("the gap is not inside one long value")
            at, gap = at - gap, 0
        if key not in keys:
            if length > longest:
                longest, begin, behind = length, start, at
        elif key in pairs:
            raise MalformedError("a key occurs twice")
        else:
            pairs[key] = data[start:at]
        at = _expect_stop(data, at)
    if gap:
        raise MalformedError("the gap is not inside one long value")
    return pairs, at, begin, behind


def _expect_stop(data: bytes, at: int) -> int:
    """Return the end of a struct that must have no more fields."""
    if data[at : at + 1] != _STOP:
        raise MalformedError("a pair has unknown fields")
    return at + 1


def _normalize_end(data: bytes, last: int) -> bytes:
    """Return the last fields of a footer, re-encoded to follow directly after the pairs."""
    if not _is_known_end(data, last):
        raise MalformedError("the footer ends with unknown fields")
    if last == _PAIRS or data[0] == STOP:
        return data
    return bytes([data[0] - ((_PAIRS - last) << 4)]) + data[1:]


@lru_cache(maxsize=64)
def _is_known_end(data: bytes, last: int) -> bool:
    """Return whether these are at most the fields for the writer and the column orders."""
    at, kind = 0, -1
    while kind != STOP:
        last, kind, at = thrift_compact.read_field(data, at, last)
        if (last, kind) in {(_BY, BINARY), (_ORDERS, LIST)}:
            at = thrift_compact.skip_value(data, at, kind)
        elif kind != STOP:
            return False
    return at == len(data)


def merge_footers(files: Sequence[SlimFooter]) -> bytes:
    """Return one footer, as the end of a file, with the row groups of all files in order.

    All files have one form; at least one file. The only key-value pair is the Arrow schema.
    """
    form, many = files[0].form, sum(file.group_count for file in files)
    pairs = [] if form.arrow is None else [(_ARROW, form.arrow)]
    footer = b"".join(
        (
            form.before,
            _encode_field_header(_SCHEMA, _ROWS, _I64),
            thrift_compact.encode_varint(2 * sum(file.rows for file in files)),
            _encode_field_header(_ROWS, _GROUPS, LIST),
            thrift_compact.encode_list_header(STRUCT, many),
            *(file.groups for file in files),
            _encode_field_header(_GROUPS, _PAIRS, LIST),
            thrift_compact.encode_list_header(STRUCT, len(pairs)),
            *(_encode_pair(key, value) for key, value in pairs),
            form.after,
        )
    )
    return footer + len(footer).to_bytes(4, "little") + _MAGIC


def _encode_pair(key: bytes, value: bytes) -> bytes:
    """Encode a key-value pair."""
    return b"".join(
        (
            _encode_field_header(0, _KEY, BINARY),
            thrift_compact.encode_varint(len(key)) + key,
            _encode_field_header(_KEY, _KEY + 1, BINARY),
            thrift_compact.encode_varint(len(value)) + value,
            _STOP,
        )
    )


def _encode_field_header(last: int, number: int, kind: int) -> bytes:
    """Encode the header of a field that follows the field ``last``."""
    return bytes([(number - last) << 4 | kind])
