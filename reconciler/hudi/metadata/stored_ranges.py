"""Read ranges as column_stats and partition_stats store them, also those that may be wrong.

``column_stats`` skips ranges that no reader may trust; to verify an index, they are needed. Source:
HoodieMetadataPayload, HoodieTableMetadataUtil.mergeColumnStatsRecords (0.15 to 1.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.metadata.column_stats import (
    Bound,
    ColumnEntries,
    check_log_sizes,
    decode_stats,
    find_column_entries,
    read_newest_first,
    to_comparable,
)
from reconciler.hudi.metadata.index_keys import hash_name
from reconciler.hudi.metadata.listing import partition_key
from reconciler.hudi.metadata.sync_decisions import PARTITION_STATS
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """One range of an index. Bounds: times in microseconds, dates in days, text as bytes.

    ``least``, ``greatest``: None if the index has none, infinity for NaN. ``nulls``, ``values``:
    counts, -1 if the index has none. ``is_typed``: the index records the type of the bounds;
    otherwise a time may also be in milliseconds. ``is_tight``: the range replaces older ones.
    """

    least: Bound | None
    greatest: Bound | None
    nulls: int
    values: int
    is_typed: bool = True
    is_tight: bool = False

    @property
    def says_all_null(self) -> bool:
        """Return whether readers take the range for one of nulls only."""
        return self.least is None or self.greatest is None or 0 <= self.values == self.nulls

    def in_milliseconds(self) -> StoredRange:
        """Return the range with bounds that were stored in milliseconds, in microseconds."""
        least: Any = self.least
        greatest: Any = self.greatest
        return StoredRange(
            least=least * 1000,
            greatest=greatest * 1000,
            nulls=self.nulls,
            values=self.values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumnRanges:
    """Ranges of one column for some files, one list element per file.

    ``column``, ``file``: indexes into the requested columns and files.
    """

    column: int
    file: list[int]
    ranges: list[StoredRange]


def read_stored_ranges(
    table: MetadataTable, columns: Sequence[str], folders: Iterable[tuple[str, Sequence[str]]]
) -> Iterator[StoredColumnRanges]:
    """Yield the ranges that column_stats has, in any order; files without an entry are missing.

    ``folders``: partition paths with file names; a file's index counts over all of them. Raises
    FormatError, UnsupportedError.
    """
    return map(_decode_column, find_column_entries(table, columns, folders))


def _decode_column(entries: ColumnEntries) -> StoredColumnRanges:
    decoded = StoredColumnRanges(column=entries.column, file=[], ranges=[])
    found = decode_stats(entries.path, entries.schema, entries.values)
    with decoding(entries.path, "an entry of column_stats"):
        for index, stats in zip(entries.file, found, strict=True):
            if stats is not None and not stats["isDeleted"]:
                decoded.file.append(index)
                decoded.ranges.append(_parse_range(stats))
    return decoded


def read_stored_partition_ranges(
    table: MetadataTable, columns: Sequence[str], partitions: Iterable[str]
) -> dict[tuple[str, str], StoredRange | None]:
    """Return (partition path, column) -> range of partition_stats, None if it was deleted.

    Partitions and columns without a record are missing. Raises FormatError, UnsupportedError.
    """
    check_log_sizes(table, PARTITION_STATS)
    wanted = {
        (hash_name(column) + hash_name(partition_key(partition))).encode(): (partition, column)
        for partition in partitions
        for column in columns
    }
    missing = set(wanted)
    ranges: dict[tuple[str, str], StoredRange | None] = {}
    for file_slice in table.list_slices(PARTITION_STATS):
        for source, schema, deleted in read_newest_first(table, file_slice):
            missing.difference_update(deleted)
            found = {} if source is None else source.get(missing)
            if source is None or not found:
                continue
            with decoding(source.path, "an entry of partition_stats"):
                decoded = decode_stats(source.path, schema, list(found.values()))
                for key, stats in zip(found, decoded, strict=True):
                    is_last = _add_older_range(ranges, wanted[key], stats)
                    if is_last:
                        missing.discard(key)
    return ranges


def _add_older_range(
    ranges: dict[tuple[str, str], StoredRange | None],
    key: tuple[str, str],
    stats: Mapping[str, Any] | None,
) -> bool:
    """Add an older record of a partition; return whether still older ones do not count."""
    is_deleted = stats is None or bool(stats["isDeleted"])
    older = None if stats is None or is_deleted else _parse_range(stats)
    newer = ranges.get(key)
    if newer is None:
        if key not in ranges:
            ranges[key] = older
    elif older is not None:
        ranges[key] = merge_stored_ranges(newer, older)
    return older is None or older.is_tight


def merge_stored_ranges(one: StoredRange, other: StoredRange) -> StoredRange:
    """Return the range of both; UnsupportedError if their bounds cannot be compared."""
    bounded = [part for part in (one, other) if not part.says_all_null]
    least: list[Any] = [part.least for part in bounded]
    greatest: list[Any] = [part.greatest for part in bounded]
    try:
        return StoredRange(
            least=min(least, default=None),
            greatest=max(greatest, default=None),
            nulls=_add_counts(one.nulls, other.nulls),
            values=_add_counts(one.values, other.values),
            is_typed=one.is_typed and other.is_typed,
        )
    except TypeError:
        raise UnsupportedError(
            "ranges of one column have bounds of different types, which cannot be merged"
        ) from None


def _add_counts(one: int, other: int) -> int:
    return -1 if one < 0 or other < 0 else one + other


def _parse_range(stats: Mapping[str, Any]) -> StoredRange:
    kind = stats.get("valueType") or {}
    return StoredRange(
        least=_parse_bound(stats["minValue"], kind, is_least=True),
        greatest=_parse_bound(stats["maxValue"], kind, is_least=False),
        nulls=_parse_count(stats["nullCount"]),
        values=_parse_count(stats["valueCount"]),
        is_typed=bool(kind),
        is_tight=bool(stats.get("isTightBound")),
    )


def _parse_count(count: Any) -> int:
    return -1 if count is None else int(count)


def _parse_bound(wrapped: Any, kind: Mapping[str, Any], *, is_least: bool) -> Bound | None:
    if wrapped is None:
        return None
    value = wrapped["value"]
    if isinstance(value, float) and math.isnan(value):
        return -math.inf if is_least else math.inf
    return to_comparable(value, kind)
