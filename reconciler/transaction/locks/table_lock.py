"""What all locks of a table share: waiting for the holder, and naming it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import ClassVar, Final, Protocol

from reconciler.errors import BusyError, ReconcilerError
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.process import Clock, Process, is_dead

_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 5.0
_NAMELESS: Final = "a writer that left no name (Hudi's locks do not)"


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

    def take_release_failure(self) -> str | None:
        """Return once why the lock could not be given back and how long it stays; None if it was.

        Work under the lock is done then all the same, and this run can take the lock again.
        """
        return None


class NoLock(TableLock):
    """The lock of ``provider: none``: the spec declares that there is a single writer."""

    excludes_others = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The holder of a lock. ``owner`` is None for other programs' locks.

    ``name``: the name that the holder gave itself, if any. ``since_ms``: its last sign of life,
    None where a lock does not show it. ``version``: what tells this holding from a later one, where
    the lock has such.
    """

    path: str
    owner: Owner | None
    since_ms: int | None
    name: str | None = None
    version: str | None = None

    def describe(self, now_ms: int) -> str:
        """Return a sentence's part for users: who has the lock, and since when."""
        foreign = f"a writer that calls itself {self.name}" if self.name else _NAMELESS
        holder = self.owner or foreign
        if self.since_ms is None:
            return str(holder)
        seconds = max(0, now_ms - self.since_ms) // 1000
        return f"{holder}, last sign of life {seconds} s ago"

    def is_dead(self, process: Process, now_ms: int, store_ms: Callable[[], int]) -> bool:
        """Return True if it is a dead run of reconciler; arguments as for ``is_dead``."""
        owner = self.owner
        if owner is None or self.since_ms is None:
            return owner is not None and process.is_alive(owner) is False
        return is_dead(owner, self.since_ms, process, now_ms, store_ms)


class LockPlace(Protocol):
    """The lock of a table as others see it: for its status, and to remove it."""

    @property
    def location(self) -> str:
        """The lock's location, for people."""

    @property
    def free_because(self) -> str:
        """The predicate of a sentence that says why nobody holds the lock."""

    def read_holder(self) -> LockHolder | None:
        """Return the holder; None if the lock is free."""

    def break_lock(self, holder: LockHolder) -> bool:
        """Free a lock that still has this holder; return whether it was freed."""

    def is_expired(self, holder: LockHolder, now_ms: int) -> bool:
        """Return True if Hudi's writers would break the lock."""


class WaitingLock(TableLock, ABC):
    """A lock for whose holder a run waits; subclasses try to take it once, and release it.

    ``wait_s`` bounds the wait. ``on_wait`` gets the description of the lock's holder, once a wait.
    ``on_pause`` is called before every pause, and may raise.
    """

    excludes_others = True

    clock: Clock
    wait_s: float
    on_wait: Callable[[str], None] | None
    on_pause: Callable[[], None]
    is_held: bool
    _release_failure: str | None = None

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        self._wait_until_acquired()
        try:
            yield
        finally:
            self._give_back()

    def take_release_failure(self) -> str | None:
        failure, self._release_failure = self._release_failure, None
        return failure

    def _give_back(self) -> None:
        try:
            self._release()
        except ReconcilerError as error:
            self._release_failure = (
                f"it could not be given back: {error}; it stays {self._describe_stay()}, or until "
                "`reconciler unlock` removes it"
            )

    @abstractmethod
    def _try_acquire(self) -> LockHolder | None:
        """Try to take the lock, and return who has it; None when it is ours now."""

    @abstractmethod
    def _release(self) -> None:
        """Free the lock if it is still ours."""

    @abstractmethod
    def _describe_stay(self) -> str:
        """Return for how long others find a lock that was not given back."""

    def _may_give_up(self) -> bool:
        """Return False if it will soon be clear that the holder is dead."""
        return True

    def _pause(self, seconds: float) -> None:
        """Wait before the next try; a lock that hears of its release may return earlier."""
        self.clock.sleep(seconds)

    @property
    @abstractmethod
    def _location(self) -> str:
        """The lock's location, for people."""

    def _wait_until_acquired(self) -> None:
        deadline = self.clock.now_ms() + int(self.wait_s * 1000)
        pause = _FIRST_PAUSE_S
        while (held := self._try_acquire()) is not None:
            now_ms = self.clock.now_ms()
            if now_ms >= deadline and self._may_give_up():
                raise BusyError(
                    f"{self._location}: the table is locked by {held.describe(now_ms)}; run again "
                    "later, or remove the lock with `reconciler unlock` if that process is gone"
                )
            if pause == _FIRST_PAUSE_S and self.on_wait is not None:
                self.on_wait(held.describe(now_ms))
            self.on_pause()
            left_s = (deadline - now_ms) / 1000
            self._pause(min(pause, left_s) if left_s > 0 else pause)
            pause = min(pause * 2, _MAX_PAUSE_S)
        self.is_held, self._release_failure = True, None
