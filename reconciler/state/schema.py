"""Find the columns of a table, as its writes declare them and as readers see them.

Source: TableSchemaResolver (getTableAvroSchema, appendPartitionColumns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reconciler.arrays import Integers
from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema
from reconciler.file_slices.merge.range_file import open_range_file, reading_parquet
from reconciler.hudi.load import PROPERTIES, read_archived_commits, read_instant_file
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.declared_schema import SCHEMA, find_declared_schema
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.state.schema_versions import (
    SCHEMA_FOLDER,
    SchemaVersion,
    find_renamed_columns,
    parse_schema_versions,
)
from reconciler.storage.paths import list_if_exists

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

CREATE_SCHEMA_KEY: Final = "hoodie.table.create.schema"


@dataclass(frozen=True, slots=True)
class DeclaredSchema:
    """A table's Avro schema as ``text``, and the file that it is from.

    ``extra``: other extra metadata of that write; empty if it is not from a write.
    """

    text: str
    path: str
    extra: Mapping[str, str] = field(default_factory=dict)


def read_declared_schema(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    *,
    is_visible: Callable[[str, str | None], bool] | None = None,
    as_of: str | None = None,
) -> DeclaredSchema | None:
    """Return the schema of the newest write, else of a table service, else of the table's creation.

    ``is_visible``: which writes count, by requested and completion time; all by default.
    ``as_of``: the instant of a read in the past; the newest instant until then decides, even of a
    table service, as in Hudi. Returns None if no file has a schema. Reads commit files from the
    newest on until one has it. Raises FormatError, StorageError, and NotFoundError if the timeline
    has changed.
    """
    past = as_of and _read_past_schema(storage, properties, state, as_of)
    if past:
        return past
    service: DeclaredSchema | None = None
    for operation, extra, path in _list_writes(storage, properties, state, is_visible):
        text = find_declared_schema(operation, extra)
        if text:
            return DeclaredSchema(text, path, extra)
        if service is None and extra.get(SCHEMA):
            service = DeclaredSchema(extra[SCHEMA], path)
    created = properties.raw.get(CREATE_SCHEMA_KEY)
    if service is None and created:
        return DeclaredSchema(created, f"{PROPERTIES}: {CREATE_SCHEMA_KEY}")
    return service


def _read_past_schema(
    storage: Storage, properties: TableProperties, state: TableState, as_of: str
) -> DeclaredSchema | None:
    """Return the schema of the newest completed write or table service requested until then."""
    seen = [e for e in state.timeline.completed_files(COMMITS) if e.instant.requested <= as_of]
    if not seen:
        return None
    data, path = read_instant_file(
        storage, properties, max(seen, key=lambda entry: entry.instant.requested)
    )
    extra = dict(CommitMetadata.parse(data, path).extra)
    return DeclaredSchema(extra[SCHEMA], path, extra) if extra.get(SCHEMA) else None


def _list_writes(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    sees: Callable[[str, str | None], bool] | None,
) -> Iterator[tuple[str | None, dict[str, str], str]]:
    """Yield operation, extra metadata and path of writes, newest first."""
    active = []
    for entry in state.timeline.completed_files(COMMITS):
        requested = entry.instant.requested
        ended = state.completions.get(requested)
        if sees is None or sees(requested, ended):
            active.append((ended or requested, entry))
    for _ended, entry in sorted(active, key=lambda found: found[0], reverse=True):
        data, path = read_instant_file(storage, properties, entry)
        commit = CommitMetadata.parse(data, path)
        yield commit.operation, dict(commit.extra), path
    for operation, extra, path in read_archived_commits(storage, properties):
        yield operation, dict(extra), path


def load_schema_versions(storage: Storage) -> tuple[SchemaVersion, ...]:
    """Return the versions of a table's schema, oldest first; none if it never evolved by name.

    Raises FormatError, StorageError, and NotFoundError if they were just rewritten.
    """
    entries = list_if_exists(storage, SCHEMA_FOLDER)
    parsed = ((Instant.parse(entry.name), entry.name) for entry in entries)
    versions = [(at.requested, name) for at, name in parsed if at and at.is_completed]
    if not versions:  # schema evolution was never used
        return ()
    path = f"{SCHEMA_FOLDER}/{max(versions)[1]}"
    return parse_schema_versions(storage.read(path), path)


def find_renamed_in_files(storage: Storage, state: TableState, rows: Integers) -> Mapping[str, str]:
    """Return the columns that some files may have under another name, with that name.

    ``rows``: rows of the state's files. Raises as ``load_schema_versions`` does.
    """
    versions = load_schema_versions(storage) if len(rows) else ()
    if not versions:
        return {}
    oldest = state.files.instants[int(state.files.instant[rows].min())]
    newest = max((i.requested for i in state.timeline.commits), default=oldest)
    return find_renamed_columns(versions, oldest=oldest, as_of=newest)


def read_file_schema(storage: Storage, path: str, size: int) -> pa.Schema:
    """Return the Arrow schema in the footer of a base file; raises FormatError, StorageError."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    with reading_parquet(path):
        return pq.read_schema(open_range_file(storage, path, size))


def build_table_schema(text: str, path: str, properties: TableProperties) -> pa.Schema:
    """Return the columns of a declared schema as readers see them.

    Meta columns come first if the table has them. Partition columns that files drop come last as
    text, as in Hudi. Raises the errors of ``arrow_schema``, naming ``path``.
    """
    return add_table_columns(to_arrow_schema(text, path), properties)


def add_table_columns(schema: pa.Schema, properties: TableProperties) -> pa.Schema:
    """Return the columns with the meta and partition columns that the table's properties add."""
    if drops_partition_columns(properties):
        for name in properties.partition_fields:
            if name not in schema.names:
                schema = schema.append(pa.field(name, pa.string()))
    return add_meta_columns(schema) if has_meta_columns(properties) else schema


def has_meta_columns(properties: TableProperties) -> bool:
    return properties.raw.get("hoodie.populate.meta.fields", "true").lower() != "false"


def drops_partition_columns(properties: TableProperties) -> bool:
    """Return whether base files lack the partition columns, so that only folders have them."""
    flag = properties.raw.get("hoodie.datasource.write.drop.partition.columns", "false")
    return flag.lower() == "true"
