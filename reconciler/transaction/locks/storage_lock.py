"""Hudi's storage-based lock: a file that is replaced only if nobody else has changed it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, field, replace
from typing import Final

from reconciler.errors import BusyError, ChangedError, NotFoundError, ReconcilerError
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.storage_lock import (
    AUDIT_SWITCH_FILE,
    STORAGE_LOCK_FILE,
    LockAudit,
    StorageLockFile,
    is_audit_enabled,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.transaction.locks.table_lock import LockHolder, WaitingLock
from reconciler.transaction.process import Clock, Process, read_store_clock_ms

#: the file beside the lock by which the store is asked for its time
STORAGE_LOCK_CLOCK: Final = f"{STORAGE_LOCK_FILE}.clock"


@dataclass(frozen=True, slots=True)
class _Found:
    """A lock file and its version."""

    file: StorageLockFile
    version: str


@dataclass(frozen=True, slots=True)
class StorageLockPlace:
    """The lock of a table in ``storage`` as others see it. ``validity_s``: of each renewal."""

    storage: Storage
    validity_s: int
    clock: Clock

    @property
    def location(self) -> str:
        return f"{self.storage.location}/{STORAGE_LOCK_FILE}"

    @property
    def free_because(self) -> str:
        return "does not exist or has expired"

    def read_holder(self) -> LockHolder | None:
        found = _read(self.storage)
        if found is None or found.file.is_free(self.clock.now_ms()):
            return None
        return _make_holder(found, self.validity_s)

    def break_lock(self, holder: LockHolder) -> bool:
        found = _read(self.storage)
        if found is None or found.version != holder.version:
            return False
        return _expire(self.storage, found)

    def is_expired(self, _holder: LockHolder, _now_ms: int) -> bool:
        return False  # an expired lock has no holder


@dataclass(eq=False)
class StorageLock(WaitingLock):
    """The lock as one run takes it.

    The lock is taken from a holder whose time is over, by Hudi's rule and also by the store's
    clock, and from a dead run of reconciler on this host. ``validity_s``: the time for which it is
    taken and renewed.
    """

    storage: Storage
    owner: Owner
    _: KW_ONLY
    process: Process
    clock: Clock
    validity_s: int
    wait_s: float
    on_wait: Callable[[str], None] | None = None
    on_pause: Callable[[], None] = lambda: None
    is_held: bool = field(default=False, init=False)
    _held: _Found | None = field(default=None, init=False)
    _audit: LockAudit | None = field(default=None, init=False)
    #: the thread of heartbeats renews the lock
    _guard: threading.RLock = field(default_factory=threading.RLock, init=False)

    def confirm(self) -> None:
        """Renew the lock, which succeeds only if it is still ours."""
        try:
            with self._guard:
                self._extend()
        except ChangedError:
            raise BusyError(
                f"{self._location}: the lock was taken from us while we held it; nothing was "
                "published under it, run it again"
            ) from None

    def renew(self) -> None:
        with self._guard:
            if self.is_held:
                self._extend()

    def release_stale(self) -> None:
        found = _read(self.storage)
        if found is not None and not found.file.expired and self._is_dead_run(found.file):
            _expire(self.storage, found)

    def _try_acquire(self) -> LockHolder | None:
        found = _read(self.storage)
        if found is not None and not self._is_available(found.file):
            return _make_holder(found, self.validity_s)
        now_ms = self.clock.now_ms()
        try:
            self._held = self._write(now_ms, None if found is None else found.version)
        except ChangedError:
            winner = _read(self.storage)
            if winner is not None:
                return _make_holder(winner, self.validity_s)
            return LockHolder(path=STORAGE_LOCK_FILE, owner=None, since_ms=now_ms)
        self._begin_audit(now_ms)
        return None

    def _extend(self) -> None:
        """Renew the lock; raises ChangedError if it is no longer ours."""
        if self._held is None:
            raise ChangedError(self._location, "is not held")
        now_ms = self.clock.now_ms()
        self._held = self._write(now_ms, self._held.version)
        self._record("RENEW", now_ms)

    def _release(self) -> None:
        with self._guard:
            self.is_held = False
            held, self._held = self._held, None
            if held is not None and _expire(self.storage, held):
                self._record("END", self.clock.now_ms())
            self._audit = None

    def _write(self, now_ms: int, version: str | None) -> _Found:
        """Write that the lock is ours; raises ChangedError if the file has another version.

        The answer to an earlier write may have been lost: then the file is ours, in a version that
        this run has not seen.
        """
        until_ms = now_ms + self.validity_s * 1000
        run = replace(self.owner, until_ms=until_ms)
        file = StorageLockFile(
            expired=False, valid_until_ms=until_ms, owner=self.owner.token, run=run
        )
        try:
            return _Found(file, _replace(self.storage, file, version))
        except ChangedError:
            found = _read(self.storage)
            if found is None or not self._is_ours(found.file):
                raise
            return _Found(file, _replace(self.storage, file, found.version))

    def _is_available(self, file: StorageLockFile) -> bool:
        is_ours = self._is_ours(file)  # the store denied a creation that it had done
        if is_ours or file.expired or self._is_dead_run(file):
            return True
        # our clock may be ahead: what ends another's lock is the store's clock, too
        return file.is_free(self.clock.now_ms()) and file.is_free(self._read_store_clock_ms())

    def _read_store_clock_ms(self) -> int:
        return read_store_clock_ms(self.storage, STORAGE_LOCK_CLOCK)

    def _is_ours(self, file: StorageLockFile) -> bool:
        return file.owner == self.owner.token and not file.expired

    def _is_dead_run(self, file: StorageLockFile) -> bool:
        """Return True for a run of this host that has ended; others' locks expire."""
        return file.run is not None and self.process.is_alive(file.run) is False

    def _begin_audit(self, now_ms: int) -> None:
        with _without_errors():
            if is_audit_enabled(self.storage.read(AUDIT_SWITCH_FILE)):
                self._audit = LockAudit(
                    owner=self.owner.token, start_ms=now_ms, validity_s=self.validity_s
                )
                self._record("START", now_ms)

    def _record(self, state: str, now_ms: int) -> None:
        if self._audit is not None:
            self._audit = self._audit.add(state, now_ms)
            with _without_errors():
                self.storage.replace(self._audit.path, self._audit.encode())

    def _describe_stay(self) -> str:
        return f"for at most {self.validity_s} s"

    @property
    def _location(self) -> str:
        return f"{self.storage.location}/{STORAGE_LOCK_FILE}"


@contextlib.contextmanager
def _without_errors() -> Iterator[None]:
    """An audit that cannot be written ends no work, as with Hudi."""
    with contextlib.suppress(ReconcilerError):
        yield


def _read(storage: Storage) -> _Found | None:
    try:
        found = storage.read_version(STORAGE_LOCK_FILE)
    except NotFoundError:
        return None
    return _Found(StorageLockFile.parse(found.data), found.version)


def _replace(storage: Storage, file: StorageLockFile, version: str | None) -> str:
    return storage.replace_version(STORAGE_LOCK_FILE, file.encode(), version)


def _expire(storage: Storage, found: _Found) -> bool:
    """Free the lock; return False if somebody else has written it meanwhile."""
    freed = replace(found.file, expired=True)
    try:
        _replace(storage, freed, found.version)
    except ChangedError:
        left = _read(storage)
        return left is not None and left.file == freed  # the answer to the write was lost
    return True


def _make_holder(found: _Found, validity_s: int) -> LockHolder:
    file = found.file
    return LockHolder(
        path=STORAGE_LOCK_FILE,
        owner=file.run,
        name=file.owner,
        since_ms=file.valid_until_ms - validity_s * 1000,
        version=found.version,
    )
