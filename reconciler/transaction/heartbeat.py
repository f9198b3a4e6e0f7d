"""Write heartbeats while long work runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.hudi.timeline.heartbeat import INTERVAL_S, heartbeat_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.storage.api import Storage
from reconciler.transaction.process import Clock


class HeartbeatThread:
    """A thread that calls every registered function once an interval.

    A call that fails is repeated at the next interval. What it protects is checked anyway before
    anything is published.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._beats: list[Callable[[], None]] = []
        self._stopped = threading.Event()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="reconciler-pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    @contextlib.contextmanager
    def repeat(self, beat: Callable[[], None]) -> Iterator[None]:
        """Call ``beat`` once an interval inside the block."""
        with self._guard:
            self._beats.append(beat)
        try:
            yield
        finally:
            with self._guard:
                self._beats.remove(beat)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            with self._guard:
                for beat in self._beats:
                    # errors of a store's client too: the thread must go on
                    with contextlib.suppress(Exception):
                        beat()


class Heartbeat:
    """The heartbeat file of one pending instant of this run."""

    def __init__(self, storage: Storage, instant: str, owner: Owner, clock: Clock) -> None:
        self._storage, self._owner, self._clock = storage, owner, clock
        self._path = heartbeat_path(instant)

    def create(self) -> None:
        """Write the first heartbeat; raises AlreadyExistsError if another run has one."""
        self._storage.create(self._path, self._make_content(ended=False))

    def beat(self) -> None:
        self._write(ended=False)

    def end(self) -> None:
        """Write that this run has ended: another run may go on with the pending instant at once."""
        self._write(ended=True)

    def remove(self) -> None:
        self._storage.delete(self._path)

    def _write(self, *, ended: bool) -> None:
        self._storage.replace(self._path, self._make_content(ended=ended))

    def _make_content(self, *, ended: bool) -> bytes:
        until_ms = self._clock.now_ms() + 2 * INTERVAL_S * 1000
        return replace(self._owner, until_ms=until_ms, ended=ended).encode()
