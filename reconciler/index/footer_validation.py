"""Validate the column chunks of a Parquet footer before pyarrow reads their statistics.

pyarrow ends the process on some damaged chunks, because it does not catch the exceptions of
parquet-cpp. This module makes the same checks first: bounds have the length of the column's type,
histograms of levels have one element per level, and nothing is encrypted.
Source: ColumnChunkMetaData, SizeStatistics::Validate and MakeColumnStats of parquet-cpp;
ColumnChunk in parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

from reconciler.index import thrift_compact, thrift_patterns
from reconciler.index.thrift_compact import BINARY, LIST, STOP, STRUCT, MalformedError
from reconciler.lazy_dataclass import dataclass

_I32, _I64 = 5, 6
#: Thrift field numbers: of the footer, a chunk, the chunk's metadata, its statistics
_GROUPS: Final = 4
_META, _CRYPTO = 3, 8
_TYPE, _PATH, _STATISTICS, _SIZES = 1, 3, 12, 16
_BOUNDS: Final = frozenset({1, 2, 5, 6})
_BYTES, _REPETITION, _DEFINITION = 1, 2, 3
_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
                 "FIXED_LEN_BYTE_ARRAY")  # fmt: skip
_LENGTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TAIL: Final = 8
#: bytes, and the offsets in them at which the column chunks of a row group begin
ChunkStarts = tuple[bytes, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """One leaf column of a Parquet schema.

    ``length``: bytes of each value, None for values of variable length. ``levels``: the greatest
    repetition level and the greatest definition level.
    """

    physical_type: str
    length: int | None
    levels: tuple[int, int]

    @classmethod
    def from_parquet(cls, column: Any) -> Self:
        """Return the leaf column that pyarrow's ColumnSchema describes."""
        physical = column.physical_type
        fixed = column.length if physical == "FIXED_LEN_BYTE_ARRAY" else None
        levels = (column.max_repetition_level, column.max_definition_level)
        return cls(physical, _LENGTHS.get(physical, fixed), levels)

    @property
    def match_usual_chunk(self) -> thrift_patterns.LateMatcher:
        """A matcher of the column's chunks in the form that writers usually write."""
        number = _TYPES.index(self.physical_type)
        return thrift_patterns.match_usual_chunk(number, self.length, self.levels)

    def are_valid(self, chunks: Iterable[tuple[bytes, int]]) -> bool:
        """Return whether pyarrow can read the chunks of this column at these offsets."""
        match = self.match_usual_chunk
        return all(match(data, at) or self._is_valid(data, at) for data, at in chunks)

    def _is_valid(self, data: bytes, at: int) -> bool:
        try:
            return self._is_valid_chunk(data, at)
        except MalformedError:
            return False

    def _is_valid_chunk(self, data: bytes, at: int) -> bool:
        fields = _find_fields(data, at)
        if any(number == _CRYPTO for number, _ in fields):
            return False
        if (_META, STRUCT) not in fields:
            return True
        meta = _find_fields(data, fields[_META, STRUCT])
        statistics, sizes = meta.get((_STATISTICS, STRUCT)), meta.get((_SIZES, STRUCT))
        if (_TYPE, _I32) not in meta or self.physical_type != _read_type(data, meta[_TYPE, _I32]):
            statistics = None  # statistics of another physical type are never requested
        return (statistics is None or self._has_valid_bounds(data, statistics)) and (
            sizes is None or self._has_valid_sizes(data, sizes)
        )

    def _has_valid_bounds(self, data: bytes, at: int) -> bool:
        for (number, kind), start in _find_fields(data, at).items():
            if number in _BOUNDS and kind == BINARY and self.length is not None:
                begin, end = thrift_compact.read_binary(data, start)
                if end - begin != self.length:
                    return False
        return True

    def _has_valid_sizes(self, data: bytes, at: int) -> bool:
        fields = _find_fields(data, at)
        if (_BYTES, _I64) in fields and self.physical_type != "BYTE_ARRAY":
            return False
        for number, level in zip((_REPETITION, _DEFINITION), self.levels, strict=True):
            if (number, LIST) in fields:
                size = thrift_compact.read_list_header(data, fields[number, LIST])[0]
                if size not in {0, level + 1}:
                    return False
        return True


def _read_type(data: bytes, at: int) -> str | None:
    """Return the name of a physical type; None for an unknown number."""
    number = thrift_compact.decode_zigzag(thrift_compact.read_varint(data, at)[0])
    return _TYPES[number] if 0 <= number < len(_TYPES) else None


def list_leaves(schema: Any) -> tuple[LeafColumn, ...]:
    """Return all leaf columns of pyarrow's ParquetSchema."""
    return tuple(LeafColumn.from_parquet(schema.column(at)) for at in range(len(schema)))


def is_valid_footer(tail: bytes, schema: Any) -> bool:
    """Return whether pyarrow can read the statistics of every chunk in a footer.

    ``tail``: the end of the file, from the first byte of the footer or earlier. ``schema``: the
    file's schema as pyarrow has read it.
    """
    leaves = list_leaves(schema)
    try:
        groups = find_chunk_starts(tail)
    except MalformedError:
        return False
    return all(
        len(starts) == len(leaves)
        and all(leaf.are_valid([(tail, at)]) for leaf, at in zip(leaves, starts, strict=True))
        for starts in groups
    )


def find_chunk_starts(tail: bytes) -> list[tuple[int, ...]]:
    """Return, for every row group of a footer, the offsets of its column chunks.

    Raises MalformedError.
    """
    at = len(tail) - _TAIL - int.from_bytes(tail[-_TAIL:-4], "little")
    if at < 0:
        raise MalformedError("the footer is cut off")
    start = _find_fields(tail, at).get((_GROUPS, LIST))
    if start is None:
        return []
    size, element, begin = thrift_compact.read_list_header(tail, start)
    if size and element != STRUCT:
        raise MalformedError("the list of row groups holds something else")
    groups: list[tuple[int, ...]] = []
    for _ in range(size):
        begin, starts = thrift_patterns.split_row_group(tail, begin)
        groups.append(starts)
    return groups


def read_chunk_path(data: bytes, at: int) -> bytes:
    """Return the column path, with dots, that the chunk at this offset names."""
    meta = _find_fields(data, at).get((_META, STRUCT))
    path = None if meta is None else _find_fields(data, meta).get((_PATH, LIST))
    if path is None:
        raise MalformedError("a chunk names no column")
    return b".".join(_read_texts(data, path))


def _read_texts(data: bytes, at: int) -> Iterator[bytes]:
    size, kind, at = thrift_compact.read_list_header(data, at)
    if kind != BINARY:
        raise MalformedError("a column path is not a list of texts")
    for _ in range(size):
        begin, at = thrift_compact.read_binary(data, at)
        if at > len(data):
            raise MalformedError("a text is cut off")
        yield data[begin:at]


def _find_fields(data: bytes, at: int) -> dict[tuple[int, int], int]:
    """Return the offset of each value in a struct, by the number and the kind of its field."""
    fields: dict[tuple[int, int], int] = {}
    last = 0
    while True:
        last, kind, at = thrift_compact.read_field(data, at, last)
        if kind == STOP:
            return fields
        fields[last, kind] = at
        at = thrift_compact.skip_field(data, at, kind)
