"""Notice that a Spark cluster gives no executors: say so after a while, and give up at a limit.

Spark itself waits for ever. Workers that only delete files import this, so it needs nothing but
Python's standard library.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass

#: a setting of Spark: how long a job waits for executors, 0s for ever
EXECUTOR_TIMEOUT: Final = "spark.reconciler.executorTimeout"
_DEFAULT_TIMEOUT: Final = "15m"
_REPORT_AFTER_S: Final = 30.0
_CHECK_EVERY_S: Final = 1.0
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_ASKS: Final = ("spark.executor.cores", "spark.executor.memory", "spark.cores.max")
_REMEDY: Final = (
    "start workers, or free cores and memory of the cluster, or ask for less with --spark-conf"
)


@dataclass(frozen=True, slots=True)
class WaitListener:
    """What a command does about waits: it reports them, and says whether it was told to stop."""

    report: Callable[[str], None]
    is_stopped: Callable[[], bool] = lambda: False


_LISTENERS: Final[list[WaitListener]] = []


@contextlib.contextmanager
def report_waits(
    report: Callable[[str], None], is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Call ``report`` with a sentence when a job of the block waits for executors.

    A job of a cluster is cancelled as soon as ``is_stopped`` returns True.
    """
    listener = WaitListener(report, is_stopped)
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def parse_timeout(text: str) -> float | None:
    """Return the seconds of a duration; None if it is not one.

    >>> parse_timeout("90s"), parse_timeout("15m"), parse_timeout("0"), parse_timeout("soon")
    (90.0, 900.0, 0.0, None)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([smh]?)\s*", text)
    return None if found is None else float(found[1]) * _SECONDS[found[2] or "s"]


def parse_limit(text: str) -> float:
    """Return the seconds of the setting, 0 for no limit; ReconcilerError for other text."""
    seconds = parse_timeout(text)
    if seconds is None:
        what = f"{EXECUTOR_TIMEOUT}={text}"
        raise ReconcilerError(f"{what}: write it as 90s, 15m or 1h; 0s waits for ever")
    return seconds


class ExecutorsMissingError(ReconcilerError):
    """A cluster gave no executors, and the jobs that waited for them are cancelled."""


class ExecutorWait:
    """The wait of one group of jobs for executors of a cluster."""

    def __init__(self, context: Any, group: str) -> None:
        self._context, self._group = context, group
        self.has_given_up, self._had_executors = False, False
        self._limit_text = _DEFAULT_TIMEOUT
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the executors during the block; cancel the jobs of the group at the limit."""
        master = str(getattr(self._context, "master", "local"))
        if master == "local" or master.startswith("local["):
            yield
            return
        self._limit_text = str(self._context.getConf().get(EXECUTOR_TIMEOUT, _DEFAULT_TIMEOUT))
        limit = parse_limit(self._limit_text)
        thread = threading.Thread(
            target=self._wait, args=(limit,), name="reconciler-executors", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(_CHECK_EVERY_S)

    def describe_end(self) -> str:
        """Return the sentence about a group that was given up."""
        return (
            f"{self._describe()} after {self._limit_text} ({EXECUTOR_TIMEOUT}); {_REMEDY}, and "
            "run this again"
        )

    def _wait(self, limit: float) -> None:
        """Count the seconds without executors until the block, its command or the limit ends."""
        waited, is_reported = 0.0, False
        with contextlib.suppress(Exception):  # the session may end meanwhile
            while not self._ended.wait(_CHECK_EVERY_S):
                is_stopped = any(listener.is_stopped() for listener in _LISTENERS)
                if is_stopped or self.has_given_up:
                    # the main thread waits for the answer to its job, so this one cancels it, and
                    # again: a job that Spark has yet to start is not cancelled
                    self._context.cancelJobGroup(self._group)
                    continue
                has_executors = count_executors(self._context) > 0
                self._had_executors |= has_executors
                waited = 0.0 if has_executors else waited + _CHECK_EVERY_S
                if waited >= _REPORT_AFTER_S and not is_reported:
                    is_reported = True
                    self._report()
                self.has_given_up = bool(limit) and waited >= limit

    def _report(self) -> None:
        for listener in _LISTENERS:
            listener.report(f"{self._describe()}; {_REMEDY}")

    def _describe(self) -> str:
        conf = self._context.getConf()
        asked = [f"{name}={conf.get(name)}" for name in _ASKS if conf.get(name) is not None]
        each = f" ({', '.join(asked)})" if asked else ""
        what = "lost all executors" if self._had_executors else "given no executors"
        return f"Spark's master {self._context.master} has {what}{each}"


def count_executors(context: Any) -> int:
    """Return the number of executors of a session, without the driver."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001
