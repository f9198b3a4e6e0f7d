"""Read the metadata table's column_stats index for some files and columns.

Entries of a column are adjacent, so other columns are not decoded and hardly read. Statistics that
may be wrong are skipped. For a float column with NaN, Hudi records a range from zero to zero; for
a column of nulls, a range from zero to zero or none. Source: HoodieMetadataPayload,
HoodieAvroWrapperUtils, ValueType (1.1 on).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from reconciler.errors import NotFoundError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.avro_binary import decode_record, decoding, encode_long, parse_schema
from reconciler.hudi.codecs.hfile_reader import HFile
from reconciler.hudi.codecs.log_blocks import BlockType, get_block_schema, read_delete_keys
from reconciler.hudi.metadata.index_keys import build_stats_keys, hash_name
from reconciler.hudi.metadata.listing import partition_key
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_encoder import decode_decimal
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable
from reconciler.lazy_dataclass import dataclass

#: a bound in comparable form: times and dates as numbers, text as bytes
Bound = int | float | bytes | Decimal

_BATCH_ENTRIES: Final = 4096
#: length of the column's hash at the start of a key
_WIDTH: Final = len(hash_name(""))
#: most bytes of log files that are read, because all of a slice are in memory at once
_MAX_LOG_BYTES: Final = 512 * 1024**2
#: ordinals of Hudi's ValueType
_DECIMAL: Final = 10
MILLIS_TYPES: Final = frozenset({15, 18})


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumnStats:
    """Statistics of one column for some files, one list element per file.

    ``column``, ``file``: indexes into the requested columns and files. ``least``, ``greatest``:
    None if they are not reliable; times in microseconds since 1970, dates in days. ``values``:
    number of values, nulls included.
    """

    column: int
    file: list[int]
    least: list[Bound | None]
    greatest: list[Bound | None]
    values: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEntries:
    """Entries of one column that are not decoded yet, one list element per file.

    ``path``: the file that they were read from. ``column``, ``file``: as in
    ``IndexedColumnStats``.
    """

    path: str
    schema: str
    column: int
    file: list[int]
    values: list[bytes]


def read_column_stats(
    table: MetadataTable, columns: Sequence[str], folders: Iterable[tuple[str, Sequence[str]]]
) -> Iterator[IndexedColumnStats]:
    """Yield the statistics that the index has, in any order; files without an entry are missing.

    ``folders``: partition paths with file names; a file's index counts over all of them. Raises
    FormatError, UnsupportedError.
    """
    return map(_decode_entries, find_column_entries(table, columns, folders))


def find_column_entries(
    table: MetadataTable, columns: Sequence[str], folders: Iterable[tuple[str, Sequence[str]]]
) -> Iterator[ColumnEntries]:
    """Yield the newest entry of each file and column, as bytes; arguments as above."""
    check_log_sizes(table, COLUMN_STATS)
    wanted: list[dict[bytes, int]] = [{} for _ in columns]
    start = 0
    for partition, names in folders:
        keys = build_stats_keys(columns, partition_key(partition), names)
        for number, column in enumerate(wanted):
            column_keys = keys[number * len(names) : (number + 1) * len(names)]
            column.update(
                (key.encode(), index) for index, key in enumerate(column_keys, start=start)
            )
        start += len(names)
    for file_slice in table.list_slices(COLUMN_STATS):
        for source, schema, deleted in read_newest_first(table, file_slice):
            for number, column in enumerate(wanted):
                for key in deleted:
                    column.pop(key, None)
                if source is not None and column:
                    prefix = hash_name(columns[number]).encode()
                    yield from _find_entries(source, schema, prefix, number, column)


def count_files_without_stats(
    table: MetadataTable, columns: Sequence[str], folders: Iterable[tuple[str, Sequence[str]]]
) -> int:
    """Return how many files lack an entry in at least one of the columns.

    ``folders``: as in ``read_column_stats``. Only keys of entries are read. Raises FormatError,
    UnsupportedError.
    """
    check_log_sizes(table, COLUMN_STATS)
    tails: dict[bytes, int] = {}
    for partition, names in folders:
        keys = build_stats_keys([""], partition_key(partition), names)
        tails |= {key[_WIDTH:].encode(): at for at, key in enumerate(keys, start=len(tails))}
    prefixes = [hash_name(column).encode() for column in columns]
    has = np.zeros((len(columns), len(tails)), np.bool_)
    is_open = np.ones((len(columns), len(tails)), np.bool_)
    for file_slice in table.list_slices(COLUMN_STATS):
        for source, _schema, deleted in read_newest_first(table, file_slice):
            for number, prefix in enumerate(prefixes):
                for key in deleted:
                    if key.startswith(prefix) and key[_WIDTH:] in tails:
                        is_open[number, tails[key[_WIDTH:]]] = False
                if source is None:
                    continue
                file_indexes = (
                    tails.get(key[_WIDTH:], -1) for key, _value in source.scan_prefix(prefix)
                )
                indexes = np.fromiter(file_indexes, np.int64)
                indexes = indexes[indexes >= 0]
                has[number, indexes] |= is_open[number, indexes]
                is_open[number, indexes] = False
    return len(tails) - int(np.count_nonzero(has.all(axis=0)))


def check_log_sizes(table: MetadataTable, partition: str) -> None:
    """Raise UnsupportedError if a metadata partition has more log files than memory holds."""
    folder = f"{ROOT}/{partition}"
    try:
        entries = [entry for entry in table.source.list(folder) if entry.name.startswith(".")]
    except NotFoundError:
        return  # another check reports a missing folder
    size = sum(entry.size for entry in entries)
    if size > _MAX_LOG_BYTES:
        raise UnsupportedError(
            f"{folder}: its log files have {size} bytes, more than the limit of {_MAX_LOG_BYTES}; "
            "let a writer compact the metadata table"
        )


def read_newest_first(
    table: MetadataTable, file_slice: MetadataSlice
) -> Iterator[tuple[HFile | None, str, list[bytes]]]:
    """Yield the parts of a slice, newest first: sorted entries, their schema, deleted keys.

    Raises FormatError, UnsupportedError.
    """
    for block in reversed(table.read_visible_blocks(file_slice)):
        if block.type is BlockType.DELETE:
            yield None, "", [key.encode() for key in read_delete_keys(block)]
        elif block.type is BlockType.HFILE_DATA:
            yield hfile_reader.parse_hfile(block.content, block.path), get_block_schema(block), []
        else:
            raise UnsupportedError(
                f"{block.path}: {block.type.name} blocks are not supported in the metadata table"
            )
    base = table.open_base_file(file_slice)
    if base is not None:
        yield base, base.read_schema(), []


def _find_entries(
    source: HFile, schema: str, prefix: bytes, column: int, wanted: dict[bytes, int]
) -> Iterator[ColumnEntries]:
    """Yield the wanted entries of one column, and remove them from ``wanted``."""

    def make_entries() -> ColumnEntries:
        return ColumnEntries(
            path=source.path, schema=schema, column=column, file=indexes, values=values
        )

    indexes: list[int] = []
    values: list[bytes] = []
    for key, value in source.scan_prefix(prefix):
        index = wanted.pop(key, None)
        if index is not None:
            indexes.append(index)
            values.append(value)
            if len(values) == _BATCH_ENTRIES:
                yield make_entries()
                indexes, values = [], []
    if values:
        yield make_entries()


def decode_stats(
    path: str, schema: str, values: Sequence[bytes]
) -> Iterator[Mapping[str, Any] | None]:
    """Yield the statistics of records, decoded in one call as one Avro array."""
    parsed = parse_schema(f'{{"type":"array","items":{schema}}}', path)
    records = decode_record(encode_long(len(values)) + b"".join(values) + b"\0", parsed, path)
    return (record["ColumnStatsMetadata"] for record in records)


def _decode_entries(entries: ColumnEntries) -> IndexedColumnStats:
    decoded = IndexedColumnStats(column=entries.column, file=[], least=[], greatest=[], values=[])
    found = decode_stats(entries.path, entries.schema, entries.values)
    with decoding(entries.path, "an entry of column_stats"):
        for index, stats in zip(entries.file, found, strict=True):
            if stats is None or stats["isDeleted"]:
                continue
            least, greatest = _parse_bounds(stats)
            decoded.file.append(index)
            decoded.least.append(least)
            decoded.greatest.append(greatest)
            decoded.values.append(int(stats["valueCount"] or 0))
    return decoded


def _parse_bounds(stats: Mapping[str, Any]) -> tuple[Bound | None, Bound | None]:
    least, greatest = stats["minValue"], stats["maxValue"]
    if least is None or greatest is None or stats["nullCount"] == stats["valueCount"]:
        return None, None
    low, high = least["value"], greatest["value"]
    if isinstance(low, float) and low == high == 0.0:
        return None, None
    kind = stats.get("valueType") or {}
    return to_comparable(low, kind), to_comparable(high, kind)


def to_comparable(value: Any, kind: Mapping[str, Any]) -> Bound | None:
    """Return a stored bound in comparable form; None for NaN and unknown forms.

    ``kind``: the record's ``valueType``, empty if it has none.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes) and kind.get("typeOrdinal") == _DECIMAL:
        return decode_decimal(value, kind)
    if isinstance(value, int):
        return int(value) * (1000 if kind.get("typeOrdinal") in MILLIS_TYPES else 1)
    if isinstance(value, float) and value != value:  # noqa: PLR0124
        return None
    return value if isinstance(value, (float, bytes, Decimal)) else None
