"""What a run that died has left of an instant that is not pending, or not any more.

Nobody else looks for it: with the heartbeat of the run the last that tells of it goes.
"""

from __future__ import annotations

from typing import Final

from reconciler.hudi.load import load_archived_instants
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.storage.api import Storage
from reconciler.transaction.recovery.marked_files import remove_markers, remove_uncommitted_files
from reconciler.transaction.recovery.pending_instants import remove_withdrawn_attempt

_WRITES: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})


def is_on_timeline(timeline: Timeline, time: str) -> bool:
    """Whether there is anything of an instant on the timeline."""
    return any(one.requested == time for one in timeline.instants)


def remove_leftovers(
    storage: Storage, properties: TableProperties, timeline: Timeline, time: str
) -> None:
    """Remove what a completed instant does not name, or all of one that was taken back.

    One that is on the timeline no more and not in the archive either was taken back: files of it
    must go before the timeline begins after it, from when on they would be read, and the metadata
    table must forget what it heard later. For that the table's lock is held. ``time``: nothing of
    it is pending. Raises StorageError, FormatError.
    """
    done = [one for one in timeline.instants if one.requested == time and one.is_completed]
    for one in done:
        if one.action in _WRITES:
            remove_uncommitted_files(storage, properties, timeline, one)
    if not done and _was_withdrawn(storage, properties, timeline, time):
        remove_withdrawn_attempt(storage, time)
    remove_markers(storage, time)


def _was_withdrawn(
    storage: Storage, properties: TableProperties, timeline: Timeline, time: str
) -> bool:
    """Whether an instant that is not on the timeline was never completed.

    Savepoints keep older instants than those that are archived on the timeline, so that where it
    begins does not tell. Of what is older than all that is on it a part of the archive may be lost.
    """
    archived = {one.requested for one in load_archived_instants(storage, properties)}
    is_after = any(one.requested < time for one in timeline.commits)
    return time not in archived and (is_after or not archived)
