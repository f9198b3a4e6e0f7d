"""What runs that died have left of their writes: it is taken back, or tidied where it is done."""

from __future__ import annotations

from reconciler.errors import NotFoundError
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.owner import Owner
from reconciler.transaction.dead_writes import Beat, is_write, pending_of
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.hold import Hold
from reconciler.transaction.process import Process
from reconciler.transaction.remains import remove_remains
from reconciler.transaction.undo import withdraw


def undo_dead_writes(hold: Hold, process: Process) -> tuple[str, ...]:
    """Take back the pending writes of ours whose run is dead, and give their instants.

    What is left of such that are completed, or were never announced, goes too. Takes the lock where
    there is anything to do. Raises StorageError, FormatError, BusyError.
    """
    if not _dead(hold, process):
        return ()
    undone = []
    with hold.locked():
        for time in _dead(hold, process):
            timeline = hold.reread()
            pending = pending_of(timeline, time)
            if pending is not None and not is_write(hold, timeline, pending):
                continue  # an apply finishes it, and knows by the heartbeat whose it is
            hold.lock.confirm()
            if pending is None:
                remove_remains(hold.storage, hold.properties, timeline, time)
            elif not is_being_rolled_back(hold, timeline, time):
                withdraw(hold, time, pending.action)
                undone.append(time)
            hold.heartbeat(time).remove()
    return tuple(undone)


def _dead(hold: Hold, process: Process) -> list[str]:
    """The instants of dead runs of ours that have a heartbeat, oldest first."""
    try:
        entries = hold.storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return []
    found = []
    for entry in entries:
        if entry.is_folder or not entry.name.isdigit():
            continue
        try:
            owner = Owner.parse(hold.storage.read(heartbeat_path(entry.name)))
        except NotFoundError:
            continue
        if owner and Beat(owner, entry.modified_ms).is_last(hold, process):
            found.append(entry.name)
    return sorted(found)
