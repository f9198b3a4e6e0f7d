"""Take back pending writes of ours whose run is dead.

The heartbeat of a write names its owner. The file that Hudi requests a write with has no place for
that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from reconciler.errors import NotFoundError
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.storage.api import Storage
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.locks.store_clock import read_store_clock_ms
from reconciler.transaction.process import Process, is_dead
from reconciler.transaction.recovery.finished_runs import remove_leftovers
from reconciler.transaction.recovery.pending_instants import withdraw_instant
from reconciler.transaction.session import TableSession


@dataclass(frozen=True, slots=True)
class LastHeartbeat:
    """The owner of a heartbeat, and when it was last written, epoch milliseconds."""

    owner: Owner
    at_ms: int

    def is_owner_dead(self, session: TableSession, process: Process) -> bool:
        """Whether its run is dead, by the clock of the store as well; ``process``: this one."""
        return is_dead(
            self.owner,
            self.at_ms,
            process=process,
            now_ms=session.clock.now_ms(),
            store_ms=partial(read_store_clock_ms, session.storage),
        )


def read_last_heartbeat(storage: Storage, instant: str) -> LastHeartbeat | None:
    """Return the last heartbeat of an instant; None where it has none, or none of ours.

    Raises StorageError.
    """
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
    """Return the pending instant of a time, if there is one."""
    found = (one for one in timeline.instants if one.requested == time)
    return next((one for one in found if not one.is_completed), None)


def is_row_write(session: TableSession, timeline: Timeline, pending: Instant) -> bool:
    """Whether an instant writes rows. That of a table service has a plan, which is never empty.

    Raises StorageError, FormatError.
    """
    if pending.action is not Action.REPLACECOMMIT:
        return pending.action is Action.COMMIT
    file = timeline.find_file(pending.requested, pending.action, State.REQUESTED)
    if file is None:
        return True
    data, path = read_instant_file(session.storage, session.properties, file)
    return not data or not RequestedReplace.parse(data, path).is_clustering


def undo_dead_writes(session: TableSession, process: Process) -> tuple[str, ...]:
    """Take back the pending writes of ours whose run is dead, and return their instants.

    What is left of dead writes that are completed, or that were never announced, goes too. The lock
    is taken where there is anything to do. Raises StorageError, FormatError, BusyError.
    """
    if not _find_dead_instants(session, process):
        return ()
    undone = []
    with session.hold_lock():
        for time in _find_dead_instants(session, process):
            timeline = session.reload_timeline()
            pending = find_pending_instant(timeline, time)
            if pending is not None and not is_row_write(session, timeline, pending):
                continue  # an apply finishes it, and needs the heartbeat to know its owner
            session.lock.confirm()
            if pending is None:
                remove_leftovers(session.storage, session.properties, timeline, time)
            elif not is_being_rolled_back(session, timeline, time):
                withdraw_instant(session, time, pending.action)
                undone.append(time)
            session.make_heartbeat(time).remove()
    return tuple(undone)


def _find_dead_instants(session: TableSession, process: Process) -> list[str]:
    """Return the instants of dead runs of ours that have a heartbeat, oldest first."""
    try:
        entries = session.storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return []
    found = []
    for entry in entries:
        if entry.is_folder or not entry.name.isdigit():
            continue
        try:
            owner = Owner.parse(session.storage.read(heartbeat_path(entry.name)))
        except NotFoundError:
            continue
        if owner and LastHeartbeat(owner, entry.modified_ms).is_owner_dead(session, process):
            found.append(entry.name)
    return sorted(found)
