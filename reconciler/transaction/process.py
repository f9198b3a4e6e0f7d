"""Describe this process and its clock, and decide whether another process is dead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from reconciler.hudi.timeline.heartbeat import is_silent
from reconciler.hudi.timeline.owner import Owner


class Clock(Protocol):
    """The only source of time, which tests replace."""

    def now_ms(self) -> int:
        """Return epoch milliseconds."""

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The running process.

    ``started`` is its start as its host tells it; ``is_running(pid, started)`` tells whether that
    very process lives on this host.
    """

    who: str
    host: str
    pid: int
    started: str
    tool: str
    is_running: Callable[[int, str], bool]

    def is_alive(self, owner: Owner) -> bool | None:
        """Whether an owner's process runs; None where it runs on another host."""
        return self.is_running(owner.pid, owner.started) if owner.host == self.host else None

    def make_owner(self, token: str) -> Owner:
        """Return what this process writes into locks and heartbeats during one run."""
        return Owner(
            who=self.who,
            host=self.host,
            pid=self.pid,
            started=self.started,
            tool=self.tool,
            token=token,
        )


def is_dead(
    owner: Owner,
    last_beat_ms: int,
    *,
    process: Process,
    now_ms: int,
    store_ms: Callable[[], int],
) -> bool:
    """Whether the run that left a lock or a pending instant cannot come back to it.

    The same host and the process gone, or a run that said it ended: at once. Elsewhere: no beat for
    five minutes, by our clock and by that of the store which stamped it; ``store_ms`` is asked only
    where it decides. A live process of this host is never dead, however long it pauses.
    """
    if owner.ended:
        return True
    if owner.host == process.host:
        return not process.is_running(owner.pid, owner.started)
    return is_silent(last_beat_ms, now_ms) and is_silent(last_beat_ms, store_ms())
