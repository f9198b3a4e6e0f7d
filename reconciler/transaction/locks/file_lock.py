"""Hudi's file-system lock, so that Hudi's writers honour it and users see who has it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Final

from reconciler.errors import AlreadyExistsError, BusyError, NotFoundError
from reconciler.hudi.timeline.lock_file import LOCK_FILE, is_lock_expired, lock_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.storage.api import Storage
from reconciler.transaction.process import Clock, Process, is_dead, read_store_clock_ms

#: the file beside the lock by which the store is asked for its time
LOCK_CLOCK: Final = f"{LOCK_FILE}.clock"
_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 5.0
#: the wait after breaking a stale lock, so that another who broke it too has acted by then
_SETTLE_S: Final = 1.0
#: how long a holder expects to hold the lock before it renews it
_LEASE_MS: Final = 5 * 60_000


class TableLock:
    """Keeps other writers out while an instant is chosen and while one completes."""

    #: False if it keeps nobody out, as only ``NoLock`` does
    excludes_others: ClassVar[bool]

    def acquire(self) -> AbstractContextManager[None]:
        """Wait for the lock, hold it inside the block. Raises BusyError naming the owner."""
        return contextlib.nullcontext()

    def confirm(self) -> None:
        """Raise BusyError if this run has lost the lock; called before publishing."""

    def renew(self) -> None:
        """Write the lock again, so that its owner does not count as dead, if this run holds it."""

    def release_stale(self) -> None:
        """Remove a lock that a dead run of reconciler left. Any other stays, however old."""


class NoLock(TableLock):
    """The lock of ``provider: none``: the spec declares that there is a single writer."""

    excludes_others = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The holder of a lock. ``owner`` is None for other programs' locks (Hudi's are empty)."""

    path: str
    owner: Owner | None
    since_ms: int

    def describe(self, now_ms: int) -> str:
        """Return a sentence's part for users: who has the lock, and since when."""
        holder = self.owner or "a writer that left no name (Hudi's locks do not)"
        seconds = max(0, now_ms - self.since_ms) // 1000
        return f"{holder}, last sign of life {seconds} s ago"

    def is_dead(self, process: Process, now_ms: int, store_ms: Callable[[], int]) -> bool:
        """Return True if it is a dead run of reconciler; arguments as for ``is_dead``."""
        owner = self.owner
        return owner is not None and is_dead(owner, self.since_ms, process, now_ms, store_ms)


def read_lock_holder(storage: Storage, path: str) -> LockHolder | None:
    """Return the holder of the lock file; None if it is free."""
    try:
        entry = storage.stat(path)
        if entry is None:
            return None
        owner = Owner.parse(storage.read(path))
        return LockHolder(path=path, owner=owner, since_ms=entry.modified_ms)
    except NotFoundError:
        return None


def break_lock(storage: Storage, holder: LockHolder) -> bool:
    """Remove a lock if it is still the one that was read, and return whether it was removed.

    A store has no compare-and-delete, so whoever breaks a lock must read it again after taking it.
    """
    if read_lock_holder(storage, holder.path) != holder:
        return False
    storage.delete(holder.path)
    return True


