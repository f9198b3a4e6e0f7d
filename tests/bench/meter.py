"""Measure wall seconds, CPU seconds and peak memory of a process and its children."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import psutil

#: seconds between two looks at the memory
OFTEN = 0.2
#: sharing is looked up, which costs more, where memory has grown by so much
GROWN = 1.02
#: that many processes share little: a command and what runs it, or Python and its JVM. Looking it
#: up holds up a process whose memory grows: a plan of a million files took a fifth more CPU
FEW = 2


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds, and the peak memory of all processes together in megabytes of 2^20 bytes."""

    wall: float
    cpu: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.wall:8.2f} s {self.cpu:8.2f} CPU s {self.megabytes:7.0f} MB"


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants."""
    own = psutil.Process(pid)
    return [own, *own.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """Return user plus system seconds, including children that have ended."""
    found = 0.0
    for process in tree(pid):
        with suppress(psutil.Error):
            t = process.cpu_times()
            found += t.user + t.system + t.children_user + t.children_system
    return found


def resident(pid: int, *, shared: bool = False) -> int:
    """Return the memory of a process tree; ``shared``: count pages once that many share (Linux)."""
    found = 0
    processes = tree(pid)
    looks_up = shared and len(processes) > FEW
    for process in processes:
        with suppress(psutil.Error):
            info = process.memory_full_info() if looks_up else process.memory_info()
            found += getattr(info, "pss", 0) or info.rss
    return found


class Meter:
    """Measures a process: ``with Meter(pid) as meter: ...``, then ``meter.cost``.

    ``samples_cpu``: add what each process of the tree was last seen to have used. It counts those
    that are killed, and misses what they use after the last look.
    """

    def __init__(self, pid: int, *, samples_cpu: bool = False) -> None:
        self._pid, self._peak, self._done = pid, 0, threading.Event()
        self._first: dict[psutil.Process, float] = {}
        self._seen: dict[psutil.Process, float] = {}
        self._samples_cpu = samples_cpu
        self._looking = threading.Thread(target=self._look, daemon=True)
        self.cost = Cost(wall=0, cpu=0, megabytes=0)

    def __enter__(self) -> Self:
        self._cpu, self._wall = cpu_seconds(self._pid), time.perf_counter()
        if self._samples_cpu:
            self._sample_cpu()
            self._first = dict(self._seen)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        cpu = 0.0
        with suppress(psutil.Error):  # it may be gone
            cpu = cpu_seconds(self._pid) - self._cpu
        self._done.set()
        self._looking.join()
        if self._samples_cpu:
            cpu = self._sample_cpu()
        self.cost = Cost(wall=wall, cpu=cpu, megabytes=self._peak / 2**20)

    def _sample_cpu(self) -> float:
        """Look at each process, and return what all have used since the begin."""
        with suppress(psutil.Error):  # the first process has ended
            for process in tree(self._pid):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    self._seen[process] = times.user + times.system
        return sum(self._seen.values()) - sum(self._first.values())

    def _look(self) -> None:
        most = 0.0
        with suppress(psutil.Error):
            while True:
                now = resident(self._pid)
                if self._samples_cpu:
                    self._sample_cpu()
                if now > most * GROWN:
                    most = now
                    self._peak = max(self._peak, resident(self._pid, shared=True))
                if self._done.wait(OFTEN):
                    return
