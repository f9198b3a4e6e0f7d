"""Write heartbeats while long work runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.errors import NotFoundError
from reconciler.hudi.timeline.heartbeat import INTERVAL_S, heartbeat_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.storage.api import Storage
from reconciler.storage.conditional_replace import replace_if_unchanged
from reconciler.transaction.process import Clock


class HeartbeatThread:
    """A thread that calls every registered function once an interval, while there are any.

    A call that fails is repeated at the next interval. What it protects is checked anyway before
    anything is published.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._beats: list[Callable[[], None]] = []
        self._guard = threading.Lock()
        self._users, self._starting = 0, threading.Lock()
        self._stop: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Keep the thread running inside the block, whatever is registered."""
        with self._starting:
            if self._users == 0:
                self._stop = self._start()
            self._users += 1
        try:
            yield
        finally:
            with self._starting:
                self._users -= 1
                if self._users == 0:
                    self._stop()

    @contextlib.contextmanager
    def repeat(self, beat: Callable[[], None]) -> Iterator[None]:
        """Call ``beat`` once an interval inside the block."""
        with self.run():
            with self._guard:
                self._beats.append(beat)
            try:
                yield
            finally:
                with self._guard:
                    self._beats.remove(beat)

    def _start(self) -> Callable[[], None]:
        """Start the thread; return a function that ends it."""
        stopped = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(stopped,), name="reconciler-pulse", daemon=True
        )
        thread.start()

        def stop() -> None:
            stopped.set()
            thread.join()

        return stop

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._interval_s):
            with self._guard:
                for beat in self._beats:
                    # errors of a store's client too: the thread must go on
                    with contextlib.suppress(Exception):
                        beat()


class Heartbeat:
    """The heartbeat file of one pending instant of this run.

    A run that was silent for too long finds that another has taken its instant over: the file names
    the other then, and this run writes to it no more.
    """

    def __init__(self, storage: Storage, instant: str, owner: Owner, clock: Clock) -> None:
        self._storage, self._owner, self._clock = storage, owner, clock
        self._path = heartbeat_path(instant)

    def create(self) -> None:
        """Write the first heartbeat; raises AlreadyExistsError if another run has one."""
        self._storage.create(self._path, self._make_content(ended=False))

    def start(self) -> None:
        """Write the first heartbeat of this run, whoever wrote the last."""
        self._storage.replace(self._path, self._make_content(ended=False))

    def beat(self) -> None:
        """Write it again. Raises ChangedError if another writes it at the same time."""
        self._write(ended=False)

    def end(self) -> None:
        """Write that this run has ended: another run may go on with the pending instant at once."""
        self._write(ended=True)

    def remove(self) -> None:
        if not self.is_taken_over():
            self._storage.delete(self._path)

    def is_taken_over(self) -> bool:
        """Return True if another run has taken the instant over; exact under the table's lock."""
        try:
            return self._is_of_another(self._storage.read(self._path))
        except NotFoundError:
            return False

    def _write(self, *, ended: bool) -> None:
        try:
            found = self._storage.read_version(self._path)
        except NotFoundError:
            found = None
        if found is None or not self._is_of_another(found.data):
            version = None if found is None else found.version
            content = self._make_content(ended=ended)
            replace_if_unchanged(self._storage, self._path, content, version)

    def _is_of_another(self, data: bytes) -> bool:
        owner = Owner.parse(data)
        return owner is not None and owner.token != self._owner.token

    def _make_content(self, *, ended: bool) -> bytes:
        until_ms = self._clock.now_ms() + 2 * INTERVAL_S * 1000
        return replace(self._owner, until_ms=until_ms, ended=ended).encode()
