"""What runs that died have left of their writes: it is taken back, or tidied where it is done."""

from __future__ import annotations

from reconciler.errors import NotFoundError
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.process import Process
from reconciler.transaction.recovery.dead_writes import (
    LastHeartbeat,
    find_pending_instant,
    is_row_write,
)
from reconciler.transaction.recovery.finished_runs import remove_leftovers
from reconciler.transaction.recovery.pending_instants import withdraw_instant
from reconciler.transaction.session import TableSession


def undo_dead_writes(session: TableSession, process: Process) -> tuple[str, ...]:
    """Take back the pending writes of ours whose run is dead, and give their instants.

    What is left of such that are completed, or were never announced, goes too. Takes the lock where
    there is anything to do. Raises StorageError, FormatError, BusyError.
    """
    if not _find_dead_instants(session, process):
        return ()
    undone = []
    with session.hold_lock():
        for time in _find_dead_instants(session, process):
            timeline = session.reload_timeline()
            pending = find_pending_instant(timeline, time)
            if pending is not None and not is_row_write(session, timeline, pending):
                continue  # an apply finishes it, and knows by the heartbeat whose it is
            session.lock.confirm()
            if pending is None:
                remove_leftovers(session.storage, session.properties, timeline, time)
            elif not is_being_rolled_back(session, timeline, time):
                withdraw_instant(session, time, pending.action)
                undone.append(time)
            session.make_heartbeat(time).remove()
    return tuple(undone)


def _find_dead_instants(session: TableSession, process: Process) -> list[str]:
    """The instants of dead runs of ours that have a heartbeat, oldest first."""
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
