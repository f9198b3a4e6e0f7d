"""Pending writes of ours whose run is dead: how they are known, and what taking them back asks.

Whose a write is its heartbeat says; what Hudi requests a write with has no place for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from reconciler.errors import NotFoundError
from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.heartbeat import heartbeat_path
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.load import instant_path, read_instant_file
from reconciler.hudi.owner import Owner
from reconciler.hudi.timeline import Timeline
from reconciler.storage.api import Storage
from reconciler.transaction.hold import Hold
from reconciler.transaction.process import Process, is_dead
from reconciler.transaction.store_clock import store_now_ms


@dataclass(frozen=True, slots=True)
class Beat:
    """Whose heartbeat it is, and when it was last heard, epoch milliseconds."""

    owner: Owner
    at_ms: int

    def is_last(self, hold: Hold, process: Process) -> bool:
        """Whether there can be no other: its run is dead, by the clock of the store as well."""
        return is_dead(
            self.owner,
            self.at_ms,
            process=process,
            now_ms=hold.clock.now_ms(),
            store_ms=partial(store_now_ms, hold.storage),
        )


def beat_of(storage: Storage, instant: str) -> Beat | None:
    """The last beat of an instant; None where it has none, or none of ours. Raises StorageError."""
    path = heartbeat_path(instant)
    entry = storage.stat(path)
    if entry is None:
        return None
    try:
        owner = Owner.parse(storage.read(path))
    except NotFoundError:
        return None
    return None if owner is None else Beat(owner, entry.modified_ms)


def pending_of(timeline: Timeline, time: str) -> Instant | None:
    """What is pending of a time."""
    found = (one for one in timeline.instants if one.requested == time)
    return next((one for one in found if not one.is_completed), None)


def is_write(hold: Hold, timeline: Timeline, pending: Instant) -> bool:
    """Whether it is a write of rows, and no table service, whose plan is never empty.

    Raises StorageError, FormatError.
    """
    if pending.action is not Action.REPLACECOMMIT:
        return pending.action is Action.COMMIT
    file = timeline.file(pending.requested, pending.action, State.REQUESTED)
    if file is None:
        return True
    data = read_instant_file(hold.storage, hold.properties, file)
    if not data:
        return True
    return not RequestedReplace.parse(data, instant_path(hold.properties, file)).is_clustering
