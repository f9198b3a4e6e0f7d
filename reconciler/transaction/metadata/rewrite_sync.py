"""Prepare the metadata table's part of a rewrite, drop its partitions, and check its listing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import FormatError, NotFoundError, StorageError, UnsupportedError
from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline, read_instant_file
from reconciler.hudi.metadata import indexed_columns
from reconciler.hudi.metadata.listing import MetadataListing, read_metadata_listing
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.partition_logs import (
    REWRITES,
    NewFiles,
    SyncPlan,
    plan_rewrite_sync,
)
from reconciler.hudi.metadata.sync_decisions import DROPPABLE
from reconciler.hudi.metadata.table import MetadataTable, open_live_metadata
from reconciler.hudi.table.properties import (
    TableProperties,
    format_java_properties,
    parse_java_properties,
    replace_value,
)
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.storage.api import Storage
from reconciler.transaction.paths import list_names

if TYPE_CHECKING:
    from reconciler.file_slices.base_file.writer import WrittenFile

__all__ = [
    "SyncPlan",
    "add_partitions",
    "drop_partitions",
    "find_leftover_partitions",
    "find_listing_differences",
    "indexed_columns",
    "plan_rewrite_sync",
    "read_newest_schema",
]

_LIVE: Final = "hoodie.table.metadata.partitions"
_DEFINED: Final = "hoodie.table.index.defs.path"
_BACKUP: Final = f"{PROPERTIES}.backup"
_KEY: Final = "_hoodie_record_key"
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def find_indexed_columns(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """Return the columns whose ranges every new file has to record; often none.

    Names have dots into structs. Only columns of the table's schema that are stored in files count.
    Raises FormatError, UnsupportedError.
    """
    if not properties.metadata_partitions:
        return ()
    columns = indexed_columns.read_indexed_columns(_open_table(storage, properties, timeline))
    return _filter_stored(columns, storage, properties, timeline) if columns else ()


def prepare_rewrite_sync(  # noqa: PLR0913
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    *,
    instant: str,
    completed: str,
    instant_ms: int,
    added: Mapping[str, Sequence[WrittenFile]],
) -> SyncPlan:
    """Return what the metadata table has to be given of new files, and which partitions must go.

    ``instant``: pending on the data ``timeline``. ``completed``: completion time of the metadata
    table's deltacommit (version 8 on), before the data instant's. ``instant_ms``: the instant in
    epoch milliseconds, read in the timeline's zone. ``added``: partition path ("" of a table
    without partitions) -> its new files, which are on storage. ``metadata.sync`` applies the
    result. Raises FormatError, UnsupportedError; StaleError when the instant is not pending;
    BusyError when a partition must go while another write is pending.
    """
    if not properties.metadata_partitions:
        return SyncPlan()
    table, listing = _open_listing(storage, properties, timeline)
    rewriting = NewFiles(
        instant=instant,
        completion_time=completed,
        instant_ms=instant_ms,
        files_by_partition=added,
        columns=find_indexed_columns(storage, properties, timeline),
        read_keys=lambda path, size: read_record_keys(storage, path, size),
    )
    inflight = properties.metadata_partitions_inflight
    return plan_rewrite_sync(table, listing, rewriting, inflight=inflight)


def drop_partitions(
    storage: Storage, properties: TableProperties, names: Collection[str]
) -> TableProperties:
    """Take metadata partitions out of the table's properties, then delete their folders.

    Returns the properties as they are then. As HoodieTableConfig.update goes: the backup is there
    while the file is replaced. Safe to stop anywhere and to do again: a folder that the properties
    don't list is read by nobody. The caller holds the table's lock. Raises UnsupportedError for a
    partition that no writer builds anew by itself, FormatError, StorageError.
    """
    unknown = sorted(set(names) - set(DROPPABLE))
    if unknown:
        raise UnsupportedError(f"the metadata partitions {', '.join(unknown)} must not be dropped")
    gone = set(names)
    if gone.intersection(properties.metadata_partitions):
        _unlist_partitions(storage, gone)
        properties = load_properties(storage)
    for name in sorted(gone):
        _delete_folder(storage, f"{ROOT}/{name}")
    return properties


def add_partitions(storage: Storage, names: Collection[str], *, defined: str | None) -> None:
    """List metadata partitions that are there already in the table's properties, at one moment.

    ``defined``: the path of the index definitions, which properties without it get too. Safe to
    stop anywhere. The caller holds the table's lock. Raises FormatError, StorageError.
    """
    before = _read_properties(storage)
    raw = parse_java_properties(before, PROPERTIES)
    after = before
    if defined is not None and not raw.get(_DEFINED):
        if _DEFINED in raw:
            after = replace_value(after, _DEFINED, defined, PROPERTIES)
        else:
            after = after.rstrip(b"\r\n") + b"\n" + format_java_properties({_DEFINED: defined})
    live = ",".join(sorted({*_parse_live_partitions(raw), *names}))
    _replace_properties(storage, before, replace_value(after, _LIVE, live, PROPERTIES))


def find_leftover_partitions(storage: Storage, properties: TableProperties) -> tuple[str, ...]:
    """Return dropped metadata partitions whose folders are still there.

    There are none while any write but the caller's own is pending: a Hudi writer makes the folder
    of an index long before it lists it, and itself removes what it finds there
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


