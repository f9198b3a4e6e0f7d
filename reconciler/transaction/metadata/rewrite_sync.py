"""Prepare the metadata table's part of a rewrite, and check its listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.load import PROPERTIES, read_instant_file
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.listing import read_metadata_listing
from reconciler.hudi.metadata.new_files import NewFiles
from reconciler.hudi.metadata.partition_logs import (
    SyncPlan,
    plan_compaction_sync,
    plan_rewrite_sync,
)
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.storage.api import Storage
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.paths import list_names_of_partitions

if TYPE_CHECKING:
    from reconciler.file_slices.base_file.writer import WrittenFile

_KEY: Final = "_hoodie_record_key"
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def find_indexed_columns(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> tuple[str, ...]:
    """Return the columns whose ranges every new file has to record; often none.

    Names have dots into structs. Only columns of the table's schema that are stored in files count.
    Raises FormatError, UnsupportedError.
    """
    if COLUMN_STATS not in properties.metadata_partitions:
        return ()
    columns = read_indexed_columns(open_live_metadata(storage, properties, timeline))
    return _filter_stored(columns, storage, properties, timeline) if columns else ()


def prepare_rewrite_sync(
    request: SyncRequest, added: Mapping[str, Sequence[WrittenFile]]
) -> SyncPlan:
    """Return what the metadata table has to be given of new files, and which partitions must go.

    ``added``: partition path ("" of a table without partitions) -> its new files, which are on
    storage. Raises FormatError, UnsupportedError; StaleError when the instant is not pending;
    BusyError when a partition must go while another write is pending.
    """
    return _prepare_sync(request, added, plan_rewrite_sync)


def prepare_compaction_sync(
    request: SyncRequest, added: Mapping[str, Sequence[WrittenFile]]
) -> SyncPlan:
    """Return what the metadata table has to be given of a compaction's files.

    As ``prepare_rewrite_sync``.
    """
    return _prepare_sync(request, added, plan_compaction_sync)


def _prepare_sync(
    request: SyncRequest,
    added: Mapping[str, Sequence[WrittenFile]],
    plan: Callable[..., SyncPlan],
) -> SyncPlan:
    storage, properties = request.storage, request.properties
    if not properties.metadata_partitions:
        return SyncPlan()
    completed = request.choose_time()
    table = request.open_table()
    listing = read_metadata_listing(table)
    new_files = NewFiles(
        instant=request.instant,
        completion_time=completed,
        instant_ms=request.instant_ms,
        files_by_partition=added,
        columns=find_indexed_columns(storage, properties, request.timeline),
        read_keys=lambda path, size: read_record_keys(storage, path, size),
    )
    inflight = properties.metadata_partitions_inflight
    return plan(table, listing, new_files, inflight=inflight)


def find_listing_differences(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    added: Mapping[str, Sequence[WrittenFile]],
) -> dict[str, list[str]]:
    """Return the files that the metadata table lists wrongly, as names by partition.

    It is called after the commit, with a timeline that shows it. Wrong is a new file that is not
    listed with its size, and a listed file in its partition that is not on disk.
    """
    if not properties.metadata_partitions:
        return {}
    listing = read_metadata_listing(open_live_metadata(storage, properties, timeline))
    listed = {
        path: dict(zip(names, sizes, strict=True))
        for path, names, sizes in listing.read_folders(set(added))
    }
    on_disk = list_names_of_partitions(storage, added)
    differences = {}
    for path, files in added.items():
        names = listed.get(path, {})
        wrong = {file.name for file in files if names.get(file.name) != file.size}
        wrong |= names.keys() - on_disk[path]
        if wrong:
            differences[path] = sorted(wrong)
    return differences


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

    newest = read_newest_schema(storage, properties, timeline)
    if newest is None:
        return tuple(columns)
    schema = add_meta_columns(to_arrow_schema(*newest))
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
