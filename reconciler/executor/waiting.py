"""Waiting, for a while, for writes that have not said yet which file groups they write to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from reconciler.executor.session import ApplySession
from reconciler.transaction.conflicts import Footprint, GroupClaim, find_undecided_claims

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 2.0

_T = TypeVar("_T")
#: whether to wait before these claims are let go for the sake of these writes
ShouldWait = Callable[[Sequence[GroupClaim], Sequence[Footprint]], bool]


@dataclass(slots=True)
class _UnknownWriteWait:
    """``should_wait`` is asked under the table's lock, ``pause`` is called without it."""

    session: ApplySession
    pause_s: float = _FIRST_PAUSE_S
    is_asked_again: bool = False

    def should_wait(self, claims: Sequence[GroupClaim], footprints: Sequence[Footprint]) -> bool:
        is_early = self.session.waited.seconds < self.session.context.lock_wait_s
        self.is_asked_again = is_early and bool(find_undecided_claims(claims, footprints))
        if self.is_asked_again and self.pause_s == _FIRST_PAUSE_S:
            first = next(one for one in footprints if not (one.is_known or one.is_completed))
            what = f"{first} to say which file groups it writes to"
            self.session.context.progress.report_wait(self.session.plan.name, what)
        return self.is_asked_again

    def pause(self) -> None:
        self.session.context.stop.check()
        self.session.context.clock.sleep(self.pause_s)
        self.session.waited.seconds += self.pause_s
        self.pause_s = min(self.pause_s * 2, _LONGEST_PAUSE_S)


def retry_until_known(session: ApplySession, act: Callable[[ShouldWait], _T]) -> _T:
    """What ``act`` gives, which is called with the table's lock held, and again while it waits.

    A write is announced before it has looked for its rows: until it says where they are it may go
    anywhere, and a clustering would have to let all of its groups go. ``act`` gives None when it is
    told to wait. Some never say it, as bulk inserts do: in one apply a table waits for such writes
    as long as for a lock (``lock_wait_s``), all together.
    """
    patience = _UnknownWriteWait(session)
    while True:
        patience.is_asked_again = False
        with session.hold_lock():
            found = act(patience.should_wait)
        if not patience.is_asked_again:
            return found
        patience.pause()
