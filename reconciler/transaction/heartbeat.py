"""Signs of life while long work runs: heartbeats of instants, renewal of the lock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from reconciler.hudi.timeline.heartbeat import INTERVAL_S, heartbeat_path
from reconciler.hudi.timeline.owner import Owner
from reconciler.storage.api import Storage
from reconciler.transaction.locks.store_clock import read_store_clock_ms
from reconciler.transaction.process import Clock, Process, is_dead


class HeartbeatThread:
    """A thread that calls every registered beat once an interval.

    A beat that fails is tried again at the next interval: what it protects is checked anyway before
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
        """Keep calling ``beat`` inside the block."""
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
                    with contextlib.suppress(
                        Exception
                    ):  # a client's own too: it must go on beating
                        beat()


class Heartbeat:
    """The heartbeat file of one pending instant of ours."""

    def __init__(self, storage: Storage, instant: str, owner: Owner, clock: Clock) -> None:
        self._storage, self._owner, self._clock = storage, owner, clock
        self._path = heartbeat_path(instant)

    def create(self) -> None:
        """The first beat. Raises AlreadyExistsError where the instant is somebody else's."""
        self._storage.create(self._path, self._make_content(ended=False))

    def beat(self) -> None:
        self._write(ended=False)

    def end(self) -> None:
        """Say that this run is over although the instant is pending: anybody may go on at once."""
        self._write(ended=True)

    def remove(self) -> None:
        self._storage.delete(self._path)

    def _write(self, *, ended: bool) -> None:
        self._storage.replace(self._path, self._make_content(ended=ended))

    def _make_content(self, *, ended: bool) -> bytes:
        until_ms = self._clock.now_ms() + 2 * INTERVAL_S * 1000
        return replace(self._owner, until_ms=until_ms, ended=ended).encode()


def find_living_owner(
    storage: Storage,
    instant: str,
    *,
    requested_by: Owner | None,
    requested_ms: int,
    process: Process,
    now_ms: int,
) -> Owner | None:
    """Who still works on a pending instant of ours, None when its owner is dead.

    The heartbeat says who had it last and when it last beat; without one, the requested file does.
    ``requested_ms`` is that file's modification time, epoch milliseconds.
    """
    path = heartbeat_path(instant)
    entry = storage.stat(path)
    owner = None if entry is None else Owner.parse(storage.read(path))
    beat_ms = requested_ms if entry is None or owner is None else entry.modified_ms
    owner = owner or requested_by
    if owner is None or is_dead(
        owner,
        beat_ms,
        process=process,
        now_ms=now_ms,
        store_ms=partial(read_store_clock_ms, storage),
    ):
        return None
    return owner
