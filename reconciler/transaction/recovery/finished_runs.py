"""Clean up after runs that died when their work was done.

Such a run leaves its lock, its heartbeat, markers, and files that its instant does not name. No
other program looks for them, and only the heartbeat points to them, so it is deleted last.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    NotFoundError,
    ReconcilerError,
    VanishedLockError,
)
from reconciler.hudi.load import (
    load_archived_instants,
    load_heartbeat_owner,
    load_properties,
    load_timeline,
)
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.heartbeat import HeartbeatThread
from reconciler.transaction.locks.table_lock import TableLock
from reconciler.transaction.recovery.marked_files import remove_markers, remove_uncommitted_files
from reconciler.transaction.recovery.pending_instants import remove_withdrawn_attempt
from reconciler.transaction.recovery.takeover import LastHeartbeat
from reconciler.transaction.session import RunContext, get_heartbeat_interval, open_lock

#: the table version from which on completed files are named by their completion time, too
_LAYOUT_2: Final = 8
_WRITES: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})


def remove_finished_runs(
    storage: Storage, spec: TableSpec, context: RunContext, owner: Owner
) -> None:
    """Release reconciler's stale lock, and remove what dead runs left of instants that are done.

    Only heartbeats of dead runs are removed, after what is left of their instants. A table on which
    nothing is left is not written to, and other tools' files are not read. ``owner``: this run.
    Raises BusyError if the lock is needed and another run has it.
    """
    lock = open_lock(spec, storage, owner, context)
    heartbeats = HeartbeatThread(get_heartbeat_interval(spec, context))
    lock.release_stale()
    if spec.index is not None:
        remove_old_index_versions(storage)
    try:
        entries = storage.list(HEARTBEAT_FOLDER)
    except NotFoundError:
        return
    if not entries:
        return
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    pending = {i.requested for i in timeline.instants if not i.is_completed}
    for entry in entries:
        if entry.is_folder or not entry.size or entry.name in pending:
            continue
        last_owner = load_heartbeat_owner(storage, entry.name)
        beat = LastHeartbeat(last_owner, entry.modified_ms) if last_owner else None
        if beat is None or not beat.is_owner_dead(storage, context.process, context.clock.now_ms()):
            continue
        _remove_dead_run(storage, spec, lock, heartbeats, properties, entry.name)


def remove_old_index_versions(storage: Storage) -> None:
    """Remove versions of the index that are superseded, and half-written ones.

    A run that stops between publishing a version and removing older ones leaves nothing else to do,
    so no plan has a step for it. Only a version that can be read supersedes others. What cannot be
    read or removed stays: no read depends on it.
    """
    from reconciler.index.version_store import (  # noqa: PLC0415 (few tables have one)
        list_versions,
        read_newest,
        remove_superseded,
    )

    with suppress(ReconcilerError):
        versions = list_versions(storage)
        if versions.plan_removal(versions.last):
            newest = read_newest(storage, versions)
            remove_superseded(storage, versions, newest[0] if newest else None)


def remove_leftovers(
    storage: Storage, properties: TableProperties, timeline: Timeline, time: str
) -> bool:
    """Remove what a completed instant does not name, or everything of one that was taken back.

    An instant that is neither on the timeline nor in the archive was taken back. Its files must go
    before the timeline begins after it, because from then on they would be read. The metadata table
    must forget what it was given later. For both the table's lock is held. Returns False if the
    instant is pending, because the time of one that was taken back may be taken again, or if it was
    archived meanwhile; then the next run looks again. Raises StorageError, FormatError.
    """
    if any(one.requested == time and not one.is_completed for one in timeline.instants):
        return False
    done = [one for one in timeline.instants if one.requested == time and one.is_completed]
    try:
        for instant in done:
            if instant.action is Action.REPLACECOMMIT:
                write_missing_inflight(storage, properties, timeline, time)
            if instant.action in _WRITES:
                remove_uncommitted_files(storage, properties, timeline, instant)
    except NotFoundError:  # of its completed file
        return False
    if not done and _was_withdrawn(storage, properties, timeline, time):
        remove_withdrawn_attempt(storage, time)
    remove_markers(storage, time)
    return True


def write_missing_inflight(
    storage: Storage, properties: TableProperties, timeline: Timeline, time: str
) -> None:
    """Write the inflight file of a completed clustering of version 6 that has none.

    Where it is missing, Hudi 0.15.0 begins to execute a completed clustering once more if it is
    told its time, and its files would be read. Nobody can complete the instant again, whose
    completed file has the same name then. From version 8 on Hudi looks at the state first, and a
    second completed file would have another name. For compactions every version looks first
    (HoodieSparkMergeOnReadTableCompactor.preCompact).
    """
    if properties.table_version >= _LAYOUT_2:
        return
    states = {f.instant.state for f in timeline.files if f.instant.requested == time}
    if states == {State.REQUESTED, State.COMPLETED}:
        inflight = Instant(time, Action.REPLACECOMMIT, State.INFLIGHT)
        with suppress(AlreadyExistsError):
            storage.create(f"{properties.timeline_folder}/{inflight.file_name}", b"")


def _remove_dead_run(
    storage: Storage,
    spec: TableSpec,
    lock: TableLock,
    heartbeats: HeartbeatThread,
    properties: TableProperties,
    time: str,
) -> None:
    """Remove what a dead run left of an instant that is not pending, and at last its heartbeat.

    Of a completed instant nobody makes files any more, so that needs no lock. Everything of one
    that was taken back goes, so the look at the timeline and the removal hold the lock: another run
    may take its time. A table whose spec declares no lock is not written to.
    """
    path = heartbeat_path(time)
    timeline = load_timeline(storage, properties)
    if any(one.requested == time for one in timeline.instants):
        if remove_leftovers(storage, properties, timeline, time):
            storage.delete(path)
        return
    if spec.concurrency is None or spec.concurrency.lock is None:
        return
    # if the lock vanishes the heartbeat stays, and leads the next run here
    with suppress(VanishedLockError), lock.acquire(), heartbeats.repeat(lock.renew):
        timeline = load_timeline(storage, properties)
        lock.confirm()
        if remove_leftovers(storage, properties, timeline, time):
            storage.delete(path)


def _was_withdrawn(
    storage: Storage, properties: TableProperties, timeline: Timeline, time: str
) -> bool:
    """Return whether an instant that is not on the timeline was never completed.

    Savepoints keep instants on the timeline that are older than archived ones, so where it begins
    does not tell. The archive may have lost a part of what is older than the whole timeline.
    """
    archived = {instant.requested for instant in load_archived_instants(storage, properties)}
    is_after = any(instant.requested < time for instant in timeline.commits)
    return time not in archived and (is_after or not archived)
