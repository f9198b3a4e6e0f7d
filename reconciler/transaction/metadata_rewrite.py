"""The metadata table during a rewrite: what it must be told, what must go, what it says after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import FormatError, NotFoundError, StorageError, UnsupportedError
from reconciler.hudi import metadata_columns
from reconciler.hudi.commit import CommitMetadata
from reconciler.hudi.instant import WRITES, Action
from reconciler.hudi.load import (
    PROPERTIES,
    instant_path,
    load_properties,
    load_timeline,
    read_instant_file,
)
from reconciler.hudi.metadata_partitions import DROPPABLE
from reconciler.hudi.metadata_read import MetadataListing, read_listing
from reconciler.hudi.metadata_rewrite import REWRITES, RewriteSync, Rewriting, rewrite_sync
from reconciler.hudi.metadata_table import MetadataTable, open_metadata
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.properties import TableProperties, parse_java, print_java, with_value
from reconciler.hudi.timeline import Timeline
from reconciler.storage.api import Storage
from reconciler.transaction.paths import names_in

if TYPE_CHECKING:
    from reconciler.basefile.writer import WrittenFile

__all__ = [
    "RewriteSync",
    "add_partitions",
    "drop_partitions",
    "indexed_columns",
    "leftovers",
    "missing",
    "newest_schema",
    "plan_rewrite_sync",
]

_LIVE: Final = "hoodie.table.metadata.partitions"
_DEFINED: Final = "hoodie.table.index.defs.path"
_BACKUP: Final = f"{PROPERTIES}.backup"
_KEY: Final = "_hoodie_record_key"
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def indexed_columns(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """The columns whose ranges every new file must tell, names with dots into structs; often none.

    Only those that files of the table's schema have. Raises FormatError, UnsupportedError.
    """
    if not properties.metadata_partitions:
        return ()
    columns = metadata_columns.indexed_columns(_table(storage, properties, timeline))
    return _stored(columns, storage, properties, timeline) if columns else ()


def plan_rewrite_sync(  # noqa: PLR0913
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    *,
    instant: str,
    completed: str,
    instant_ms: int,
    added: Mapping[str, Sequence[WrittenFile]],
) -> RewriteSync:
    """What the metadata table must be told of new files, and which partitions of it must go.

    ``instant`` must be pending on the data ``timeline``; ``completed``: completion time of the
    metadata table's deltacommit (version 8 on), before the data instant's; ``instant_ms``: the
    instant in milliseconds since 1970, read in the timeline's zone; ``added``: partition path (""
    of a table without partitions) -> its new files, which are on storage.

    Then, under the same lock: ``drop_partitions(storage, properties, sync.drops)`` where there are
    any, ``metadata.write_sync(storage, sync.sync)``, and only then the data instant completes.
    Raises FormatError, UnsupportedError; StaleError when the instant is not pending; BusyError when
    a partition must go while another write is pending.
    """
    if not properties.metadata_partitions:
        return RewriteSync()
    table, listing = _open(storage, properties, timeline)
    rewriting = Rewriting(
        instant=instant,
        completed=completed,
        instant_ms=instant_ms,
        added=added,
        columns=indexed_columns(storage, properties, timeline),
        keys=lambda path, size: keys_of(storage, path, size),
    )
    inflight = properties.metadata_partitions_inflight
    return rewrite_sync(table, listing, rewriting, inflight=inflight)


def drop_partitions(
    storage: Storage, properties: TableProperties, names: Collection[str]
) -> TableProperties:
    """Take metadata partitions out of the table's properties, then delete their folders.

    Gives the properties as they are then. As HoodieTableConfig.update goes: the backup is there
    while the file is replaced. Safe to stop anywhere and to do again: a folder that the properties
    don't list is read by nobody. The caller holds the table's lock. Raises UnsupportedError for a
    partition that no writer builds anew by itself, FormatError, StorageError.
    """
    unknown = sorted(set(names) - set(DROPPABLE))
    if unknown:
        raise UnsupportedError(f"the metadata partitions {', '.join(unknown)} must not be dropped")
    gone = set(names)
    if gone.intersection(properties.metadata_partitions):
        _rewrite_properties(storage, gone)
        properties = load_properties(storage)
    for name in sorted(gone):
        _delete_folder(storage, f"{ROOT}/{name}")
    return properties


def add_partitions(storage: Storage, names: Collection[str], *, defined: str | None) -> None:
    """List metadata partitions in the table's properties, at one moment; they are there already.

    ``defined``: the path of the index definitions, which properties without it get too. Safe to
    stop anywhere. The caller holds the table's lock. Raises FormatError, StorageError.
    """
    before = _current_properties(storage)
    raw = parse_java(before, PROPERTIES)
    after = before
    if defined is not None and not raw.get(_DEFINED):
        if _DEFINED in raw:
            after = with_value(after, _DEFINED, defined, PROPERTIES)
        else:
            after = after.rstrip(b"\r\n") + b"\n" + print_java({_DEFINED: defined})
    live = ",".join(sorted({*_listed(raw), *names}))
    _replace_properties(storage, before, with_value(after, _LIVE, live, PROPERTIES))


def leftovers(storage: Storage, properties: TableProperties) -> tuple[str, ...]:
    """Folders of dropped metadata partitions that are still there, for ``drop_partitions``.

    None while any write but the caller's own clustering is pending: a Hudi writer makes the folder
    of an index long before it lists it, and removes itself what it finds there
    (HoodieBackedTableMetadataWriter.initializeFileGroups).
    """
    if not properties.metadata_partitions:
        return ()
    known = {*properties.metadata_partitions, *properties.metadata_partitions_inflight}
    there = {entry.name for entry in storage.list(ROOT) if entry.is_folder}
    found = tuple(name for name in DROPPABLE if name in there - known)
    if not found:
        return ()
    pending = load_timeline(storage, properties).pending(WRITES | {Action.INDEXING})
    is_ours = len(pending) < 2 and all(one.action in REWRITES for one in pending)  # noqa: PLR2004
    return found if is_ours else ()


def missing(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    added: Mapping[str, Sequence[WrittenFile]],
) -> dict[str, list[str]]:
    """How the metadata table's listing differs from new files and disk: partition -> file names.

    For after the commit, with a timeline that shows it: a new file that is not listed with its
    size, and what is listed in its partition but not on disk. Empty when all is right.
    """
    if not properties.metadata_partitions:
        return {}
    _, listing = _open(storage, properties, timeline)
    listed = {
        path: dict(zip(names, sizes, strict=True))
        for path, names, sizes in listing.folders(set(added))
    }
    found = {}
    for path, files in added.items():
        names = listed.get(path, {})
        wrong = {file.name for file in files if names.get(file.name) != file.size}
        wrong |= names.keys() - names_in(storage, path)
        if wrong:
            found[path] = sorted(wrong)
    return found


def _table(storage: Storage, properties: TableProperties, timeline: Timeline) -> MetadataTable:
    return open_metadata(
        storage,
        version=properties.table_version,
        data=timeline,
        live=properties.metadata_partitions,
    )


def _open(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[MetadataTable, MetadataListing]:
    table = _table(storage, properties, timeline)
    return table, read_listing(table)


def keys_of(storage: Storage, path: str, size: int) -> Iterator[Any]:
    """The record keys of a base file, a batch at a time."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from reconciler.merge.ranges import open_range, reading_parquet  # noqa: PLC0415

    with reading_parquet(path):
        file = pq.ParquetFile(open_range(storage, path, size), pre_buffer=True)
        if _KEY not in file.schema_arrow.names:
            raise UnsupportedError(f"{path}: has no column {_KEY}")
        for batch in file.iter_batches(columns=[_KEY]):
            yield batch.column(0).cast(pa.string())


