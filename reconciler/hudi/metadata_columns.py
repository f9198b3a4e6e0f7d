"""Which columns the index ``column_stats`` has, and how it keeps the bounds of each.

From version 8 on Hudi writes the columns down. Before, they are nowhere but in the entries, whose
keys start with the column's hash: so a few blocks of each file group tell them all.
Source: HoodieIndexDefinition, ColumnIndexID; HoodieTableMetadataUtil.getColumnsToIndex.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from reconciler.hudi import hfile
from reconciler.hudi.logfile import Block, BlockType, schema_text
from reconciler.hudi.metadata_index import defined_columns
from reconciler.hudi.metadata_keys import name_id
from reconciler.hudi.metadata_partitions import COLUMN_STATS
from reconciler.hudi.metadata_records import Wrapping
from reconciler.hudi.metadata_table import FileSlice, MetadataTable
from reconciler.hudi.metadata_timeline import EIGHT
from reconciler.hudi.schemaless import decoding

#: letters of a key that stand for the column
_WIDTH: Final = len(name_id(""))


@dataclass(frozen=True, slots=True)
class Sample:
    """Entries of one file, of one schema (its JSON). ``values`` come once."""

    values: Iterator[tuple[bytes, bytes]]
    schema: str
    path: str


def indexed_columns(table: MetadataTable) -> tuple[str, ...]:
    """The columns of which every file must tell the range, in the index's order.

    Empty where the table has no column_stats, or Hudi has not written its columns down. Raises
    FormatError, UnsupportedError.
    """
    if COLUMN_STATS not in table.live:
        return ()
    if table.version >= EIGHT:
        return defined_columns(table.source)
    found: dict[bytes, str] = {}
    for sample in _samples(table):
        for key, value in sample.values:
            if key[:_WIDTH] not in found:
                found[key[:_WIDTH]] = Wrapping.column_of(value, sample.schema, sample.path)
    return tuple(sorted(found.values()))


def wrappings(table: MetadataTable, columns: Collection[str]) -> dict[str, Wrapping]:
    """How the bounds of those of the columns are kept that entries show, newest entries first.

    Raises FormatError, UnsupportedError.
    """
    found: dict[str, Wrapping] = {}
    missing = {name_id(column).encode(): column for column in columns}
    for sample in _samples(table):
        values = (value for key, value in sample.values if key[:_WIDTH] in missing)
        learned = Wrapping.learn(values, sample.schema, sample.path, missing.values())
        found |= learned
        missing = {start: column for start, column in missing.items() if column not in learned}
        if not missing:
            break
    return found


def _samples(table: MetadataTable) -> Iterator[Sample]:
    """Among these entries is one of every column; those of log files come before the others."""
    slices = table.slices(COLUMN_STATS)
    return chain(
        (sample for newest in slices for sample in _of_logs(reversed(table.blocks(newest)))),
        (sample for newest in slices for sample in _of_base(table, newest)),
    )


def _of_logs(blocks: Iterable[Block]) -> Iterator[Sample]:
    for block in blocks:
        if block.type is BlockType.HFILE_DATA:
            cells = hfile.parse(block.content, block.path).items()
            yield Sample(cells, schema_text(block), block.path)


def _of_base(table: MetadataTable, newest: FileSlice) -> Iterator[Sample]:
    if newest.base is None:
        return
    name, size = newest.base
    path = newest.path(name)
    base = hfile.open_hfile(
        lambda start, length: table.source.read_range(path, start, length), size, path
    )
    with decoding(path, "a text"):
        schema = base.info.get(b"schema", b"").decode()
    yield Sample(base.samples(_WIDTH), schema, path)
