"""What a run that died after its work was done may leave: its lock, heartbeats and markers."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from reconciler.errors import NotFoundError, ReconcilerError
from reconciler.executor.session import ApplyContext
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.owner import Owner
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.locks.file_lock import TableLock
from reconciler.transaction.locks.store_clock import read_store_clock_ms
from reconciler.transaction.process import is_dead
from reconciler.transaction.recovery.finished_runs import is_on_timeline, remove_leftovers
from reconciler.transaction.session import open_lock


def remove_finished_runs(storage: Storage, spec: TableSpec, context: ApplyContext) -> None:
    """Release a stale lock of ours; remove heartbeats and remains of our instants that are done.

    Heartbeats only of dead runs, and what is left where such a heartbeat is: it is removed after
    that. Nothing is written to a table on which nothing was left. Other tools' files are not looked
    into. Raises BusyError where what was taken off the timeline has left more and the lock is held.
    """
    lock = open_lock(
        spec, storage, context.process.make_owner(context.new_token()), context.run_context
    )
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
        path = f"{HEARTBEAT_FOLDER}/{entry.name}"
        if entry.is_folder or not entry.size or entry.name in pending:
            continue
        owner = Owner.parse(storage.read(path))
        now_ms = context.clock.now_ms()
        if (
            owner
            and is_dead(
                owner,
                entry.modified_ms,
                process=context.process,
                now_ms=now_ms,
                store_ms=partial(read_store_clock_ms, storage),
            )
            and _remove_leftovers(storage, spec, lock, properties, entry.name)
        ):
            storage.delete(path)


def remove_old_index_versions(storage: Storage) -> None:
    """Remove versions of the index that are superseded, and half-written ones.

    A run that stops between publishing a version and removing older ones leaves nothing else to do,
    so no plan has a step for it. Only a version that can be read supersedes others. What cannot be
    read or removed is left alone: no read depends on it.
    """
    from reconciler.index.version_store import list_versions, read_newest  # noqa: PLC0415 (few have one)
    from reconciler.index.version_store import remove_superseded as tidy_versions  # noqa: PLC0415

    with suppress(ReconcilerError):
        versions = list_versions(storage)
        if versions.plan_removal(versions.last):
            found = read_newest(storage, versions)
            tidy_versions(storage, versions, found[0] if found else None)


def _remove_leftovers(
    storage: Storage, spec: TableSpec, lock: TableLock, properties: TableProperties, time: str
) -> bool:
    """Whether nothing is left of an instant but its heartbeat.

    A table whose lock nobody has declared is not written to.
    """
    timeline = load_timeline(storage, properties)
    if is_on_timeline(timeline, time):
        remove_leftovers(storage, properties, timeline, time)
        return True
    if spec.concurrency is None or spec.concurrency.lock is None:
        return False
    with lock.acquire():
        remove_leftovers(storage, properties, load_timeline(storage, properties), time)
    return True
