"""Read the state of Hudi's own column_stats index for a spec that builds it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.metadata.bound_encoding import MAX_ENTRIES
from reconciler.hudi.metadata.column_stats import count_files_without_stats
from reconciler.hudi.metadata.index_build import read_built_columns
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import MetadataTable, open_live_metadata

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.index.merge import FileKeys
    from reconciler.storage.api import Storage

#: a partition's path and the names of some of its files
Folder = tuple[str, Sequence[str]]


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
    timeline: Timeline,
    wanted: Sequence[str],
    names: Collection[str],
    folders: Sequence[Folder],
) -> HudiColumnStats:
    """Return the state of column_stats from the metadata table.

    ``timeline``: the listed one of the data table; ``wanted``: the declared columns; ``names``: of
    all columns of the table; ``folders``: the current base files, whose entries are looked up by
    key, unless the index is too large to be built. Raises StorageError, and NotFoundError if the
    table has changed since it was listed.
    """
    if not properties.metadata_partitions:
        return HudiColumnStats()
    defined: tuple[str, ...] = ()
    try:
        if properties.table_version >= VERSION_8:
            defined = read_defined_columns(storage)
        if COLUMN_STATS not in properties.metadata_partitions:
            return HudiColumnStats(defined=defined)
        table = open_live_metadata(storage, properties, timeline)
        if table.is_empty(COLUMN_STATS):
            files = sum(len(names) for _path, names in folders)
            return HudiColumnStats(columns=defined, defined=defined, files_without_entries=files)
        columns = read_indexed_columns(table)
        return HudiColumnStats(
            columns=columns,
            defined=defined,
            files_without_entries=_count_gaps(
                table, [column for column in columns if column in names], folders
            ),
            removed_by_writers=_find_removed_columns(
                table, [column for column in wanted if column not in columns]
            ),
        )
    except (FormatError, UnsupportedError) as problem:
        return HudiColumnStats(problem=str(problem))


def group_by_folder(files: FileKeys) -> tuple[Folder, ...]:
    """Return file names by partition."""
    code = to_numpy(files.partition.indices)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1)).tolist()
    names = files.name.take(to_arrow(order))
    paths = files.partition.dictionary
    return tuple(
        (paths[int(code[order[start]])].as_py(), names[start:end].to_pylist())
        for start, end in pairwise([*starts, len(order)])
    )


def _count_gaps(table: MetadataTable, columns: Sequence[str], folders: Sequence[Folder]) -> int:
    count = sum(len(names) for _path, names in folders) * len(columns)
    if not 0 < count <= MAX_ENTRIES:
        return 0
    return count_files_without_stats(table, columns, folders)


def _find_removed_columns(table: MetadataTable, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that writers removed; from version 8 on commits record their columns."""
    if table.version < VERSION_8 or not missing:
        return ()
    built = read_built_columns(table)
    return tuple(column for column in missing if column in built)
