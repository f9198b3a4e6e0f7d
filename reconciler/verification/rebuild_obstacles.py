"""Find why partitions of the metadata table cannot be built anew here, before a plan says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.metadata.bound_encoding import MAX_ENTRIES
from reconciler.hudi.metadata.first_groups import BUILT
from reconciler.hudi.metadata.index_definitions import (
    DEFINITIONS,
    add_column_stats_definition,
    is_record_index_partitioned,
    read_defined_columns,
)
from reconciler.hudi.metadata.own_timeline import VERSION_8
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    MAX_RECORDS,
    PARTITION_STATS,
    RECORD_INDEX,
)
from reconciler.planners.index.column_stats import find_unknown_column, list_indexed_columns
from reconciler.storage.paths import list_if_exists
from reconciler.verification.checked_table import CheckedTable

#: bytes of bloom filters that are in memory at once; by default a filter has half a megabyte
MAX_FILTER_BYTES: Final = 1 << 30
TOO_MANY_FILTERS: Final = f"the bloom filters have more than {MAX_FILTER_BYTES} bytes"
TOO_MANY_ROWS: Final = f"the table has more than {MAX_RECORDS} rows to locate"
UNKNOWN_INDEX: Final = "reconciler cannot build this index"
_DEFINED: Final = "hoodie.table.index.defs.path"


def find_rebuild_obstacles(table: CheckedTable, names: Collection[str]) -> dict[str, str]:
    """Return why some metadata partitions cannot be built.

    Damage of files shows only when they are read. Raises StorageError.
    """
    checks: tuple[tuple[tuple[str, ...], Callable[[CheckedTable], object]], ...] = (
        ((COLUMN_STATS, PARTITION_STATS), check_stats),
        ((BLOOM_FILTERS,), check_base_format),
        ((RECORD_INDEX,), check_record_index_kind),
    )
    obstacles = dict.fromkeys(sorted(set(names) - BUILT), UNKNOWN_INDEX)
    for built, check in checks:
        wanted = [name for name in built if name in names]
        try:
            if wanted:
                check(table)
        except (FormatError, UnsupportedError) as problem:
            obstacles |= dict.fromkeys(wanted, str(problem))
    return obstacles


def check_base_format(table: CheckedTable) -> None:
    """Raise UnsupportedError for base files whose footers only Hudi reads."""
    extension = table.properties.base_extension
    if extension != ".parquet":
        raise UnsupportedError(
            f"the base files are {extension} files, of which only Hudi reads the statistics"
        )


def check_record_index_kind(table: CheckedTable) -> None:
    """Raise UnsupportedError for an index per partition, and for one that Hudi does not keep.

    Hudi 1.2 bootstraps the index of a table without meta columns, and adds none of the keys that it
    writes later; 0.15 and 1.0 read a column that its files lack.
    """
    check_base_format(table)
    if table.properties.raw.get("hoodie.populate.meta.fields", "true").lower() == "false":
        raise UnsupportedError(
            "no Hudi keeps the record index of a table without meta columns "
            "(hoodie.populate.meta.fields=false) up to date"
        )
    if is_record_index_partitioned(table.storage):
        raise UnsupportedError("the record index keeps keys per partition")


def check_stats(table: CheckedTable) -> None:
    """Raise UnsupportedError or FormatError if column_stats cannot be built."""
    check_base_format(table)
    columns = list_stats_columns(table)
    make_stats_definitions(table, columns)
    files = len(table.state.files)
    if files * len(columns) > MAX_ENTRIES:
        raise UnsupportedError(
            f"{files} files with {len(columns)} columns need more than {MAX_ENTRIES} entries of "
            "column_stats"
        )


def list_stats_columns(table: CheckedTable) -> Mapping[str, Any]:
    """Return the columns of column_stats, with their Arrow types.

    Raises UnsupportedError if a column that Hudi indexes cannot be, FormatError.
    """
    version = table.properties.table_version
    defined = read_defined_columns(table.storage) if version >= VERSION_8 else ()
    columns = table.columns
    problem = columns.problem
    if problem is None and table.properties.bootstrap_base is not None:
        problem = "the table was bootstrapped, so columns of its files are in other files"
    if problem is None and columns.renamed:
        problem = f"older files have column {min(columns.renamed)} under another name"
    if problem is None:
        problem = find_unknown_column(columns.schema, version, defined)
    if problem is not None:
        raise UnsupportedError(problem)
    return list_indexed_columns(columns.schema, version, defined)


def make_stats_definitions(table: CheckedTable, columns: Collection[str]) -> bytes | None:
    """Return the new index definitions; None if the table's version has none.

    Raises UnsupportedError if they are elsewhere, FormatError.
    """
    version = table.properties.table_version
    if version < VERSION_8:
        return None
    path = table.properties.raw.get(_DEFINED)
    if path and path != DEFINITIONS:
        raise UnsupportedError(f"the table keeps the definitions of its indexes in {path}")
    storage, (folder, _, name) = table.storage, DEFINITIONS.rpartition("/")
    exists = any(entry.name == name for entry in list_if_exists(storage, folder))
    data = storage.read(DEFINITIONS) if exists else None
    return add_column_stats_definition(data, tuple(columns), version)
