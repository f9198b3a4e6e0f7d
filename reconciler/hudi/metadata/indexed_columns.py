"""Find the columns of the column_stats index, and how it stores the bounds of each.

From version 8 on, Hudi records the columns. Before that, only the entries show them: each key
starts with the column's hash, so a few blocks of each file group reveal all columns. Source:
HoodieIndexDefinition, ColumnIndexID; HoodieTableMetadataUtil.getColumnsToIndex.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from reconciler.hudi.codecs import hfile_reader
from reconciler.hudi.codecs.log_blocks import BlockType, LogBlock, get_block_schema
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.index_keys import hash_name
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.record_encoder import BoundWrapper
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable
from reconciler.lazy_dataclass import dataclass

#: length of the column's hash at the start of a key
_WIDTH: Final = len(hash_name(""))


@dataclass(frozen=True, slots=True)
class EntrySample:
    """Entries of one file with one schema (JSON). ``entries`` can be iterated once."""

    entries: Iterator[tuple[bytes, bytes]]
    schema: str
    path: str


def read_indexed_columns(table: MetadataTable) -> tuple[str, ...]:
    """Return the columns whose range every file must have, in the index's order.

    Empty if the table has no column_stats, or Hudi did not record its columns. Raises
    FormatError, UnsupportedError.
    """
    if COLUMN_STATS not in table.live_partitions:
        return ()
    if table.version >= VERSION_8:
        return read_defined_columns(table.source)
    columns: dict[bytes, str] = {}
    for sample in _read_samples(table):
        for key, value in sample.entries:
            if key[:_WIDTH] not in columns:
                columns[key[:_WIDTH]] = BoundWrapper.read_column(value, sample.schema, sample.path)
    return tuple(sorted(columns.values()))


def learn_wrappers(table: MetadataTable, columns: Collection[str]) -> dict[str, BoundWrapper]:
    """Return how the index stores bounds of columns, learned from its newest entries.

    Columns without an entry are missing in the result. Raises FormatError, UnsupportedError.
    """
    wrappers: dict[str, BoundWrapper] = {}
    missing = {hash_name(column).encode(): column for column in columns}
    for sample in _read_samples(table):
        values = (value for key, value in sample.entries if key[:_WIDTH] in missing)
        learned = BoundWrapper.learn(values, sample.schema, sample.path, missing.values())
        wrappers |= learned
        missing = {start: column for start, column in missing.items() if column not in learned}
        if not missing:
            break
    return wrappers


def _read_samples(table: MetadataTable) -> Iterator[EntrySample]:
    """Yield samples that contain an entry of every column, those of log files first."""
    slices = table.list_slices(COLUMN_STATS)
    return chain(
        (
            sample
            for newest in slices
            for sample in _sample_logs(reversed(table.read_visible_blocks(newest)))
        ),
        (sample for newest in slices for sample in _sample_base(table, newest)),
    )


def _sample_logs(blocks: Iterable[LogBlock]) -> Iterator[EntrySample]:
    for block in blocks:
        if block.type is BlockType.HFILE_DATA:
            cells = hfile_reader.parse_hfile(block.content, block.path).scan_all()
            yield EntrySample(cells, get_block_schema(block), block.path)


def _sample_base(table: MetadataTable, newest: MetadataSlice) -> Iterator[EntrySample]:
    base = table.open_base_file(newest)
    if base is not None:
        yield EntrySample(base.sample_prefixes(_WIDTH), base.read_schema(), base.path)
