"""Footers without what no index needs: of 440 kB of a footer of Hudi's a bloom filter is 430.

A footer is a Thrift struct: version and schema, the count of rows, row groups, key-value pairs, who
wrote it and the order of its columns. What of it stands for the file alone, rows, row groups and
pairs, is cut apart here; row groups of many files that are otherwise the same are then one footer,
which pyarrow reads at once. Every byte is accounted for but those of long values; a footer that is
not of just this form is left whole.
Source: FileMetaData in parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from reconciler.index import thrift_compact, thrift_patterns
from reconciler.index.thrift_compact import BINARY, LIST, STOP, STRUCT, MalformedError

_MAGIC: Final = b"PAR1"
_ARROW: Final = b"ARROW:schema"
_TAIL: Final = 8
_VERSION, _SCHEMA, _ROWS, _GROUPS, _PAIRS, _BY, _ORDERS = range(1, 8)
_STOP: Final = bytes([STOP])
_KEY: Final = 1  # of a pair, its value is the next field
_I32, _I64 = 5, 6


@dataclass(frozen=True, slots=True)
class FooterForm:
    """What footers of files of one schema and writer have in common, as it is written.

    ``arrow``: the schema as Arrow has it, a pair that pyarrow reads.
    """

    before: bytes
    arrow: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SlimFooter:
    """A footer cut apart.

    ``form``: what is before the count of rows and after the pairs; ``rows``: of the file;
    ``groups``: so ``group_count`` row groups, as they are written; ``chunks``: of each where in them its
    column chunks begin; ``pairs``: those that were asked for.
    ``head_bytes``, ``tail_bytes``: how many bytes of the footer are before the longest value of another pair
    and after it, the file's last eight among them.
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
    """A file's end from the footer's first byte on, but for ``gap`` bytes after ``head_bytes``."""

    first: bytes
    last: bytes = b""
    gap: int = 0

    @classmethod
    def from_tail(cls, tail: bytes) -> FooterEnds:
        """Of a file's end from the footer's first byte on, or from before it."""
        length = int.from_bytes(tail[-_TAIL:-4], "little") + _TAIL
        if len(tail) < length or not tail.endswith(_MAGIC):
            raise MalformedError("no end of a file")
        return cls(first=tail[-length:])


@dataclass(slots=True)
class FooterSlimmer:
    """Cuts footers of one table; remembers how the last ones began, for they are alike.

    ``keys``: of the pairs that are wanted.
    """

    keys: frozenset[bytes] = frozenset()
    _known: list[bytes] = field(default_factory=list)

    def slim(self, tail: bytes | FooterEnds) -> SlimFooter | None:
        """The footer cut apart; None where it is of another form, or the gap is elsewhere."""
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
            raise MalformedError("less than no rows")
        many, kind, start = thrift_compact.read_list_header(
            data, _expect_field(data, at, _ROWS, (_GROUPS, LIST))
        )
        if kind != STRUCT:
            raise MalformedError("no row groups")
        at, begins = start, []
        for _ in range(many):
            at, chunks = thrift_patterns.split_row_group(data, at)
            begins.append(tuple(chunk - start for chunk in chunks))
        groups = data[start:at]
        number, kind, place = thrift_compact.read_field(data, at, _GROUPS)
        found: dict[bytes, bytes] = {}
        first, last, behind = at, _GROUPS, at
        data += ends.last
        if (number, kind) == (_PAIRS, LIST):
            last = _PAIRS
            found, at, first, behind = _read_pairs(data, place, ends, self.keys | {_ARROW})
        elif ends.gap:
            raise MalformedError("the gap is elsewhere")
        return SlimFooter(
            form=FooterForm(before, found.pop(_ARROW, None), _normalize_end(data[at:-_TAIL], last)),
            rows=thrift_compact.decode_zigzag(rows),
            groups=groups,
            group_count=many,
            chunks=tuple(begins),
            pairs=found,
            head_bytes=first,
            tail_bytes=len(data) - behind,
        )

    def _read_schema(self, data: bytes) -> bytes:
        """Version and schema: the same first bytes are the same values."""
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
    """Where the value of the next field begins, which is the expected one."""
    number, kind, at = thrift_compact.read_field(data, at, last)
    if (number, kind) != expected:
        raise MalformedError(f"field {number} where {expected[0]} was expected")
    return at


def _read_pairs(
    data: bytes, at: int, ends: FooterEnds, keys: frozenset[bytes]
) -> tuple[dict[bytes, bytes], int, int, int]:
    """The pairs that begin here: by key those that are wanted, and where they end.

    Then of the longest value that is not, where it begins and ends. ``data``: first and last bytes
    together; a value that spans the gap between them counts with it.
    """
    hole, gap = len(ends.first), ends.gap
    found: dict[bytes, bytes] = {}
    longest, begin, behind = 0, at, at
    size, kind, at = thrift_compact.read_list_header(data, at)
    if kind != STRUCT:
        raise MalformedError("pairs of another kind")
    for _ in range(size):
        key, at = thrift_patterns.read_pair_key(data, at)
        start, at = thrift_compact.read_binary(data, at)
        length = at - start
        if gap and at > hole:
            if start > hole or at < hole + gap or key in keys:
                raise MalformedError("the gap is elsewhere")
            at, gap = at - gap, 0
        if key not in keys:
            if length > longest:
                longest, begin, behind = length, start, at
        elif key in found:
            raise MalformedError("a pair that comes twice")
        else:
            found[key] = data[start:at]
        at = _expect_stop(data, at)
    if gap:
        raise MalformedError("the gap is elsewhere")
    return found, at, begin, behind


def _expect_stop(data: bytes, at: int) -> int:
    """Where a struct ends that has no more fields."""
    if data[at : at + 1] != _STOP:
        raise MalformedError("a pair with more fields")
    return at + 1


def _normalize_end(data: bytes, last: int) -> bytes:
    """The last fields of a footer, as if its pairs were right before them."""
    if not _is_known_end(data, last):
        raise MalformedError("other fields at the end")
    if last == _PAIRS or data[0] == STOP:
        return data
    return bytes([data[0] - ((_PAIRS - last) << 4)]) + data[1:]


@lru_cache(maxsize=64)
def _is_known_end(data: bytes, last: int) -> bool:
    """Whether these are the writer and the orders of columns, or fewer, and nothing more."""
    at, kind = 0, -1
    while kind != STOP:
        last, kind, at = thrift_compact.read_field(data, at, last)
        if (last, kind) in {(_BY, BINARY), (_ORDERS, LIST)}:
            at = thrift_compact.skip_value(data, at, kind)
        elif kind != STOP:
            return False
    return at == len(data)


def merge_footers(files: Sequence[SlimFooter]) -> bytes:
    """The end of a file that has the row groups of all the files, in their order.

    They are of one form; at least one file. Of the pairs it has none but Arrow's schema.
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
    """A key-value pair as it is written."""
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
    """What stands before the value of a field that comes after the field ``tail_bytes``."""
    return bytes([(number - last) << 4 | kind])
