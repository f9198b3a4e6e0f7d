"""Sync the metadata table with a change of the table, before the change completes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING

from reconciler.errors import AlreadyExistsError
from reconciler.hudi.load import load_timeline
from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.metadata.partition_logs import SyncPlan
from reconciler.hudi.metadata.record_index import RecordIndex, list_global_slices
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.metadata.table import (
    MetadataTable,
    open_live_metadata,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.storage.api import Storage
from reconciler.transaction.instants import parse_instant_ms
from reconciler.transaction.metadata.live_partitions import drop_metadata_partitions

if TYPE_CHECKING:
    from reconciler.transaction.session import TableSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """A pending instant for which the metadata table is to be synced.

    ``timeline``: the data table's, with the instant pending. ``zone``: the zone of instants.
    ``choose_time`` returns the completion time of the metadata table's deltacommit (version 8 on),
    which is before the data instant's.
    """

    storage: Storage
    properties: TableProperties
    timeline: Timeline
    instant: str
    zone: tzinfo
    choose_time: Callable[[], str]

    @property
    def instant_ms(self) -> int:
        """The instant in epoch milliseconds; raises BlockedError for digits that are no time."""
        return parse_instant_ms(self.instant, self.zone)

    def open_table(self) -> MetadataTable:
        return open_live_metadata(self.storage, self.properties, self.timeline)


#: prepares a sync; None if the table has no metadata table. A SyncPlan may drop partitions.
PrepareSync = Callable[[SyncRequest], SyncPlan | MetadataSync | None]


def sync_metadata(
    session: TableSession,
    properties: TableProperties,
    timeline: Timeline,
    instant: str,
    prepare: PrepareSync,
) -> tuple[Note, ...]:
    """Bring the metadata table up to a change, and return a note for each index that was dropped.

    The table's lock is held. Raises what ``prepare`` raises, BusyError, StorageError. Of two
    writers that believe to hold the lock one finds that the next log file exists (version 6).
    """
    storage = session.storage

    def choose_time() -> str:
        newest = find_newest_time(storage, properties, timeline)
        return session.publisher.choose_time(timeline, newest)

    prepared = prepare(
        SyncRequest(
            storage=storage,
            properties=properties,
            timeline=timeline,
            instant=instant,
            zone=session.publisher.zone,
            choose_time=choose_time,
        )
    )
    if prepared is None or not properties.metadata_partitions:
        return ()
    session.lock.confirm()
    plan = prepared if isinstance(prepared, SyncPlan) else SyncPlan(sync=prepared)
    try:
        if isinstance(prepared, SyncPlan):
            drop_metadata_partitions(storage, properties, plan.dropped_partitions)
        apply_sync(storage, plan.sync)
    except AlreadyExistsError:
        session.lock.confirm()
        raise
    return tuple(
        Note("metadata", f"the metadata partition {name} was dropped: {why}")
        for name, why in sorted(plan.drop_reasons.items())
    )


def find_newest_time(
    storage: Storage, properties: TableProperties, timeline: Timeline
) -> str | None:
    """Return the greatest time on the metadata table's timeline; None if it does not matter.

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
    """Return the record index that covers all partitions, None if there is none.

    It is as of ``timeline``, provided that no write has completed since that was read: pending
    writes are looked up again. Raises FormatError if the index is missing, UnsupportedError.
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
