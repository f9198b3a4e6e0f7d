"""Hudi's lock in ZooKeeper, as one run takes it and as others see it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, field
from itertools import count

from reconciler.errors import BusyError
from reconciler.hudi.timeline.owner import Owner
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.locks.table_lock import LockHolder, WaitingLock
from reconciler.transaction.locks.zookeeper_nodes import LockNode, LockNodes
from reconciler.transaction.process import Clock, Process


@dataclass(frozen=True, slots=True)
class ZookeeperLockPlace:
    """The lock of a table as others see it. ``connect`` begins a session."""

    location: str
    connect: Callable[[], LockNodes]

    @property
    def free_because(self) -> str:
        return "is not held"

    def read_holder(self) -> LockHolder | None:
        with contextlib.closing(self.connect()) as nodes:
            found = _read_first(nodes)
        return None if found is None else _describe(found, self.location)

    def break_lock(self, holder: LockHolder) -> bool:
        with contextlib.closing(self.connect()) as nodes:
            found = _read_first(nodes)
            if found is None or found.name != holder.version:
                return False
            nodes.remove(found.name)  # no other node ever has this name
        return True

    def is_expired(self, _holder: LockHolder, _now_ms: int) -> bool:
        return False  # only ZooKeeper ends a session, and then its nodes are gone


@dataclass(eq=False)
class ZookeeperLock(WaitingLock):
    """The lock as one run takes it, each time with a session of its own.

    A run that waits stays in the queue. The lock is taken from nobody but a dead run of reconciler
    on this host: ZooKeeper removes the nodes of others whose sessions end.
    """

    location: str
    connect: Callable[[], LockNodes]
    owner: Owner
    _: KW_ONLY
    process: Process
    clock: Clock
    wait_s: float
    on_wait: Callable[[str], None] | None = None
    on_pause: Callable[[], None] = lambda: None
    is_held: bool = field(default=False, init=False)
    _nodes: LockNodes | None = field(default=None, init=False)
    _name: str | None = field(default=None, init=False)
    _before: str | None = field(default=None, init=False)
    #: numbers the requests of the run
    _requests: Iterator[int] = field(default_factory=count, init=False)
    #: the thread of heartbeats asks too
    _guard: threading.RLock = field(default_factory=threading.RLock, init=False)

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        try:
            with super().acquire():
                yield
        finally:
            self._give_back()  # also after a wait that ended without the lock

    def confirm(self) -> None:
        """Raise BusyError unless our node is still the first one."""
        with self._guard:
            if self._nodes is None or self._name is None:
                raise self._make_lost_error()
            names = self._nodes.list()
            if not names or names[0] != self._name:
                raise self._make_lost_error()

    def renew(self) -> None:
        """Do nothing: the client keeps the session alive."""

    def release_stale(self) -> None:
        with contextlib.closing(self.connect()) as nodes:
            for name in nodes.list():
                found = nodes.read(name)
                if found is not None and self._is_dead_run(found):
                    nodes.remove(name)

    def _try_acquire(self) -> LockHolder | None:
        nodes = self._nodes = self._nodes or self.connect()
        names = nodes.list() if self._name is not None else []
        if self._name not in names:  # at first, or after the session was lost
            identifier = f"{self.owner.token}-{next(self._requests)}"
            self._name = nodes.enter(identifier, self.owner.encode())
            names = nodes.list()
        place = names.index(self._name) if self._name in names else len(names)
        if place == 0:
            return None
        self._before = names[place - 1]
        found = nodes.read(names[0])
        if found is None:
            return LockHolder(path=self.location, owner=None, since_ms=None)
        if self._is_dead_run(found) or self._is_ours(found):
            nodes.remove(found.name)
        return _describe(found, self.location)

    def _pause(self, seconds: float) -> None:
        """Wait until the one before us in the queue is gone."""
        if self._nodes is None or self._before is None:
            self.clock.sleep(seconds)
        else:
            self._nodes.wait_for_removal(self._before, seconds)

    def _is_dead_run(self, found: LockNode) -> bool:
        """Return True for a run of this host that has ended."""
        run = found.run
        return run is not None and self.process.is_alive(run) is False

    def _is_ours(self, found: LockNode) -> bool:
        """Return True for a node of this run whose session went before it was removed."""
        return found.run is not None and found.run.token == self.owner.token

    def _release(self) -> None:
        with self._guard:
            self.is_held = False
            nodes, name = self._nodes, self._name
            self._nodes = self._name = self._before = None
            if nodes is None:
                return
            try:
                if name is not None:
                    nodes.remove(name)
            finally:
                nodes.close()

    def _make_lost_error(self) -> BusyError:
        return BusyError(
            f"{self._location}: the lock was lost while we held it; nothing was published under "
            "it, run it again"
        )

    def _describe_stay(self) -> str:
        return "until ZooKeeper ends its session (concurrency.lock.sessionTimeout)"

    @property
    def _location(self) -> str:
        return self.location


def _read_first(nodes: LockNodes) -> LockNode | None:
    """Return the node that has the lock; None if there is none."""
    for name in nodes.list():
        if (found := nodes.read(name)) is not None:
            return found
    return None


def _describe(found: LockNode, location: str) -> LockHolder:
    name = found.data.decode(errors="replace") if found.run is None else None
    is_printable = bool(name) and name is not None and name.isprintable()
    return LockHolder(
        path=location,
        owner=found.run,
        name=name if is_printable else None,
        since_ms=None,
        version=found.name,
    )
