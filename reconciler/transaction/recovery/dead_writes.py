"""Take back pending writes of reconciler whose run is dead.

The heartbeat of a write names its owner. The file that Hudi requests a write with has no place for
that.
"""

from __future__ import annotations

from functools import partial

from reconciler.errors import NotFoundError
from reconciler.hudi.load import load_heartbeat_owner
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.recovery.finished_runs import remove_leftovers
from reconciler.transaction.recovery.marked_files import find_shared_logs
from reconciler.transaction.recovery.pending_instants import withdraw_instant
from reconciler.transaction.recovery.takeover import LastHeartbeat
from reconciler.transaction.session import TableSession


def find_pending_instant(timeline: Timeline, time: str) -> Instant | None:
    """Return the pending instant of a time, if there is one."""
    pending = (instant for instant in timeline.instants if not instant.is_completed)
    return next((instant for instant in pending if instant.requested == time), None)


def is_row_write(session: TableSession, timeline: Timeline, pending: Instant) -> bool:
    """Return True if an instant writes rows; one of a table service has a plan, never an empty one.

    Raises StorageError, FormatError.
    """
    if pending.action is not Action.REPLACECOMMIT:
        return pending.action in (Action.COMMIT, Action.DELTACOMMIT)
    file = timeline.find_file(pending.requested, pending.action, State.REQUESTED)
    if file is None:
        return True
    data, path = session.read_instant(file)
    return not data or not RequestedReplace.parse(data, path).is_clustering


def undo_dead_writes(session: TableSession) -> tuple[str, ...]:
    """Take back reconciler's pending writes whose run is dead, and return their instants.

    What is left of dead writes that are completed, or that were never announced, is removed too.
    The lock is taken if there is anything to do. Raises StorageError, FormatError, BusyError.
    """
    if not _find_dead_instants(session):
        return ()
    undone: list[str] = []
    session.run_locked(partial(_undo_dead_instants, session, undone))
    return tuple(undone)


def _undo_dead_instants(session: TableSession, undone: list[str]) -> None:
    """Take back what is dead, and add its instants; the table's lock is held."""
    for time in _find_dead_instants(session):
        timeline = session.reload_timeline()
        pending = find_pending_instant(timeline, time)
        if pending is not None and not is_row_write(session, timeline, pending):
            continue  # an apply finishes it, and needs the heartbeat to know its owner
        session.lock.confirm()
        if pending is None:
            if not remove_leftovers(session.storage, session.properties, timeline, time):
                continue
        elif find_shared_logs(session.storage, time):
            continue  # only a rollback of Hudi cancels its rows
        elif not is_being_rolled_back(session, timeline, time):
            withdraw_instant(session, time, pending.action)
            undone.append(time)
        session.storage.delete(heartbeat_path(time))


def _find_dead_instants(session: TableSession) -> list[str]:
    """Return the instants of reconciler's dead runs that have a heartbeat, oldest first."""
    storage, process = session.storage, session.run_context.process
    try:
        entries = storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return []
    dead = []
    for entry in entries:
        if entry.is_folder or not entry.name.isdigit():
            continue
        owner = load_heartbeat_owner(storage, entry.name)
        beat = LastHeartbeat(owner, entry.modified_ms) if owner else None
        if beat and beat.is_owner_dead(storage, process, session.clock.now_ms()):
            dead.append(entry.name)
    return sorted(dead)
