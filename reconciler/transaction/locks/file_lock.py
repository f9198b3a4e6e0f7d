"""Hudi's file-system lock, so that Hudi's writers honour it and people see who has it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from reconciler.errors import AlreadyExistsError, BusyError, NotFoundError
from reconciler.hudi.timeline.lock_file import LOCK_FILE, is_lock_expired, lock_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.storage.api import Storage
from reconciler.transaction.locks.store_clock import read_store_clock_ms
from reconciler.transaction.process import Clock, Process, is_dead

#: the file beside the lock by which the store is asked for its time
LOCK_CLOCK: Final = f"{LOCK_FILE}.clock"
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
#: the wait after breaking a stale lock, so that another who broke it too has acted by then
_SETTLE_S: Final = 1.0
#: how long a holder expects to hold the lock before it renews it
_LEASE_MS: Final = 5 * 60_000


class TableLock(Protocol):
    """What keeps other writers out while an instant is chosen and while one completes."""

    @property
    def excludes_others(self) -> bool:
        """Whether it keeps out anybody at all; only ``NoLock`` does not."""

    def acquire(self) -> AbstractContextManager[None]:
        """Wait for the lock, hold it inside the block. Raises BusyError naming the owner."""

    def confirm(self) -> None:
        """Raise BusyError when the lock is not ours any more; called before publishing."""

    def renew(self) -> None:
        """Write the lock anew, so that nobody takes its owner for dead. Without it do nothing."""

    def release_stale(self) -> None:
        """Remove a lock that a dead run of ours left. Any other stays, however old."""


class NoLock:
    """The lock of ``provider: none``: the spec declares that there is a single writer."""

    excludes_others = False

    def acquire(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def confirm(self) -> None:
        return

    def renew(self) -> None:
        return

    def release_stale(self) -> None:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """Who holds a lock. ``owner`` is None when it is not one of ours (Hudi's are empty)."""

    path: str
    owner: Owner | None
    since_ms: int

    def describe(self, now_ms: int) -> str:
        """Return who has the lock and since when, for people."""
        holder = (
            str(self.owner) if self.owner else "a writer that left no name (Hudi's locks do not)"
        )
        seconds = max(0, now_ms - self.since_ms) // 1000
        return f"{holder}, last sign of life {seconds} s ago"


def read_lock_holder(storage: Storage, path: str) -> LockHolder | None:
    """Return who holds the lock file, None when nobody does."""
    try:
        entry = storage.stat(path)
        if entry is None:
            return None
        return LockHolder(
            path=path, owner=Owner.parse(storage.read(path)), since_ms=entry.modified_ms
        )
    except NotFoundError:
        return None


def is_holder_dead(
    holder: LockHolder, *, process: Process, now_ms: int, store_ms: Callable[[], int]
) -> bool:
    """Whether it is a lock of ours whose run is dead; arguments as for ``is_dead``."""
    return holder.owner is not None and is_dead(
        holder.owner, holder.since_ms, process=process, now_ms=now_ms, store_ms=store_ms
    )


def break_lock(storage: Storage, holder: LockHolder) -> bool:
    """Remove a lock if it is still the one that was read, and return whether it was removed.

    A store has no compare-and-delete, so whoever breaks a lock must read it again after taking it.
    """
    if read_lock_holder(storage, holder.path) != holder:
        return False
    storage.delete(holder.path)
    return True


class FileLock:
    """The lock file as one run takes it.

    ``expire_minutes``: Hudi's own rule for all locks; ours are also stale when their run is dead.
    ``wait_s`` bounds the wait. ``on_wait`` is told once per wait who has the lock. ``on_pause`` is
    called before every pause, and may raise.
    """

    excludes_others = True

    def __init__(  # noqa: PLR0913 (all of them facts about one lock)
        self,
        storage: Storage,
        path: str,
        owner: Owner,
        *,
        process: Process,
        clock: Clock,
        expire_minutes: int,
        wait_s: float,
        on_wait: Callable[[str], None] | None = None,
        on_pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage, self._path, self._owner = storage, path, owner
        self._process, self._clock = process, clock
        self._expire_minutes, self._wait_s = expire_minutes, wait_s
        self._on_wait, self._on_pause = on_wait, on_pause
        self._holding = False

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        self._wait_until_acquired()
        try:
            yield
        finally:
            self._release()

    def confirm(self) -> None:
        if not self._is_ours(read_lock_holder(self._storage, self._path)):
            raise BusyError(
                f"{self._location}: the lock was taken from us while we held it; nothing was "
                "published under it, run it again"
            )

    def renew(self) -> None:
        if self._holding and self._is_ours(read_lock_holder(self._storage, self._path)):
            self._storage.replace(self._path, self._make_content())

    def release_stale(self) -> None:
        held = read_lock_holder(self._storage, self._path)
        if held is not None and self._is_holder_dead(held):
            break_lock(self._storage, held)

    def _wait_until_acquired(self) -> None:
        deadline = self._clock.now_ms() + int(self._wait_s * 1000)
        pause = _FIRST_PAUSE_S
        while (held := self._try_acquire()) is not None:
            now_ms = self._clock.now_ms()
            if now_ms >= deadline:
                raise BusyError(
                    f"{self._location}: the table is locked by {held.describe(now_ms)}; run again "
                    "later, or remove the lock with `reconciler unlock` if that process is gone"
                )
            if pause == _FIRST_PAUSE_S and self._on_wait is not None:
                self._on_wait(held.describe(now_ms))
            self._on_pause()
            self._clock.sleep(min(pause, (deadline - now_ms) / 1000))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        self._holding = True

    def _try_acquire(self) -> LockHolder | None:
        """Try to take the lock, and return who has it; None when it is ours now."""
        if self._create():
            return None
        held = read_lock_holder(self._storage, self._path)
        if held is None:
            return self._retry()
        if self._is_ours(held):  # the store denied a creation that it had done
            return None
        if not self._is_stale(held) or not break_lock(self._storage, held) or not self._create():
            return held
        self._clock.sleep(_SETTLE_S)
        now = read_lock_holder(self._storage, self._path)
        return None if self._is_ours(now) else now or held

    def _retry(self) -> LockHolder | None:
        """Try once more after the lock that was in the way disappeared."""
        return (
            None
            if self._create()
            else read_lock_holder(self._storage, self._path) or self._make_unknown_holder()
        )

    def _make_unknown_holder(self) -> LockHolder:
        return LockHolder(path=self._path, owner=None, since_ms=self._clock.now_ms())

    def _create(self) -> bool:
        try:
            self._storage.create(self._path, self._make_content())
        except AlreadyExistsError:
            return False
        return True

    def _release(self) -> None:
        self._holding = False
        if self._is_ours(read_lock_holder(self._storage, self._path)):
            self._storage.delete(self._path)

    def _make_content(self) -> bytes:
        return replace(self._owner, until_ms=self._clock.now_ms() + _LEASE_MS).encode()

    def _is_ours(self, holder: LockHolder | None) -> bool:
        return (
            holder is not None
            and holder.owner is not None
            and holder.owner.token == self._owner.token
        )

    def _is_stale(self, holder: LockHolder) -> bool:
        """Whether it has expired by our clock and by the store's: it may be another host's lock."""
        times = (self._clock.now_ms, self._read_store_clock_ms)
        if all(is_lock_expired(holder.since_ms, time(), self._expire_minutes) for time in times):
            return True
        return self._is_holder_dead(holder)

    def _is_holder_dead(self, holder: LockHolder) -> bool:
        return is_holder_dead(
            holder,
            process=self._process,
            now_ms=self._clock.now_ms(),
            store_ms=self._read_store_clock_ms,
        )

    def _read_store_clock_ms(self) -> int:
        folder, slash, _name = self._path.rpartition("/")
        return read_store_clock_ms(self._storage, f"{folder}{slash}{LOCK_CLOCK}")

    @property
    def _location(self) -> str:
        return f"{self._storage.location}/{self._path}"


def locate_lock(
    folder: str, table: Storage, open_storage: Callable[[str], Storage]
) -> tuple[Storage, str]:
    """Return the storage and path of a lock file; ``folder``: in the table, or absolute."""
    if folder.startswith("/") or "://" in folder:
        return open_storage(folder), lock_path("")
    return table, lock_path(folder)
