"""Column chunks that pyarrow can be asked about: of damaged ones it ends the process.

What it checks of a chunk when it is asked is checked here before: that bounds are as long as the
column's type is, that histograms of levels have an element a level, that nothing is encrypted.
Source: ColumnChunkMetaData, SizeStatistics::Validate and MakeColumnStats of parquet-cpp, whose
exceptions pyarrow does not catch; ColumnChunk in parquet.thrift.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from reconciler.index import compact, shapes
from reconciler.index.compact import BINARY, LIST, STOP, STRUCT, MalformedError

_I32, _I64 = 5, 6
#: field of a footer, of a row group, of a chunk, of what that says, and of its statistics
_GROUPS: Final = 4
_COLUMNS: Final = 1
_META, _CRYPTO = 3, 8
_TYPE, _PATH, _STATISTICS, _SIZES = 1, 3, 12, 16
_BOUNDS: Final = frozenset({1, 2, 5, 6})
_BYTES, _REPETITION, _DEFINITION = 1, 2, 3
_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
                 "FIXED_LEN_BYTE_ARRAY")  # fmt: skip
_LENGTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TAIL: Final = 8
#: bytes, and where in them the column chunks of a row group begin
Starts = tuple[bytes, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column as the schema has it. ``length``: of its values in bytes, None where it varies.

    ``levels``: the greatest repetition and definition level.
    """

    physical: str
    length: int | None
    levels: tuple[int, int]

    @classmethod
    def of(cls, column: Any) -> Self:
        """Of pyarrow's ColumnSchema."""
        physical = column.physical_type
        fixed = column.length if physical == "FIXED_LEN_BYTE_ARRAY" else None
        levels = (column.max_repetition_level, column.max_definition_level)
        return cls(physical, _LENGTHS.get(physical, fixed), levels)

    def are_askable(self, chunks: Iterable[tuple[bytes, int]]) -> bool:
        """Whether pyarrow may be asked about chunks of this column, which begin at these places."""
        match = _usual(self)
        return all(match(data, at) or self._is_whole(data, at) for data, at in chunks)

    def _is_whole(self, data: bytes, at: int) -> bool:
        try:
            return self._is_plain(data, at)
        except MalformedError:
            return False

    def _is_plain(self, data: bytes, at: int) -> bool:
        for number, kind, start in _fields(data, at):
            if number == _CRYPTO:
                return False
            if (number, kind) == (_META, STRUCT) and not self._says(data, start):
                return False
        return True

    def _says(self, data: bytes, at: int) -> bool:
        is_type = False
        for number, kind, start in _fields(data, at):
            if (number, kind) == (_TYPE, _I32):
                named = compact.unzigzag(compact.varint(data, start)[0])
                is_type = 0 <= named < len(_TYPES) and _TYPES[named] == self.physical
            # nobody asks for statistics of another type
            elif (number, kind) == (_STATISTICS, STRUCT):
                if is_type and not self._bounds(data, start):
                    return False
            elif (number, kind) == (_SIZES, STRUCT) and not self._sizes(data, start):
                return False
        return True

    def _bounds(self, data: bytes, at: int) -> bool:
        for number, kind, start in _fields(data, at):
            if number in _BOUNDS and kind == BINARY and self.length is not None:
                begin, end = compact.binary(data, start)
                if end - begin != self.length:
                    return False
        return True

    def _sizes(self, data: bytes, at: int) -> bool:
        for number, kind, start in _fields(data, at):
            if (number, kind) == (_BYTES, _I64) and self.physical != "BYTE_ARRAY":
                return False
            if number in {_REPETITION, _DEFINITION} and kind == LIST:
                size = compact.listed(data, start)[0]
                if size not in {0, self.levels[number - _REPETITION] + 1}:
                    return False
        return True


def leaves_of(schema: Any) -> tuple[Leaf, ...]:
    """Of all columns of pyarrow's ParquetSchema."""
    return tuple(Leaf.of(schema.column(at)) for at in range(len(schema)))


