"""Read Hudi's index definitions, and find index entries of files that a clean removed.

Nobody looks up entries of removed files, because candidates come from the ``files`` partition; they
only take space. From version 8 on, Hudi's cleans and ours delete them by key. Before version 8 the
keys need the names of all indexed columns, which only the entries show, so the entries stay.
Source: HoodieTableMetadataUtil.convertMetadataToColumnStatsRecords, …ToBloomFilterRecords.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.errors import NotFoundError
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.metadata.index_keys import (
    build_bloom_filter_keys,
    build_column_stats_keys,
    split_by_file_group,
)
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.sync_decisions import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable

DEFINITIONS: Final = ".hoodie/.index_defs/index.json"
_UNPARTITIONED: Final = "."
#: deleting more keys than this costs more than the space it frees
_MOST_KEYS: Final = 1_000_000


def find_stale_entries(
    table: MetadataTable, removed_files: Mapping[str, Sequence[str]]
) -> list[tuple[MetadataSlice, list[str]]]:
    """Return the keys to delete from each file group of the live indexes, none empty.

    ``removed_files``: partition path -> file names. Raises FormatError.
    """
    if table.version < VERSION_8:
        return []
    found: list[tuple[MetadataSlice, list[str]]] = []
    columns = read_defined_columns(table.source) if COLUMN_STATS in table.live_partitions else ()
    if 0 < len(columns) * sum(map(len, removed_files.values())) <= _MOST_KEYS:
        keys = [
            key
            for path, names in removed_files.items()
            for key in build_column_stats_keys(columns, path or _UNPARTITIONED, names)
        ]
        found += _group_by_slice(table, COLUMN_STATS, keys)
    if BLOOM_FILTERS in table.live_partitions:
        keys = [
            key
            for path, names in removed_files.items()
            for key in build_bloom_filter_keys(path or _UNPARTITIONED, filter(_is_base, names))
        ]
        found += _group_by_slice(table, BLOOM_FILTERS, keys)
    return found


def _is_base(name: str) -> bool:
    return not name.startswith(".")


def _group_by_slice(
    table: MetadataTable, partition: str, keys: Sequence[str]
) -> Iterator[tuple[MetadataSlice, list[str]]]:
    slices = table.list_slices(partition) if keys else ()
    for over, some in zip(slices, split_by_file_group(keys, len(slices)), strict=True):
        if some:
            yield over, some


def read_defined_columns(source: ByteSource) -> tuple[str, ...]:
    """Return the columns of column_stats that Hudi recorded, empty if it did not."""
    columns = _read_definition(source, COLUMN_STATS).get("sourceFields") or []
    with decoding(DEFINITIONS, "the index definitions"):
        require(all(isinstance(column, str) for column in columns), "a column name is not a text")
        return tuple(columns)


def is_record_index_partitioned(source: ByteSource) -> bool:
    """Return whether the record index keeps keys per data partition (since 1.1)."""
    options = _read_definition(source, RECORD_INDEX).get("indexOptions") or {}
    with decoding(DEFINITIONS, "the index definitions"):
        return str(options.get("isPartitioned", "false")).lower() != "false"


def _read_definition(source: ByteSource, index: str) -> dict[str, Any]:
    """Return Hudi's definition of an index, empty if there is none, as before version 8."""
    try:
        data = source.read(DEFINITIONS)
    except NotFoundError:
        return {}
    with decoding(DEFINITIONS, "the index definitions"):
        return dict(json.loads(data)["indexDefinitions"].get(index) or {})