def _stored(
    columns: Sequence[str], storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """Those of the columns that base files have: others may have been dropped from the table."""
    from reconciler.merge.avro_schema import arrow_schema, with_meta_columns  # noqa: PLC0415
    from reconciler.merge.ordering import type_at  # noqa: PLC0415

    found = newest_schema(storage, properties, timeline)
    if found is None:
        return tuple(columns)
    schema = with_meta_columns(arrow_schema(*found))
    in_folders = set()
    if properties.raw.get("hoodie.datasource.write.drop.partition.columns", "").lower() == "true":
        in_folders = set(properties.partition_fields)
    return tuple(
        column
        for column in columns
        if column not in in_folders and type_at(schema, column) is not None
    )


def newest_schema(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, str] | None:
    """The table's Avro schema as the newest write says it, and the file that does."""
    for instant in reversed(timeline.commits):
        file = timeline.file(instant.requested, instant.action, instant.state)
        if file is None:
            continue
        path = instant_path(properties, file)
        commit = CommitMetadata.parse(read_instant_file(storage, properties, file), path)
        text = commit.extra.get("schema")
        if text and (commit.operation or "").upper() not in _SERVICES:
            return text, path
    created = properties.raw.get("hoodie.table.create.schema")
    return (created, PROPERTIES) if created else None


def _rewrite_properties(storage: Storage, gone: Collection[str]) -> None:
    """The list of live partitions without some, in a file that is whole at every moment."""
    before = _current_properties(storage)
    kept = sorted(_listed(parse_java(before, PROPERTIES)) - set(gone))
    _replace_properties(storage, before, with_value(before, _LIVE, ",".join(kept), PROPERTIES))


def _listed(raw: Mapping[str, str]) -> set[str]:
    return {name.strip() for name in raw.get(_LIVE, "").split(",") if name.strip()}


def _replace_properties(storage: Storage, before: bytes, after: bytes) -> None:
    storage.replace(_BACKUP, before)
    storage.replace(PROPERTIES, after)
    if storage.read(PROPERTIES) != after:
        raise StorageError(PROPERTIES, f"is not what was written; {_BACKUP} is as it was before")
    storage.delete(_BACKUP)


def _current_properties(storage: Storage) -> bytes:
    """The file's bytes, or its backup's where a writer died while it replaced the file."""
    problem: FormatError | NotFoundError | None = None
    for path in (PROPERTIES, _BACKUP):
        try:
            data = storage.read(path)
            TableProperties.parse(data, path)
        except (FormatError, NotFoundError) as found:
            problem = problem or found
        else:
            return data
    assert problem is not None
    raise problem


def _delete_folder(storage: Storage, folder: str) -> None:
    """A metadata partition's files, then its folder; a metadata partition has no folders in it."""
    try:
        entries = storage.list(folder)
    except NotFoundError:
        return
    paths = [f"{folder}/{entry.name}" for entry in entries if not entry.is_folder]
    for deletion in storage.delete_many(paths):
        if deletion.error:
            raise StorageError(deletion.path, f"could not be deleted: {deletion.error}")
    storage.remove_folder(folder)