def find_listing_differences(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    added: Mapping[str, Sequence[WrittenFile]],
) -> dict[str, list[str]]:
    """Return where the metadata table's listing is wrong: partition -> file names.

    It is called after the commit, with a timeline that shows it. Wrong is a new file that is not
    listed with its size, and a listed file in its partition that is not on disk.
    """
    if not properties.metadata_partitions:
        return {}
    _, listing = _open_listing(storage, properties, timeline)
    listed = {
        path: dict(zip(names, sizes, strict=True))
        for path, names, sizes in listing.read_folders(set(added))
    }
    found = {}
    for path, files in added.items():
        names = listed.get(path, {})
        wrong = {file.name for file in files if names.get(file.name) != file.size}
        wrong |= names.keys() - list_names(storage, path)
        if wrong:
            found[path] = sorted(wrong)
    return found


def _open_table(storage: Storage, properties: TableProperties, timeline: Timeline) -> MetadataTable:
    return open_live_metadata(storage, properties, timeline)


def _open_listing(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[MetadataTable, MetadataListing]:
    table = _open_table(storage, properties, timeline)
    return table, read_metadata_listing(table)


def read_record_keys(storage: Storage, path: str, size: int) -> Iterator[Any]:
    """Yield the record keys of a base file, a batch at a time."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from reconciler.file_slices.merge.range_file import open_range_file, reading_parquet  # noqa: PLC0415

    with reading_parquet(path):
        file = pq.ParquetFile(open_range_file(storage, path, size), pre_buffer=True)
        if _KEY not in file.schema_arrow.names:
            raise UnsupportedError(f"{path}: has no column {_KEY}")
        for batch in file.iter_batches(columns=[_KEY]):
            yield batch.column(0).cast(pa.string())


def _filter_stored(
    columns: Sequence[str], storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """Return those columns that base files have: others may have been dropped from the table."""
    from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema  # noqa: PLC0415
    from reconciler.file_slices.merge.ordering import find_type  # noqa: PLC0415

    found = read_newest_schema(storage, properties, timeline)
    if found is None:
        return tuple(columns)
    schema = add_meta_columns(to_arrow_schema(*found))
    in_folders = set()
    if properties.raw.get("hoodie.datasource.write.drop.partition.columns", "").lower() == "true":
        in_folders = set(properties.partition_fields)
    return tuple(
        column
        for column in columns
        if column not in in_folders and find_type(schema, column) is not None
    )


def read_newest_schema(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, str] | None:
    """Return the table's Avro schema as the newest write records it, and the path of that file."""
    for instant in reversed(timeline.commits):
        file = timeline.find_file(instant.requested, instant.action, instant.state)
        if file is None:
            continue
        data, path = read_instant_file(storage, properties, file)
        commit = CommitMetadata.parse(data, path)
        text = commit.extra.get("schema")
        if text and (commit.operation or "").upper() not in _SERVICES:
            return text, path
    created = properties.raw.get("hoodie.table.create.schema")
    return (created, PROPERTIES) if created else None


def _unlist_partitions(storage: Storage, gone: Collection[str]) -> None:
    """Take partitions out of the list of live ones, in a file that is whole at every moment."""
    before = _read_properties(storage)
    kept = sorted(_parse_live_partitions(parse_java_properties(before, PROPERTIES)) - set(gone))
    _replace_properties(storage, before, replace_value(before, _LIVE, ",".join(kept), PROPERTIES))


def _parse_live_partitions(raw: Mapping[str, str]) -> set[str]:
    return {name.strip() for name in raw.get(_LIVE, "").split(",") if name.strip()}


def _replace_properties(storage: Storage, before: bytes, after: bytes) -> None:
    storage.replace(_BACKUP, before)
    storage.replace(PROPERTIES, after)
    if storage.read(PROPERTIES) != after:
        raise StorageError(PROPERTIES, f"is not what was written; {_BACKUP} is as it was before")
    storage.delete(_BACKUP)


def _read_properties(storage: Storage) -> bytes:
    """Return the file's bytes, or its backup's where a writer died while it replaced the file."""
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
    """Delete a metadata partition's files, then its folder; it has no folders in it."""
    try:
        entries = storage.list(folder)
    except NotFoundError:
        return
    paths = [f"{folder}/{entry.name}" for entry in entries if not entry.is_folder]
    for deletion in storage.delete_many(paths):
        if deletion.error:
            raise StorageError(deletion.path, f"could not be deleted: {deletion.error}")
    storage.remove_folder(folder)
