"""Read the state of a table's indexes of column statistics: versions and what they lack.

The declared columns are looked up in the table's schema here, so that planning, building and
reading agree on which can be indexed. docs/index-format.md describes the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.errors import FormatError, UnsupportedError, did_you_mean
from reconciler.index.codec import NewerFormatError, Provenance, decode_index
from reconciler.index.file_keys import find_rows
from reconciler.index.footers import find_index_types
from reconciler.index.merge import find_missing
from reconciler.index.model import FileIndex, FileKeys
from reconciler.index.version_store import list_versions
from reconciler.index.versions import IndexVersion, IndexVersions
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import find_newest_bases
from reconciler.state.hudi_column_stats import HudiColumnStats, read_hudi_column_stats
from reconciler.state.index_state import IndexState
from reconciler.state.schema import (
    add_table_columns,
    build_table_schema,
    find_renamed_in_files,
    read_declared_schema,
    read_file_schema,
)
from reconciler.state.schema_versions import LATEST_SCHEMA_KEY
from reconciler.state.timeline_reader import is_being_written

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.spec.model import TableSpec
    from reconciler.state.model import TableState
    from reconciler.state.schema import DeclaredSchema
    from reconciler.storage.api import Storage

__all__ = ["IndexState", "TableColumns", "build_file_keys", "read_index_state"]

_EMPTY_SCHEMA: Final = pa.schema([])


def read_index_state(
    storage: Storage, properties: TableProperties, spec: TableSpec, state: TableState
) -> IndexState:
    """Return the state of the index of a table whose spec has an index block.

    ``state``: the listed table. Reads the folders of versions, the file of the last one and the
    newest commit; it reads no base file if a commit has the schema. What cannot be read is recorded
    in the result, because an index never stops a plan. Raises StorageError, NotFoundError if the
    table has changed since it was listed, and FormatError for a file that is being written.
    """
    assert spec.index is not None, "the spec has an index block"
    view = state.view
    files = find_newest_bases(view)
    columns = TableColumns.read(storage, properties, state, files)
    wanted, problems = columns.split(spec.index.columns)
    versions = list_versions(storage)
    newest = _read_newest_version(storage, versions, tuple(wanted))
    keys = build_file_keys(state, files)
    index = newest.index
    lacking = find_missing(index, keys, wanted) if wanted else np.zeros(0, np.int64)
    row = np.full(len(lacking), -1, np.int64)
    is_unread = np.zeros(len(lacking), np.bool_)
    if index is not None and len(index):
        row = find_rows(index, keys)[lacking]
        # a new column needs every footer, also those that could not be read before
        if all(column in index.columns for column in wanted):
            is_unread = (row >= 0) & (index.rows[row] < 0)
    hudi = HudiColumnStats()
    if spec.index.hudi == "build":
        names = _list_names(columns.schema)
        hudi = read_hudi_column_stats(storage, properties, state, tuple(wanted), names)
    return IndexState(
        versions=versions,
        version=newest.version,
        index=index,
        provenance=newest.provenance,
        damaged=newest.damaged,
        newer=newest.newer,
        schema=columns.schema,
        wanted=wanted,
        problems=problems,
        supplied=columns.find_supplied(wanted, properties),
        files=files,
        missing=files[lacking],
        unindexed=files[lacking[row < 0]],
        unreadable=files[lacking[is_unread]],
        hudi_columns=hudi.columns,
        hudi_problem=hudi.problem,
        hudi_defined=hudi.defined,
        hudi_files_without_entries=hudi.files_without_entries,
        hudi_removed_by_writers=hudi.removed_by_writers,
        renamed=frozenset(columns.renamed),
    )


def build_file_keys(state: TableState, rows: Integers) -> FileKeys:
    """Return the index keys of files, given by their rows of the state's files."""
    files = state.files
    codes, paths = to_arrow(files.partition[rows]), to_arrow(files.partitions)
    partition = pa.DictionaryArray.from_arrays(codes, paths)
    return FileKeys(
        partition=partition, name=files.name.take(to_arrow(rows)), size=files.size[rows]
    )


def read_published_index(storage: Storage, columns: tuple[str, ...]) -> FileIndex | None:
    """Return the newest readable index of a table in some columns, whatever its spec declares.

    Raises StorageError, and NotFoundError if a version was deleted meanwhile.
    """
    return _read_newest_version(storage, list_versions(storage), columns).index


