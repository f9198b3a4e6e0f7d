"""What is known of Hudi's own index of column statistics where it is to be built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.arrow import integers, numbers
from reconciler.hudi.metadata_build import built_columns
from reconciler.hudi.metadata_columns import indexed_columns
from reconciler.hudi.metadata_index import defined_columns
from reconciler.hudi.metadata_keeping import MOST_ENTRIES
from reconciler.hudi.metadata_partitions import COLUMN_STATS
from reconciler.hudi.metadata_stats import files_without
from reconciler.hudi.metadata_table import MetadataTable, open_metadata
from reconciler.hudi.metadata_timeline import EIGHT

if TYPE_CHECKING:
    from reconciler.hudi.properties import TableProperties
    from reconciler.hudi.timeline import Timeline
    from reconciler.index.merge import Keys
    from reconciler.storage.api import Storage

#: a partition's path and the names of some of its files
Folder = tuple[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiIndex:
    """As ``KnownIndex`` has it, whose names begin with ``hudi_``."""

    columns: tuple[str, ...] | None = None
    problem: str | None = None
    defined: tuple[str, ...] = ()
    gaps: int = 0
    unkept: tuple[str, ...] = ()


def hudi_index(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    wanted: Sequence[str],
    names: Collection[str],
    folders: Sequence[Folder],
) -> HudiIndex:
    """What the metadata table says of it.

    ``timeline``: the data table's as it was listed; ``wanted``: the declared columns; ``names``: of
    all columns that the table has; ``folders``: the base files of newest slices, whose entries are
    looked for by their keys. That is left out where the index is too large to be built here.
    Raises StorageError; NotFoundError where the table has moved on since it was listed.
    """
    if not properties.metadata_partitions:
        return HudiIndex()
    defined: tuple[str, ...] = ()
    try:
        if properties.table_version >= EIGHT:
            defined = defined_columns(storage)
        if COLUMN_STATS not in properties.metadata_partitions:
            return HudiIndex(defined=defined)
        table = open_metadata(
            storage,
            version=properties.table_version,
            data=timeline,
            live=properties.metadata_partitions,
        )
        if table.is_empty(COLUMN_STATS):
            files = sum(len(names) for _path, names in folders)
            return HudiIndex(columns=defined, defined=defined, gaps=files)
        columns = indexed_columns(table)
        return HudiIndex(
            columns=columns,
            defined=defined,
            gaps=_gaps(table, [column for column in columns if column in names], folders),
            unkept=_unkept(table, [column for column in wanted if column not in columns]),
        )
    except (FormatError, UnsupportedError) as problem:
        return HudiIndex(problem=str(problem))


def folders_of(files: Keys) -> tuple[Folder, ...]:
    """Files by partition."""
    code = numbers(files.partition.indices)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1)).tolist()
    names = files.name.take(integers(order))
    paths = files.partition.dictionary
    return tuple(
        (paths[int(code[order[start]])].as_py(), names[start:end].to_pylist())
        for start, end in pairwise([*starts, len(order)])
    )


def _gaps(table: MetadataTable, columns: Sequence[str], folders: Sequence[Folder]) -> int:
    count = sum(len(names) for _path, names in folders) * len(columns)
    if not 0 < count <= MOST_ENTRIES:
        return 0
    return files_without(table, columns, folders)


def _unkept(table: MetadataTable, missing: Sequence[str]) -> tuple[str, ...]:
    """Writers write the columns that they keep down with each commit, from version 8 on."""
    if table.version < EIGHT or not missing:
        return ()
    built = built_columns(table)
    return tuple(column for column in missing if column in built)
