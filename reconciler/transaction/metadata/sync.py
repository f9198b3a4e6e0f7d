"""Sync the metadata table with a change of the table, before the change completes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reconciler.hudi.load import load_timeline
from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.metadata.partition_logs import SyncPlan
from reconciler.hudi.metadata.record_index import RecordIndex, list_global_slices
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.metadata.table import open_live_metadata
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.plans.model import Note
from reconciler.storage.api import Storage
from reconciler.transaction.metadata import rewrite_sync

if TYPE_CHECKING:
    from reconciler.transaction.session import TableSession


#: prepares a sync from the table's properties and a function that chooses the completion time of
#: its deltacommit; None where the table has no metadata table. A SyncPlan may drop partitions.
PrepareSync = Callable[[TableProperties, Callable[[], str]], SyncPlan | MetadataSync | None]


def sync_metadata(
    session: TableSession, properties: TableProperties, timeline: Timeline, prepare: PrepareSync
) -> tuple[Note, ...]:
    """Bring the metadata table up to a change, and return a note for each index that was dropped.

    The table's lock is held. Raises what ``prepare`` raises, BusyError, StorageError.
    """
    storage = session.storage

    def choose_completion_time() -> str:
        newest = find_newest_time(storage, properties, timeline)
        return session.publisher.choose_time(timeline, newest)

    prepared = prepare(properties, choose_completion_time)
    if prepared is None:
        return ()
    session.lock.confirm()
    if not isinstance(prepared, SyncPlan):
        apply_sync(storage, prepared)
        return ()
    drop_metadata_partitions(storage, properties, prepared.dropped_partitions)
    apply_sync(storage, prepared.sync)
    return tuple(
        Note("metadata", f"the metadata partition {name} was dropped: {why}")
        for name, why in sorted(prepared.drop_reasons.items())
    )


def drop_metadata_partitions(
    storage: Storage, properties: TableProperties, names: Sequence[str]
) -> None:
    """Drop metadata partitions, and what a stop in the middle of an earlier drop has left."""
    left = rewrite_sync.find_leftover_partitions(storage, properties)
    if names or left:
        rewrite_sync.drop_partitions(storage, properties, {*names, *left})


def find_newest_time(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> str | None:
    """Return the greatest time on the metadata table's timeline; None where it does not matter.

    It matters in layout 2, where a deltacommit that completes before a compaction began is not
    read.
    """
    if not properties.metadata_partitions or properties.layout == 1:
        return None
    table = open_live_metadata(storage, properties, timeline)
    return table.timeline.newest_time


def open_record_index(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> RecordIndex | None:
    """Return the record index that covers all partitions, None where none is live.

    It is as of ``timeline``, provided that no write has completed since that was read: pending
    writes are looked up again. Raises FormatError where the index is missing, UnsupportedError.
    """
    if RECORD_INDEX not in properties.metadata_partitions:
        return None
    table = open_live_metadata(storage, properties, timeline)
    slices = list_global_slices(table)
    if slices is None:
        return None
    return RecordIndex(
        version=table.version,
        metadata_timeline=table.timeline,
        data_timeline=load_timeline(storage, properties),
        slices=slices,
    )


def apply_sync(storage: Storage, sync: MetadataSync | None) -> None:
    """Write a sync to storage, in its order."""
    if sync is None:
        return
    for path in sync.cleanup:
        storage.delete(path)
    for write in sync.writes:
        storage.create(write.path, write.data)