@dataclass(eq=False)
class FileLock(TableLock):
    """The lock file as one run takes it.

    ``expire_minutes``: Hudi's own rule for all locks; reconciler's are also stale if their run is
    dead. ``wait_s`` bounds the wait. ``on_wait`` gets the description of the lock's holder, once a
    wait. ``on_pause`` is called before every pause, and may raise.
    """

    excludes_others = True

    storage: Storage
    path: str
    owner: Owner
    _: KW_ONLY
    process: Process
    clock: Clock
    expire_minutes: int
    wait_s: float
    on_wait: Callable[[str], None] | None = None
    on_pause: Callable[[], None] = lambda: None
    is_held: bool = field(default=False, init=False)

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        self._wait_until_acquired()
        try:
            yield
        finally:
            self._release()

    def confirm(self) -> None:
        if not self._is_ours(read_lock_holder(self.storage, self.path)):
            raise BusyError(
                f"{self._location}: the lock was taken from us while we held it; nothing was "
                "published under it, run it again"
            )

    def renew(self) -> None:
        if self.is_held and self._is_ours(read_lock_holder(self.storage, self.path)):
            self.storage.replace(self.path, self._make_content())

    def release_stale(self) -> None:
        held = read_lock_holder(self.storage, self.path)
        if held is not None and self._is_holder_dead(held):
            break_lock(self.storage, held)

    def _wait_until_acquired(self) -> None:
        deadline = self.clock.now_ms() + int(self.wait_s * 1000)
        pause = _FIRST_PAUSE_S
        while (held := self._try_acquire()) is not None:
            now_ms = self.clock.now_ms()
            if now_ms >= deadline:
                raise BusyError(
                    f"{self._location}: the table is locked by {held.describe(now_ms)}; run again "
                    "later, or remove the lock with `reconciler unlock` if that process is gone"
                )
            if pause == _FIRST_PAUSE_S and self.on_wait is not None:
                self.on_wait(held.describe(now_ms))
            self.on_pause()
            self.clock.sleep(min(pause, (deadline - now_ms) / 1000))
            pause = min(pause * 2, _MAX_PAUSE_S)
        self.is_held = True

    def _try_acquire(self) -> LockHolder | None:
        """Try to take the lock, and return who has it; None when it is ours now."""
        if self._create():
            return None
        held = read_lock_holder(self.storage, self.path)
        if held is None:
            return self._retry()
        if self._is_ours(held):  # the store denied a creation that it had done
            return None
        if not self._is_stale(held) or not break_lock(self.storage, held) or not self._create():
            return held
        self.clock.sleep(_SETTLE_S)
        now = read_lock_holder(self.storage, self.path)
        return None if self._is_ours(now) else now or held

    def _retry(self) -> LockHolder | None:
        """Try once more after the lock that was in the way disappeared."""
        if self._create():
            return None
        unknown = LockHolder(path=self.path, owner=None, since_ms=self.clock.now_ms())
        return read_lock_holder(self.storage, self.path) or unknown

    def _create(self) -> bool:
        try:
            self.storage.create(self.path, self._make_content())
        except AlreadyExistsError:
            return False
        return True

    def _release(self) -> None:
        self.is_held = False
        if self._is_ours(read_lock_holder(self.storage, self.path)):
            self.storage.delete(self.path)

    def _make_content(self) -> bytes:
        return replace(self.owner, until_ms=self.clock.now_ms() + _LEASE_MS).encode()

    def _is_ours(self, holder: LockHolder | None) -> bool:
        owner = None if holder is None else holder.owner
        return owner is not None and owner.token == self.owner.token

    def _is_stale(self, holder: LockHolder) -> bool:
        """Return True if it has expired by both clocks: it may be another host's lock."""
        times = (self.clock.now_ms, self._read_store_clock_ms)
        if all(is_lock_expired(holder.since_ms, time(), self.expire_minutes) for time in times):
            return True
        return self._is_holder_dead(holder)

    def _is_holder_dead(self, holder: LockHolder) -> bool:
        now_ms = self.clock.now_ms()
        return holder.is_dead(self.process, now_ms, self._read_store_clock_ms)

    def _read_store_clock_ms(self) -> int:
        folder, slash, _name = self.path.rpartition("/")
        return read_store_clock_ms(self.storage, f"{folder}{slash}{LOCK_CLOCK}")

    @property
    def _location(self) -> str:
        return f"{self.storage.location}/{self.path}"


def locate_lock(
    folder: str, table: Storage, open_storage: Callable[[str], Storage]
) -> tuple[Storage, str]:
    """Return the storage and path of a lock file; ``folder``: in the table, or absolute."""
    if folder.startswith("/") or "://" in folder:
        return open_storage(folder), lock_path("")
    return table, lock_path(folder)
