"""Run commands on tables of a bench's S3 server, and measure what they take."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.bucket_tables import BenchBucket
from tests.bench.meter import OFTEN, Meter

ROOT = Path(__file__).parents[2]
_PROGRAM = Path(sys.executable).parent / "reconciler"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one process took at its peak; ``tree``: it and its children."""

    wall: float
    cpu: float
    megabytes: float
    tree: float
    output: str
    said: str
    requests: Counter[str]

    @property
    def stats(self) -> int | None:
        """Return the number of requests by ``--stats``."""
        found = re.search(r"requests to stores: ([\d ,]+) \(", self.said)
        return int(re.sub(r"\D", "", found[1])) if found else None

    def describe(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.requests.items()))
        return (
            f"{self.wall:8.1f} s {self.cpu:8.1f} CPU s {self.megabytes:7.0f} MB "
            f"({self.tree:.0f} MB with children), {self.requests.total()} requests ({kinds})"
        )


@dataclass
class Limits:
    """Collects what misses a limit."""

    missed: list[str] = field(default_factory=list)

    def check(self, what: str, value: float, limit: float) -> None:
        verdict = "right" if value <= limit else "MISSED"
        print(f"    {what}: {value:.2f}, at most {limit:.2f}: {verdict}", flush=True)
        if value > limit:
            self.missed.append(what)

    def end(self) -> None:
        """End the program with 1 if a limit was missed."""
        if self.missed:
            raise SystemExit(f"missed: {', '.join(self.missed)}")


class PeakMemory(threading.Thread):
    """Looks at the peak of a process until it ends; what wait4 says includes its parent's."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status, self.megabytes = Path(f"/proc/{pid}/status"), 0.0
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                found = re.search(r"VmHWM:\s+(\d+) kB", self._status.read_text())
                if found is None:
                    return
                self.megabytes = int(found[1]) / 1024
                time.sleep(OFTEN)


def run_process(bench: BenchBucket, command: Sequence[str], code: int = 0) -> Run:
    """Run a command to its end and measure it; SystemExit if it ends with another exit code."""
    before, began = bench.count_requests(), time.perf_counter()
    said = bench.folder / "stderr"
    with said.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=bench.folder, text=True
        )
        with Meter(process.pid) as meter:
            peak = PeakMemory(process.pid)
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != code:
        raise SystemExit(f"{command} ended with {process.returncode}:\n{said.read_text()[-3000:]}")
    return Run(
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        megabytes=peak.megabytes,
        tree=meter.cost.megabytes,
        output=output,
        said=said.read_text(),
        requests=bench.count_requests() - before,
    )


@dataclass(frozen=True, kw_only=True)
class StoppedRun:
    """How a run ended after a signal: exit code, seconds until then, and what it said."""

    code: int
    seconds: float
    said: str


def stop_reconciler(
    bench: BenchBucket, *arguments: str, after: str, number: signal.Signals, wait_s: float = 0
) -> StoppedRun:
    """Send a signal to a run, some seconds after its standard error has a text."""
    said = bench.folder / "stderr"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [str(_PROGRAM), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=bench.folder,
            start_new_session=True,
        )
        while after not in said.read_text() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(wait_s)
        process.send_signal(number)
        began = time.perf_counter()
        process.wait()
    return StoppedRun(
        code=process.returncode, seconds=time.perf_counter() - began, said=said.read_text()
    )


def run_reconciler(bench: BenchBucket, *arguments: str) -> Run:
    return run_process(bench, [str(_PROGRAM), *arguments])
