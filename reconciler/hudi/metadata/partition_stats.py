"""Read the metadata table's partition_stats index: a range per partition and column.

A newer record replaces an older one when its bounds are tight; otherwise it widens them. Hudi's
writers make only tight bounds. A deleted record means that the partition had no rows then. Source:
HoodieTableMetadataUtil.mergeColumnStatsRecords, getPartitionStatsIndexKey (1.0 on).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.metadata.column_stats import read_newest_first
from reconciler.hudi.metadata.index_keys import hash_name
from reconciler.hudi.metadata.record_encoder import Bound, ColumnRange, decode_decimal, decode_stats
from reconciler.hudi.metadata.sync_decisions import PARTITION_STATS
from reconciler.hudi.metadata.table import MetadataTable

_DECIMAL: Final = 10  # ordinal of Hudi's ValueType


def read_partition_ranges(
    table: MetadataTable, columns: Sequence[str], partitions: Iterable[str]
) -> dict[tuple[str, str], ColumnRange | None]:
    """Return (partition, column) -> range, None if it was deleted; others have no record.

    ``partitions`` are named as in the index: "." if the table has none. Raises FormatError,
    UnsupportedError.
    """
    wanted = {
        (hash_name(column) + hash_name(partition)).encode(): (partition, column)
        for partition in partitions
        for column in columns
    }
    missing = set(wanted)
    ranges: dict[tuple[str, str], ColumnRange | None] = {}
    for file_slice in table.list_slices(PARTITION_STATS):
        for source, schema, deleted in read_newest_first(table, file_slice):
            missing.difference_update(deleted)
            if source is None:
                continue
            for key, value in source.get(missing).items():
                partition_column = wanted[key]
                stats = decode_stats(value, schema, source.path)
                with decoding(source.path, "an entry of partition_stats"):
                    is_last = bool(stats["isDeleted"] or stats["isTightBound"])
                    older = None if stats["isDeleted"] else _parse_range(stats)
                newer = ranges.get(partition_column)
                if newer is not None and older is not None:
                    ranges[partition_column] = merge_ranges(newer, older, partition_column[0])
                elif newer is None:
                    ranges[partition_column] = older
                if is_last:
                    missing.discard(key)
    return ranges


def merge_ranges(one: ColumnRange, other: ColumnRange, where: str) -> ColumnRange:
    """Return the range of both; UnsupportedError if their bounds have different types."""
    kinds = {
        type(column_range.least) for column_range in (one, other) if column_range.least is not None
    }
    if len(kinds) > 1:
        raise UnsupportedError(
            f"{where}, column {one.column}: the new bounds have another type than the existing ones"
        )
    return one.merge(other)


def _parse_range(stats: Mapping[str, Any]) -> ColumnRange:
    values, nulls = int(stats["valueCount"] or 0), int(stats["nullCount"] or 0)
    least, greatest = stats["minValue"], stats["maxValue"]
    # for nulls alone, Hudi records a range from zero to zero
    is_known = least is not None and greatest is not None and nulls < values
    return ColumnRange(
        column=str(stats["columnName"]),
        least=_parse_bound(least, stats) if is_known else None,
        greatest=_parse_bound(greatest, stats) if is_known else None,
        values=values,
        nulls=nulls,
        size=int(stats["totalSize"] or 0),
        plain_size=int(stats["totalUncompressedSize"] or 0),
    )


def _parse_bound(wrapped: Any, stats: Mapping[str, Any]) -> Bound:
    """Return a bound as a column range holds it; ``wrapped``: (branch name, value) of the union."""
    value: Bound = wrapped[1]["value"]
    typed = stats.get("valueType")
    kind = typed[1] if typed else {}
    if isinstance(value, bytes) and kind.get("typeOrdinal") == _DECIMAL:
        return decode_decimal(value, kind)
    return value
