"""The holder of a table's lock, for its status."""

from __future__ import annotations

from reconciler.errors import CatalogError, FormatError, LockServersError, ReconcilerError
from reconciler.spec.model import TableSpec
from reconciler.status.model import LockStatus
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage
from reconciler.transaction.locks.declared_lock import find_declared_lock, open_lock_place
from reconciler.transaction.process import Clock, Process
from reconciler.transaction.session import StorageOpener


def read_lock_status(
    spec: TableSpec, open_storage: StorageOpener, *, process: Process, clock: Clock
) -> LockStatus | None:
    """Return the holder of the table's lock; None if it is free or cannot be read."""
    lock = find_declared_lock(spec)
    if lock is None:
        return None

    def opened(folder: str) -> Storage:
        return ReadOnlyStorage(open_storage(folder, spec.storage_options))

    try:
        place = open_lock_place(lock, opened(spec.path), opened, clock)
        held = place.read_holder()
    except (CatalogError, LockServersError, FormatError) as error:
        # neither no answer nor one that is no lock means that it is free
        place_of_lock, problem = error.args[:2]
        problem = f"what is there {problem}" if isinstance(error, FormatError) else problem
        held_by = f"an unknown holder: {problem}"
        return LockStatus(path=place_of_lock, held_by=held_by, age_seconds=0, is_stale=False)
    except ReconcilerError:
        return None  # the plan reports what is wrong with the table
    if held is None:
        return None
    now_ms = clock.now_ms()  # a lock ages by the real clock, whatever time the status is for
    return LockStatus(
        path=place.location,
        held_by=held.describe(now_ms),
        age_seconds=max(0, now_ms - (held.since_ms or now_ms)) // 1000,
        is_stale=place.is_expired(held, now_ms) or held.is_dead(process, now_ms, lambda: now_ms),
    )
