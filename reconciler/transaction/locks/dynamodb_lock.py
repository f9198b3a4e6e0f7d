"""Hudi's lock in DynamoDB, as one run takes it and as others see it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from itertools import count
from typing import Final

from reconciler.errors import BusyError
from reconciler.hudi.timeline.dynamodb_lock import LEASE_S, LockRow
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.locks.dynamodb_rows import LockRows
from reconciler.transaction.locks.table_lock import LockHolder, WaitingLock
from reconciler.transaction.process import Clock, Process

#: the most that one wait between two looks adds to the age of a row: a clock that is set forward
#: while a run waits must not end another's lease
_MAX_STEP_MS: Final = 10_000
#: a wait is prolonged only for leases up to this: the holder of a longer one may renew it seldom
_LONGEST_LEASE_MS: Final = 5 * 60_000


@dataclass(frozen=True, slots=True)
class DynamodbLockPlace:
    """The lock of a table as others see it."""

    rows: LockRows

    @property
    def location(self) -> str:
        return self.rows.location

    @property
    def free_because(self) -> str:
        return "is not held"

    def read_holder(self) -> LockHolder | None:
        found = self.rows.read()
        if found is None or found.is_released:
            return None
        return _describe(found, self.location)

    def break_lock(self, holder: LockHolder) -> bool:
        found = self.rows.read()
        if found is None or found.owner != holder.version:
            return False
        return self.rows.remove(found)

    def is_expired(self, _holder: LockHolder, _now_ms: int) -> bool:
        return False  # a row does not say when it was written


@dataclass
class _Watched:
    """A row that somebody else has, and for how long it has not changed, in milliseconds."""

    version: str
    lease_ms: int
    seen_ms: int
    age_ms: int = 0

    def look_again(self, now_ms: int) -> None:
        self.age_ms += min(max(0, now_ms - self.seen_ms), _MAX_STEP_MS)
        self.seen_ms = now_ms


@dataclass(eq=False)
class DynamodbLock(WaitingLock):
    """The lock as one run takes it.

    It is taken from a holder whose row has not changed for a whole lease while this run waited, and
    at once from a dead run of reconciler on this host. ``lease_s``: three renewals take as long.
    """

    rows: LockRows
    owner: Owner
    _: KW_ONLY
    process: Process
    clock: Clock
    wait_s: float
    lease_s: int = LEASE_S
    on_wait: Callable[[str], None] | None = None
    on_pause: Callable[[], None] = lambda: None
    is_held: bool = field(default=False, init=False)
    _held: LockRow | None = field(default=None, init=False)
    _watched: _Watched | None = field(default=None, init=False)
    #: numbers the versions of the run
    _writes: count[int] = field(default_factory=count, init=False)
    #: the thread of heartbeats renews the lock
    _guard: threading.RLock = field(default_factory=threading.RLock, init=False)

    def confirm(self) -> None:
        """Renew the lock, which succeeds only if the row is still ours."""
        with self._guard:
            if not self._renew():
                raise BusyError(
                    f"{self._location}: the lock was taken from us while we held it; nothing was "
                    "published under it, run it again"
                )

    def renew(self) -> None:
        with self._guard:
            if self.is_held:
                self._renew()

    def release_stale(self) -> None:
        found = self.rows.read()
        if found is not None and self._is_dead_run(found):
            self.rows.remove(found)

    def _try_acquire(self) -> LockHolder | None:
        found = self.rows.read()
        if found is not None and not self._is_available(found):
            return _describe(found, self._location)
        row = self._make_row()
        if not self.rows.write(row, found):
            winner = self.rows.read()
            if winner is None:
                return LockHolder(path=self._location, owner=None, since_ms=None)
            return _describe(winner, self._location)
        self._held, self._watched = row, None
        return None

    def _may_give_up(self) -> bool:
        """Return False while a row that may be a dead writer's has not had its lease."""
        watched = self._watched
        return watched is None or watched.age_ms == 0 or watched.lease_ms > _LONGEST_LEASE_MS

    def _is_available(self, found: LockRow) -> bool:
        if found.is_released or self._is_dead_run(found) or self._is_ours(found):
            return True
        now_ms = self.clock.now_ms()
        if self._watched is None or self._watched.version != found.version:
            self._watched = _Watched(found.version, found.lease_ms, now_ms)
            return False
        self._watched.look_again(now_ms)
        return self._watched.age_ms >= found.lease_ms

    def _renew(self) -> bool:
        if self._held is None:
            return False
        row = self._make_row()
        if not self.rows.write(row, self._held):
            return False
        self._held = row
        return True

    def _release(self) -> None:
        with self._guard:
            self.is_held = False
            held, self._held = self._held, None
            if held is not None:
                self.rows.remove(held)

    def _make_row(self) -> LockRow:
        now_ms, token = self.clock.now_ms(), self.owner.token
        return LockRow(
            owner=self._name,
            version=f"{token}-{now_ms}-{next(self._writes)}",
            lease_ms=self.lease_s * 1000,
            run=self.owner,
        )

    @property
    def _name(self) -> str:
        return f"{self.owner.host} {self.owner.token}"

    def _is_ours(self, found: LockRow) -> bool:
        """Return True for a row that this run could not give back."""
        return found.owner == self._name

    def _is_dead_run(self, found: LockRow) -> bool:
        """Return True for a run of this host that has ended."""
        return found.run is not None and self.process.is_alive(found.run) is False

    def _describe_stay(self) -> str:
        return f"until its lease of {self.lease_s} s is over"

    @property
    def _location(self) -> str:
        return self.rows.location


def _describe(found: LockRow, location: str) -> LockHolder:
    return LockHolder(
        path=location, owner=found.run, name=found.owner, since_ms=None, version=found.owner
    )
