"""Who has the lock of a declared table, for a status."""

from __future__ import annotations

from reconciler.errors import ReconcilerError
from reconciler.hudi.locks import has_expired
from reconciler.spec.model import TableSpec
from reconciler.status import LockStatus
from reconciler.storage.api import Storage
from reconciler.storage.wrappers import ReadOnly
from reconciler.transaction.hold import Opener
from reconciler.transaction.lock import is_left_behind, lock_place, look
from reconciler.transaction.process import Clock, Process


def status_of_lock(
    spec: TableSpec, open_storage: Opener, *, process: Process, clock: Clock
) -> LockStatus | None:
    """Who has the table's lock; None where nobody has it, or where nobody can tell."""
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider == "none":
        return None

    def opened(folder: str) -> Storage:
        return ReadOnly(open_storage(folder, spec.storage_options))

    try:
        storage, path = lock_place(lock.path, opened(spec.path), opened)
        held = look(storage, path)
    except ReconcilerError:
        return None  # what is wrong with the table is said elsewhere
    if held is None:
        return None
    now_ms = clock.now_ms()  # of the lock's life, whatever the status is as of
    return LockStatus(
        path=f"{storage.location}/{path}",
        held_by=held.describe(now_ms),
        age_seconds=max(0, now_ms - held.since_ms) // 1000,
        is_stale=has_expired(held.since_ms, now_ms, lock.expire)
        or is_left_behind(held, process=process, now_ms=now_ms, store_ms=lambda: now_ms),
    )
