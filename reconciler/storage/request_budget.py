"""How long the requests of one call are repeated, and who hears of it.

A budget begins with the first failure. The requests of one call share it, whatever they fail with.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Final

from reconciler.lazy_dataclass import dataclass
from reconciler.storage.requests import OF_THIS_PROCESS
from reconciler.units import parse_duration

TIMEOUT_OPTION: Final = "requestTimeout"
BUDGET_OPTION: Final = "retryFor"
_FIRST_DELAY_S: Final = 0.2
_MAX_DELAY_S: Final = 5.0
#: requests that are repeated for longer are reported, at most once in the second time
_SILENT_S: Final = 2.0
_REPORT_INTERVAL_S: Final = 10.0


class RequestsFailedError(Exception):
    """A store's requests failed until the budget was spent; says how often and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy:
    """How long to wait for an answer, and how long to repeat what fails, both in seconds.

    An endpoint that never answers ends a request after about the budget and two timeouts.
    """

    timeout_s: int = 10
    budget_s: int = 30


def split_policy(options: Mapping[str, str]) -> tuple[RequestPolicy, dict[str, str]]:
    """Return the policy that the options declare, and the other options.

    Raises ValueError for a text that is no duration, and for a timeout of no time.

    >>> split_policy({"retryFor": "2m", "anon": "true"})
    (RequestPolicy(timeout_s=10, budget_s=120), {'anon': 'true'})
    """
    rest = dict(options)
    timeout, budget = rest.pop(TIMEOUT_OPTION, "10s"), rest.pop(BUDGET_OPTION, "30s")
    policy = RequestPolicy(timeout_s=parse_duration(timeout), budget_s=parse_duration(budget))
    if policy.timeout_s < 1:
        raise ValueError(f"{TIMEOUT_OPTION}: {timeout!r} is no time to wait; the least is 1s")
    return policy, rest


@dataclass(slots=True)
class RequestBudget:
    """The time in which one call repeats its requests; ``began``: the first failure."""

    policy: RequestPolicy
    began: float | None = None

    def compute_wait(
        self, what: str, problem: str, tries: int, *, seed: str = "", is_last: bool = False
    ) -> float:
        """Return the seconds until the next try; RequestsFailedError when the budget is spent.

        ``what`` has failed by ``problem``. ``seed``: spreads the waits of equal requests.
        """
        now = read_clock()
        began = self.began = now if self.began is None else self.began
        spent, delay = now - began, compute_delay(tries, seed or what)
        left = self.policy.budget_s - spent - delay
        if is_last or left <= 0:
            number = "1 try" if tries == 1 else f"{tries} tries"
            raise RequestsFailedError(
                f"{problem}; gave up after {number}, repeated for {spent:.0f} s "
                f"({BUDGET_OPTION} {self.policy.budget_s} s)"
            )
        OF_THIS_PROCESS.add("repeat")
        is_slow = spent + delay > _SILENT_S or "Timeout" in problem
        if is_slow:
            _REPORTS.send(
                f"repeating {what}: {problem}; {left:.0f} s of {BUDGET_OPTION} are left", now
            )
        return delay

    def wait(self, what: str, problem: str, tries: int) -> None:
        """Wait before the next try, in a thread; raises as ``compute_wait``."""
        import asyncio  # noqa: PLC0415 (every command imports this module)

        from fsspec.asyn import get_loop, sync  # noqa: PLC0415 (heavy)

        sync(get_loop(), asyncio.sleep, self.compute_wait(what, problem, tries))


_BUDGET: Final[ContextVar[RequestBudget | None]] = ContextVar("budget", default=None)


@contextmanager
def share_budget(policy: RequestPolicy) -> Iterator[RequestBudget]:
    """Let all requests of the block have one budget: that of the block around it, if it has one.

    The client's event loop takes the budget over with the context of the calling thread.
    """
    budget = _BUDGET.get() or RequestBudget(policy)
    token = _BUDGET.set(budget)
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def find_shared_budget() -> RequestBudget | None:
    """Return the budget of the block around; None if each request has its own."""
    return _BUDGET.get()


@contextmanager
def report_repeats(report: Callable[[str], None]) -> Iterator[None]:
    """Call ``report`` with a sentence when requests of this process are repeated for a while."""
    with _REPORTS.guard:
        _REPORTS.listeners.append(report)
    try:
        yield
    finally:
        with _REPORTS.guard:
            _REPORTS.listeners.remove(report)


class _Reports:
    """Those who hear of repeated requests: of many that fail at a time, they hear of one."""

    def __init__(self) -> None:
        self.guard = Lock()
        self.listeners: list[Callable[[str], None]] = []
        self._last: float | None = None

    def send(self, text: str, now: float) -> None:
        with self.guard:
            if self._last is not None and now - self._last < _REPORT_INTERVAL_S:
                return
            self._last = now
            listeners = list(self.listeners)
        for listener in listeners:
            listener(text)


_REPORTS: Final = _Reports()


def compute_delay(tries: int, seed: str) -> float:
    """Return the seconds before the next try: twice as long each time, and spread by the seed.

    >>> [round(compute_delay(tries, "a"), 1) <= 0.2 * 2**tries for tries in (1, 2, 3)]
    [True, True, True]
    >>> compute_delay(50, "a") <= 5.0
    True
    """
    spread = zlib.crc32(f"{seed} {tries}".encode()) / 2**32
    longest = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(tries, 10))
    return float(longest * (0.5 + spread / 2))


def read_clock() -> float:
    """Return the seconds of the event loop's clock, which all loops share and only goes on."""
    from fsspec.asyn import get_loop  # noqa: PLC0415 (heavy)

    return float(get_loop().time())
