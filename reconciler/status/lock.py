"""The holder of a table's lock, for its status."""

from __future__ import annotations

from reconciler.errors import ReconcilerError
from reconciler.hudi.timeline.lock_file import is_lock_expired
from reconciler.spec.model import TableSpec
from reconciler.status.model import LockStatus
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.transaction.locks.file_lock import locate_lock, read_lock_holder
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.session import StorageOpener


def read_lock_status(
    spec: TableSpec, open_storage: StorageOpener, *, process: Process, clock: Clock
) -> LockStatus | None:
    """Return the holder of the table's lock; None if it is free or cannot be read."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
        return None

    def opened(folder: str) -> Storage:
        return ReadOnlyStorage(open_storage(folder, spec.storage_options))

    try:
        storage, path = locate_lock(lock.path, opened(spec.path), opened)
        held = read_lock_holder(storage, path)
    except ReconcilerError:
        return None  # the plan reports what is wrong with the table
    if held is None:
        return None
    now_ms = clock.now_ms()  # a lock ages by the real clock, whatever time the status is for
    return LockStatus(
        path=f"{storage.location}/{path}",
        held_by=held.describe(now_ms),
        age_seconds=max(0, now_ms - held.since_ms) // 1000,
        is_stale=is_lock_expired(held.since_ms, now_ms, lock.expire)
        or held.is_dead(process, now_ms, lambda: now_ms),
    )
