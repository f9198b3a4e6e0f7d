"""Hudi's file-system lock, so that Hudi's writers honour it and users see who has it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import KW_ONLY, field, replace
from typing import Final

from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    ChangedError,
    NotFoundError,
    VanishedLockError,
)
from reconciler.hudi.timeline.lock_file import LOCK_FILE, is_lock_expired, lock_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.storage.conditional_replace import replace_if_unchanged
from reconciler.transaction.locks.table_lock import LockHolder, WaitingLock
from reconciler.transaction.process import Clock, Process, read_store_clock_ms

#: the file beside the lock by which the store is asked for its time
LOCK_CLOCK: Final = f"{LOCK_FILE}.clock"
#: the wait after breaking a stale lock, so that another who broke it too has acted by then
_SETTLE_S: Final = 1.0
#: how long a holder expects to hold the lock before it renews it
_LEASE_MS: Final = 5 * 60_000


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


def read_lock_owner(storage: Storage, path: str) -> Owner | None:
    """Return the run that wrote the lock file, in one request; None if none of ours did."""
    try:
        return Owner.parse(storage.read(path))
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


def _is_expired(holder: LockHolder, now_ms: int, minutes: int) -> bool:
    return holder.since_ms is not None and is_lock_expired(holder.since_ms, now_ms, minutes)


@dataclass(frozen=True, slots=True)
class FileLockPlace:
    """The lock file as others see it. ``expire_minutes``: the declared expiry, 0 for never."""

    storage: Storage
    path: str
    expire_minutes: int

    @property
    def location(self) -> str:
        return f"{self.storage.location}/{self.path}"

    @property
    def free_because(self) -> str:
        return "does not exist"

    def read_holder(self) -> LockHolder | None:
        return read_lock_holder(self.storage, self.path)

    def break_lock(self, holder: LockHolder) -> bool:
        return break_lock(self.storage, holder)

    def is_expired(self, holder: LockHolder, now_ms: int) -> bool:
        return _is_expired(holder, now_ms, self.expire_minutes)


@dataclass(eq=False)
class FileLock(WaitingLock):
    """The lock file as one run takes it.

    ``expire_minutes``: Hudi's own rule for all locks; reconciler's are also stale if their run is
    dead.
    """

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

    def confirm(self) -> None:
        """Raise BusyError if another has the lock, VanishedLockError if nobody has.

        A writer of Hudi deletes the file when it unlocks and again when it closes, whoever has it
        by then (FileSystemBasedLockProvider).
        """
        try:
            owner = Owner.parse(self.storage.read(self.path))
        except NotFoundError:
            raise VanishedLockError(
                f"{self._location}: the lock file was deleted again and again while we held it; "
                "nothing was published under it, run it again"
            ) from None
        if not self._is_of_this_run(owner):
            raise BusyError(
                f"{self._location}: the lock was taken from us while we held it; nothing was "
                "published under it, run it again"
            )

    def renew(self) -> None:
        """Write the lock again; another's that came since the look stays, where the store compares.

        Hudi's writers delete a lock that is not theirs, so another's may come at any time.
        """
        if not self.is_held:
            return
        with contextlib.suppress(NotFoundError, ChangedError):  # ``confirm`` tells of it
            found = self.storage.read_version(self.path)
            if self._is_of_this_run(Owner.parse(found.data)):
                content = self._make_content()
                replace_if_unchanged(self.storage, self.path, content, found.version)

    def release_stale(self) -> None:
        if read_lock_owner(self.storage, self.path) is None:
            return
        held = read_lock_holder(self.storage, self.path)
        if held is not None and self._is_holder_dead(held):
            break_lock(self.storage, held)

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
        if self._is_owned():
            self.storage.delete(self.path)

    def _describe_stay(self) -> str:
        minutes = f"until it is {self.expire_minutes} minutes old, "
        return f"{minutes if self.expire_minutes else ''}until another run sees this one ended"

    def _make_content(self) -> bytes:
        return replace(self.owner, until_ms=self.clock.now_ms() + _LEASE_MS).encode()

    def _is_owned(self) -> bool:
        return self._is_of_this_run(read_lock_owner(self.storage, self.path))

    def _is_ours(self, holder: LockHolder | None) -> bool:
        return holder is not None and self._is_of_this_run(holder.owner)

    def _is_of_this_run(self, owner: Owner | None) -> bool:
        return owner is not None and owner.token == self.owner.token

    def _is_stale(self, holder: LockHolder) -> bool:
        """Return True if it has expired by both clocks: it may be another host's lock."""
        times = (self.clock.now_ms, self._read_store_clock_ms)
        if all(_is_expired(holder, time(), self.expire_minutes) for time in times):
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
