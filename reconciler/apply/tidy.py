"""What a run that died after its work was done may leave: its lock, heartbeats and markers."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from reconciler.apply.table import Tools
from reconciler.errors import NotFoundError, ReconcilerError
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.owner import Owner
from reconciler.hudi.properties import TableProperties
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.hold import lock_of
from reconciler.transaction.lock import TableLock
from reconciler.transaction.process import is_dead
from reconciler.transaction.remains import is_known, remove_remains
from reconciler.transaction.store_clock import store_now_ms


def tidy(storage: Storage, spec: TableSpec, tools: Tools) -> None:
    """Release a stale lock of ours; remove heartbeats and remains of our instants that are done.

    Heartbeats only of dead runs, and what is left where such a heartbeat is: it is removed after
    that. Nothing is written to a table on which nothing was left. Other tools' files are not looked
    into. Raises BusyError where what was taken off the timeline has left more and the lock is held.
    """
    lock = lock_of(spec, storage, tools.process.owner(tools.new_token()), tools.means)
    lock.release_stale()
    if spec.index is not None:
        tidy_index(storage)
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
        now_ms = tools.clock.now_ms()
        if (
            owner
            and is_dead(
                owner,
                entry.modified_ms,
                process=tools.process,
                now_ms=now_ms,
                store_ms=partial(store_now_ms, storage),
            )
            and _remove_remains(storage, spec, lock, properties, entry.name)
        ):
            storage.delete(path)


def tidy_index(storage: Storage) -> None:
    """Remove versions of the index that are superseded, and half-written ones.

    A run that stops between publishing a version and removing older ones leaves nothing else to do,
    so no plan has a step for it. Only a version that can be read supersedes others. What cannot be
    read or removed is left alone: no read depends on it.
    """
    from reconciler.index.store import list_versions, read_last  # noqa: PLC0415 (few have one)
    from reconciler.index.store import tidy as tidy_versions  # noqa: PLC0415

    with suppress(ReconcilerError):
        versions = list_versions(storage)
        if versions.removal(versions.last):
            found = read_last(storage, versions)
            tidy_versions(storage, versions, found[0] if found else None)


def _remove_remains(
    storage: Storage, spec: TableSpec, lock: TableLock, properties: TableProperties, time: str
) -> bool:
    """Whether nothing is left of an instant but its heartbeat.

    A table whose lock nobody has declared is not written to.
    """
    timeline = load_timeline(storage, properties)
    if is_known(timeline, time):
        remove_remains(storage, properties, timeline, time)
        return True
    if spec.concurrency is None or spec.concurrency.lock is None:
        return False
    with lock.hold():
        remove_remains(storage, properties, load_timeline(storage, properties), time)
    return True