@dataclass(frozen=True, slots=True)
class _ReadVersion:
    """The newest version that can be read, and those that cannot."""

    damaged: tuple[str, ...]
    newer: tuple[str, ...]
    version: IndexVersion | None = None
    index: FileIndex | None = None
    provenance: Provenance | None = None


def _read_newest_version(
    storage: Storage, versions: IndexVersions, columns: tuple[str, ...]
) -> _ReadVersion:
    """Read the newest readable version.

    Raises NotFoundError if a version was deleted meanwhile: then a newer one exists.
    """
    damaged: list[str] = []
    newer: list[str] = []
    for version in reversed(versions.valid):
        data = storage.read(version.path)
        try:
            index, provenance = decode_index(data, version.path, columns)
        except NewerFormatError as problem:
            newer.append(str(problem))
        except FormatError as problem:
            damaged.append(str(problem))
        else:
            return _ReadVersion(tuple(damaged), tuple(newer), version, index, provenance)
    return _ReadVersion(tuple(damaged), tuple(newer))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableColumns:
    """The table's columns. ``problem``: why they are unknown.

    ``renamed``: columns that files may have under another name, with that name. It is the same name
    if files have another column under it.
    """

    schema: Any
    partition: tuple[str, ...]
    renamed: Mapping[str, str]
    problem: str | None = None

    @classmethod
    def read(
        cls,
        storage: Storage,
        properties: TableProperties,
        state: TableState,
        files: Integers,
    ) -> TableColumns:
        fields = properties.partition_fields
        try:
            declared = read_declared_schema(storage, properties, state)
            schema = _read_schema(storage, properties, state, files, declared)
            is_evolved = declared is not None and bool(declared.extra.get(LATEST_SCHEMA_KEY))
            renamed = find_renamed_in_files(storage, state, files) if is_evolved else {}
        except (FormatError, UnsupportedError) as problem:
            if isinstance(problem, FormatError) and is_being_written(
                storage, problem.path, state.observed_ms
            ):
                raise
            return cls(schema=_EMPTY_SCHEMA, partition=fields, renamed={}, problem=str(problem))
        return cls(schema=schema, partition=fields, renamed=renamed)

    def split(self, declared: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the types of declared columns that can be indexed, and why others cannot."""
        wanted: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for column in declared:
            problem = self._explain_problem(column)
            try:
                if problem is None:
                    wanted |= find_index_types((column,), self.schema)
            except UnsupportedError as unsupported:
                problem = f"{unsupported}{self._suggest_name(column)}"
            if problem is not None:
                problems[column] = problem
        return wanted, problems

    def _explain_problem(self, column: str) -> str | None:
        if self.problem is not None:
            why = f"the table's columns are unknown: {self.problem}"
            return f"column {column} cannot be indexed: {why}"
        if not self.schema.names:
            return f"column {column} cannot be indexed yet: the table has no rows"
        parts = column.split(".")
        paths = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if any(self.renamed.get(path) == path for path in paths):
            return (
                f"column {column} cannot be indexed: older files have another column of this name, "
                "which was dropped or renamed since; rewrite them with Hudi, for example by "
                "clustering"
            )
        return None

    def _suggest_name(self, column: str) -> str:
        """Return a suggestion for a name that the table does not have."""
        names = _list_names(self.schema)
        close = None if column in names else did_you_mean(column, names)
        return f"; did you mean {close}?" if close else ""

    def find_supplied(
        self, wanted: Mapping[str, Any], properties: TableProperties
    ) -> frozenset[str]:
        """Return the wanted columns that readers supply; bootstrapped files may lack all."""
        if properties.bootstrap_base is not None:
            return frozenset(wanted)
        names = {*self.partition, *self.renamed}
        inner = tuple(f"{name}." for name in names)
        return frozenset(name for name in wanted if name in names or name.startswith(inner))


def _read_schema(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    files: Integers,
    found: DeclaredSchema | None,
) -> Any:
    """Return the schema as readers see it, from a write or else from the newest base file."""
    if found is not None:
        return build_table_schema(found.text, found.path, properties)
    if not len(files):
        return _EMPTY_SCHEMA
    row = files[np.argmax(state.files.instant[files])]
    schema = read_file_schema(storage, *state.files.locate_file(row))
    return add_table_columns(schema, properties)


def _list_names(schema: Any) -> list[str]:
    """Return the names of all columns and of fields in structs, with dots."""
    names = []
    parts = [(part.name, part.type) for part in schema]
    while parts:
        name, kind = parts.pop()
        names.append(name)
        if pa.types.is_struct(kind):
            parts += [(f"{name}.{part.name}", part.type) for part in kind]
    return names
