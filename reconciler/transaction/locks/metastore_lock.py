"""Hudi's lock in a Hive Metastore, as one run takes it and as others see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from typing import Protocol

from reconciler.errors import BusyError, CatalogError
from reconciler.hudi.timeline.metastore_lock import MetastoreLock as FoundLock
from reconciler.hudi.timeline.metastore_lock import make_agent
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.locks.table_lock import LockHolder, WaitingLock
from reconciler.transaction.process import Clock, Process


class LockQueue(Protocol):
    """The queue of locks of one table; ``MetastoreLocks`` is one.

    All methods raise CatalogError if the metastore cannot be reached.
    """

    @property
    def location(self) -> str:
        """The lock's location, for people."""

    def request(self, owner: Owner) -> tuple[int, bool]:
        """Ask for the lock; return the number of the request and whether it is held."""

    def list(self) -> Sequence[FoundLock]:
        """Return the holder and all that wait."""

    def renew(self, lock_id: int) -> bool:
        """Renew the lock; return False if it has ended."""

    def release(self, lock_id: int) -> None:
        """Free the lock, or take back a request."""


@dataclass(frozen=True, slots=True)
class MetastoreLockPlace:
    """The lock of a table as others see it."""

    queue: LockQueue

    @property
    def location(self) -> str:
        return self.queue.location

    @property
    def free_because(self) -> str:
        return "is not held"

    def read_holder(self) -> LockHolder | None:
        found = _find_holder(self.queue)
        return None if found is None else _describe(found, self.location)

    def break_lock(self, holder: LockHolder) -> bool:
        found = _find_holder(self.queue)
        if found is None or str(found.lock_id) != holder.version:
            return False
        self.queue.release(found.lock_id)  # no other lock ever has this number
        return True

    def is_expired(self, _holder: LockHolder, _now_ms: int) -> bool:
        return False  # only the metastore ends a lock, and then nobody has it


@dataclass(eq=False)
class MetastoreLock(WaitingLock):
    """The lock as one run takes it.

    It is taken from nobody but a dead run of reconciler on this host: other locks are ended by the
    metastore, when their holders no longer renew them.
    """

    queue: LockQueue
    owner: Owner
    _: KW_ONLY
    process: Process
    clock: Clock
    wait_s: float
    on_wait: Callable[[str], None] | None = None
    on_pause: Callable[[], None] = lambda: None
    is_held: bool = field(default=False, init=False)
    _lock_id: int | None = field(default=None, init=False)
    #: the thread of heartbeats renews the lock
    _guard: threading.RLock = field(default_factory=threading.RLock, init=False)

    def confirm(self) -> None:
        """Renew the lock, which succeeds only if the metastore has not ended it."""
        with self._guard:
            if self._lock_id is None or not self.queue.renew(self._lock_id):
                raise BusyError(
                    f"{self._location}: the metastore ended the lock while we held it; nothing was "
                    "published under it, run it again"
                )

    def renew(self) -> None:
        with self._guard:
            if self._lock_id is not None:
                self.queue.renew(self._lock_id)

    def release_stale(self) -> None:
        found = _find_holder(self.queue)
        if found is not None and self._is_dead_run(found):
            self.queue.release(found.lock_id)

    def _try_acquire(self) -> LockHolder | None:
        self._lock_id = self._request()
        if self._lock_id is not None:
            return None
        found = _find_holder(self.queue)
        if found is None:  # it was freed meanwhile
            return LockHolder(path=self._location, owner=None, since_ms=None)
        if found.agent == make_agent(self.owner) and self.queue.renew(found.lock_id):
            self._lock_id = found.lock_id  # it could not be given back
            return None
        if self._is_dead_run(found):
            self.queue.release(found.lock_id)
        return _describe(found, self._location)

    def _request(self) -> int | None:
        """Ask for the lock; return its number if it is held now. No request is left waiting."""
        try:
            lock_id, is_held = self.queue.request(self.owner)
        except CatalogError:
            ours = self._find_own()  # the answer may have been lost
            if ours is None:
                raise
            lock_id, is_held = ours.lock_id, ours.is_held
        if is_held:
            return lock_id
        self.queue.release(lock_id)
        return None

    def _find_own(self) -> FoundLock | None:
        agent = make_agent(self.owner)
        return next((lock for lock in self.queue.list() if lock.agent == agent), None)

    def _is_dead_run(self, found: FoundLock) -> bool:
        """Return True for a run of this host that has ended."""
        run = found.run
        return run is not None and self.process.is_alive(run) is False

    def _release(self) -> None:
        with self._guard:
            self.is_held = False
            lock_id, self._lock_id = self._lock_id, None
            if lock_id is not None:
                self.queue.release(lock_id)

    def _describe_stay(self) -> str:
        return "until the metastore ends it (hive.txn.timeout, 300 s by default)"

    @property
    def _location(self) -> str:
        return self.queue.location


def _find_holder(queue: LockQueue) -> FoundLock | None:
    return next((lock for lock in queue.list() if lock.is_held), None)


def _describe(found: FoundLock, location: str) -> LockHolder:
    run = found.run
    name = " on ".join(filter(None, (found.user, found.host)))
    return LockHolder(
        path=location,
        owner=run,
        name=name or None,
        since_ms=found.beat_ms,
        version=str(found.lock_id),
    )
