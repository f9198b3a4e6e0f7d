"""Retry a change: while its table changes, and while other writes do not say where they go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn, TypeVar

from reconciler.errors import BusyError, NotFoundError
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.transaction.conflicts import Footprint, GroupClaim, find_undecided_claims
from reconciler.transaction.session import TableSession

#: how often a timeline may change while it is read or a change is prepared
ATTEMPTS: Final = 8
_FIRST_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 2.0

_T = TypeVar("_T")
#: whether to wait before these claims are given up because of these writes
ShouldWait = Callable[[Sequence[GroupClaim], Sequence[Footprint]], bool]


def retry_while_changing(
    attempt: Callable[[], _T | None], give_up: Callable[[], _T], *, attempts: int = ATTEMPTS
) -> _T:
    """Return the first result of ``attempt`` that is not None, or else what ``give_up`` returns.

    ``attempt`` returns None when the table changed while it was at work. ``give_up`` may raise.
    """
    for _attempt in range(attempts):
        result = attempt()
        if result is not None:
            return result
    return give_up()


def raise_changing(name: str, activity: str, attempts: int = ATTEMPTS) -> NoReturn:
    """Raise BusyError for a table that changed at every attempt; ``name``: the table's."""
    raise BusyError(
        f"{name}: the timeline changed {attempts} times while {activity}; run it again when the "
        "table's writers are less busy"
    )


@dataclass(slots=True, eq=False)
class MissingFiles:
    """Tells files that others remove while a table is looked at from files that are lost.

    Hudi archives instants, cleans files and replaces small ones at any time, without regard to who
    has listed them. A file that is missing although nothing has changed since it was missed before
    is lost.
    """

    session: TableSession
    missed: NotFoundError | None = None
    timeline: Timeline | None = None
    is_missed_again: bool = False

    def look(self, act: Callable[[], _T]) -> _T | None:
        """Return what ``act`` returns, which looks at the table; None if it has to look again.

        Raises NotFoundError if it misses a file and the timeline is the same as at the last miss.
        """
        try:
            found = act()
        except NotFoundError as error:
            timeline = self.session.reload_timeline()
            if timeline == self.timeline:
                raise
            self.is_missed_again = self.missed is not None and self.missed.path == error.path
            self.missed, self.timeline = error, timeline
            return None
        self.is_missed_again = False
        return found

    def raise_missed_again(self) -> None:
        """Raise the error of a file that the last two attempts missed, whatever has changed."""
        if self.missed is not None and self.is_missed_again:
            raise self.missed


def retry_until_known(session: TableSession, attempt: Callable[[ShouldWait], _T]) -> _T:
    """Return the result of ``attempt``, which is called under the table's lock.

    It is called again while it asks to wait. A write is announced before it has looked for its
    rows. Until it says where they are it may go anywhere, and a clustering would have to give up
    all of its groups. Some writes never say it, as bulk inserts do: a session waits for such
    writes as long as for a lock (``lock_wait_s``), all together. ``attempt`` returns None when it
    is told to wait.
    """
    wait = _UnknownWriteWait(session)
    while True:
        wait.must_retry = False
        result = session.run_locked(partial(attempt, wait.should_wait))
        if not wait.must_retry:
            return result
        wait.pause()


@dataclass(slots=True)
class _UnknownWriteWait:
    """``should_wait`` is called under the table's lock, ``pause`` is called without it."""

    session: TableSession
    pause_s: float = _FIRST_PAUSE_S
    must_retry: bool = False

    def should_wait(self, claims: Sequence[GroupClaim], footprints: Sequence[Footprint]) -> bool:
        context = self.session.run_context
        is_early = self.session.waited.seconds < context.lock_wait_s
        self.must_retry = is_early and bool(find_undecided_claims(claims, footprints))
        if self.must_retry and self.pause_s == _FIRST_PAUSE_S:
            first = next(one for one in footprints if not (one.is_known or one.is_completed))
            what = f"{first} to say which file groups it writes to"
            context.report_wait(self.session.name, what)
        return self.must_retry

    def pause(self) -> None:
        self.session.run_context.check_stop()
        self.session.clock.sleep(self.pause_s)
        self.session.waited.seconds += self.pause_s
        self.pause_s = min(self.pause_s * 2, _MAX_PAUSE_S)