def can_be_asked(tail: bytes, schema: Any) -> bool:
    """Whether pyarrow may be asked about every chunk of a file that it has read the schema of.

    ``tail``: the file's end, from the footer's first byte on or from before it.
    """
    leaves = leaves_of(schema)
    try:
        groups = starts_of(tail)
    except MalformedError:
        return False
    return all(
        len(starts) == len(leaves)
        and all(leaf.are_askable([(tail, at)]) for leaf, at in zip(leaves, starts, strict=True))
        for starts in groups
    )


def starts_of(tail: bytes) -> list[tuple[int, ...]]:
    """Of every row group of a footer where its chunks begin; raises MalformedError."""
    at = len(tail) - _TAIL - int.from_bytes(tail[-_TAIL:-4], "little")
    if at < 0:
        raise MalformedError("no end of a file")
    found: list[tuple[int, ...]] = []
    for number, kind, start in _fields(tail, at):
        if (number, kind) == (_GROUPS, LIST):
            size, element, begin = compact.listed(tail, start)
            if size and element != STRUCT:
                raise MalformedError("no row groups")
            for _ in range(size):
                begin, starts = shapes.row_group(tail, begin)
                found.append(starts)
    return found


def path_of(data: bytes, at: int) -> bytes:
    """What the chunk that begins here says of its column: its path, with dots."""
    for number, kind, start in _fields(data, at):
        if (number, kind) == (_META, STRUCT):
            for inner, sort, begin in _fields(data, start):
                if (inner, sort) == (_PATH, LIST):
                    return b".".join(_texts(data, begin))
    raise MalformedError("a chunk of no column")


def _texts(data: bytes, at: int) -> Iterator[bytes]:
    size, kind, at = compact.listed(data, at)
    if kind != BINARY:
        raise MalformedError("a path of another kind")
    for _ in range(size):
        begin, at = compact.binary(data, at)
        if at > len(data):
            raise MalformedError("a text does not end")
        yield data[begin:at]


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a struct: number, kind, and where the value begins."""
    last = 0
    while True:
        last, kind, at = compact.field(data, at, last)
        if kind == STOP:
            return
        yield last, kind, at
        at = compact.after(data, at, kind)


@lru_cache(maxsize=256)
def _usual(leaf: Leaf) -> shapes.Match:
    """What matches the chunks of a column as writers usually write them, and no others."""
    number = shapes.of(*compact.WHOLE) + shapes.NUMBER
    plain = shapes.either(number, shapes.of(LIST) + shapes.lists())
    texts = shapes.text(shapes.LONGER) if leaf.length is None else shapes.text_of(leaf.length)
    meta = rb"\x15%b(?:%b)*+(?:[\x1c\x2c\x3c]%b)?+(?:%b)*+(?:%b%b\x00)?+\x00" % (
        re.escape(compact.as_varint(2 * _TYPES.index(leaf.physical))),
        plain,
        shapes.struct(shapes.of(BINARY) + texts),
        plain,
        shapes.of(STRUCT),
        _usual_sizes(leaf),
    )
    chunk = rb"(?:%b)*+%b%b(?:%b)*+\x00" % (number, shapes.of(STRUCT), meta, number)
    return re.compile(chunk, re.DOTALL).match


def _usual_sizes(leaf: Leaf) -> bytes:
    """Histograms of repetition and of definition levels, and bytes of texts before them."""
    repetition, definition = (_histogram(level + 1) for level in leaf.levels)
    found = [
        rb"\x29%b\x19%b" % (repetition, definition),
        rb"\x29" + repetition,
        rb"\x39" + definition,
    ]
    if leaf.physical == "BYTE_ARRAY":
        count = rb"\x16" + shapes.NUMBER
        found += [
            rb"%b\x19%b\x19%b" % (count, repetition, definition),
            rb"%b\x19%b" % (count, repetition),
            rb"%b\x29%b" % (count, definition),
            count,
        ]
    return rb"(?:%b|)" % b"|".join(found)


def _histogram(size: int) -> bytes:
    """A list of so many numbers, or of nothing."""
    nothing = rb"[\x00-\x0f]"
    if size >= compact.LONG:
        return nothing
    return shapes.either(nothing, rb"\x%02x(?:%b){%d}" % (size << 4 | _I64, shapes.NUMBER, size))
