"""Read the state of Hudi's own column_stats index for a spec that builds it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.metadata.bound_encoding import MAX_ENTRIES
from reconciler.hudi.metadata.column_stats import (
    IndexedColumnStats,
    count_files_without_stats,
    read_column_stats,
)
from reconciler.hudi.metadata.index_build import read_built_columns
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import MetadataTable, open_live_metadata
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import find_newest_bases, group_by_partition

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiColumnStats:
    """The state of column_stats; see the fields of ``IndexState`` that begin with ``hudi_``."""

    columns: tuple[str, ...] | None = None
    problem: str | None = None
    defined: tuple[str, ...] = ()
    files_without_entries: int = 0
    removed_by_writers: tuple[str, ...] = ()


def read_hudi_column_stats(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    wanted: Sequence[str],
    names: Collection[str],
) -> HudiColumnStats:
    """Return the state of column_stats from the metadata table.

    ``wanted``: the declared columns; ``names``: all columns of the table. Entries of the current
    base files are looked up by key, unless the index is too large to be built. Raises StorageError,
    and NotFoundError if the table has changed since it was listed.
    """
    if not properties.metadata_partitions:
        return HudiColumnStats()
    defined: tuple[str, ...] = ()
    files = find_newest_bases(state.view)
    try:
        if properties.table_version >= VERSION_8:
            defined = read_defined_columns(storage)
        if COLUMN_STATS not in properties.metadata_partitions:
            return HudiColumnStats(defined=defined)
        table = open_live_metadata(storage, properties, state.timeline)
        if table.is_empty(COLUMN_STATS):
            return HudiColumnStats(
                columns=defined, defined=defined, files_without_entries=len(files)
            )
        columns = read_indexed_columns(table)
        known = [column for column in columns if column in names]
        missing = [column for column in wanted if column not in columns]
        return HudiColumnStats(
            columns=columns,
            defined=defined,
            files_without_entries=_count_gaps(table, known, state, files),
            removed_by_writers=_find_removed_columns(table, missing),
        )
    except (FormatError, UnsupportedError) as problem:
        return HudiColumnStats(problem=str(problem))


def read_file_bounds(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    columns: Sequence[str],
    rows: Integers,
) -> Iterator[tuple[IndexedColumnStats, Integers]]:
    """Yield what column_stats knows of base files: of a column, with positions in ``rows``.

    ``rows``: rows of the state's files, sorted by partition. Raises FormatError, UnsupportedError,
    and StorageError.
    """
    table = open_live_metadata(storage, properties, state.timeline)
    for found in read_column_stats(table, columns, group_by_partition(state.files, rows)):
        yield found, np.array(found.file, np.int64)


def _count_gaps(
    table: MetadataTable, columns: Sequence[str], state: TableState, files: Integers
) -> int:
    if not 0 < len(files) * len(columns) <= MAX_ENTRIES:
        return 0
    return count_files_without_stats(table, columns, group_by_partition(state.files, files))


def _find_removed_columns(table: MetadataTable, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that writers removed; from version 8 on commits record their columns."""
    if table.version < VERSION_8 or not missing:
        return ()
    built = read_built_columns(table)
    return tuple(column for column in missing if column in built)
