"""Pending writes of ours whose run is dead: how they are known, and what taking them back asks.

Whose a write is its heartbeat says; what Hudi requests a write with has no place for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from reconciler.errors import NotFoundError
from reconciler.hudi.load import instant_file_path, read_instant_file
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.requested_replace import RequestedReplace
from reconciler.storage.api import Storage
from reconciler.transaction.locks.store_clock import read_store_clock_ms
from reconciler.transaction.process import Process, is_dead
from reconciler.transaction.session import TableSession


@dataclass(frozen=True, slots=True)
class LastHeartbeat:
    """Whose heartbeat it is, and when it was last heard, epoch milliseconds."""

    owner: Owner
    at_ms: int

    def is_owner_dead(self, session: TableSession, process: Process) -> bool:
        """Whether there can be no other: its run is dead, by the clock of the store as well."""
        return is_dead(
            self.owner,
            self.at_ms,
            process=process,
            now_ms=session.clock.now_ms(),
            store_ms=partial(read_store_clock_ms, session.storage),
        )


def read_last_heartbeat(storage: Storage, instant: str) -> LastHeartbeat | None:
    """The last beat of an instant; None where it has none, or none of ours. Raises StorageError."""
    path = heartbeat_path(instant)
    entry = storage.stat(path)
    if entry is None:
        return None
    try:
        owner = Owner.parse(storage.read(path))
    except NotFoundError:
        return None
    return None if owner is None else LastHeartbeat(owner, entry.modified_ms)


def find_pending_instant(timeline: Timeline, time: str) -> Instant | None:
    """What is pending of a time."""
    found = (one for one in timeline.instants if one.requested == time)
    return next((one for one in found if not one.is_completed), None)


def is_row_write(session: TableSession, timeline: Timeline, pending: Instant) -> bool:
    """Whether it is a write of rows, and no table service, whose plan is never empty.

    Raises StorageError, FormatError.
    """
    if pending.action is not Action.REPLACECOMMIT:
        return pending.action is Action.COMMIT
    file = timeline.find_file(pending.requested, pending.action, State.REQUESTED)
    if file is None:
        return True
    data = read_instant_file(session.storage, session.properties, file)
    if not data:
        return True
    return not RequestedReplace.parse(
        data, instant_file_path(session.properties, file)
    ).is_clustering
