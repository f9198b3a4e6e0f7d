"""What runs that died have left of their writes: it is taken back, or tidied where it is done."""

from __future__ import annotations

from typing import Final

from reconciler.errors import NotFoundError
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.instant import Action
from reconciler.hudi.load import load_archived
from reconciler.hudi.owner import Owner
from reconciler.hudi.timeline import Timeline
from reconciler.transaction.dead_writes import Beat, is_write, pending_of
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.hold import Hold
from reconciler.transaction.marked import remove_markers, remove_unnamed
from reconciler.transaction.process import Process
from reconciler.transaction.undo import clear, withdraw

_WRITES: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})


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
                _tidy(hold, timeline, time)
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


def _tidy(hold: Hold, timeline: Timeline, time: str) -> None:
    """What a completed write has left, or one that is not on the timeline any more.

    One that is not in the archive either was taken back: files of it must go before the timeline
    begins after it, from when on they would be read. Savepoints keep older instants than those that
    are archived on the timeline, so that where it begins does not tell.
    """
    done = [one for one in timeline.instants if one.requested == time and one.is_completed]
    for one in done:
        if one.action in _WRITES:
            remove_unnamed(hold.storage, hold.properties, timeline, one)
    is_after = any(one.requested < time for one in timeline.commits)
    if not done and is_after and not _is_archived(hold, time):
        clear(hold, time)
    remove_markers(hold.storage, time)


def _is_archived(hold: Hold, time: str) -> bool:
    return any(one.requested == time for one in load_archived(hold.storage, hold.properties))
