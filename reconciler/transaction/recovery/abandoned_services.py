"""Take over clusterings and compactions of other writers that nobody finishes.

Until such an instant is completed it has no inflight file, so that its writer, should it come back,
finds nothing to complete. Our heartbeat tells the next apply who has begun.
"""

from __future__ import annotations

from typing import Final

from reconciler.errors import BusyError
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State
from reconciler.spec.model import Concurrency
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.failed_writes import check_abandoned
from reconciler.transaction.run import RequestedInstant
from reconciler.transaction.session import TableSession

_SERVICES: Final = COMMITS | {Action.CLUSTERING, Action.COMPACTION}


def get_kind(action: Action) -> str:
    """Return what messages call an instant of a table service.

    >>> get_kind(Action.REPLACECOMMIT), get_kind(Action.COMPACTION)
    ('clustering', 'compaction')
    """
    return "compaction" if action is Action.COMPACTION else "clustering"


def require_lock(session: TableSession, instant: str, action: Action) -> None:
    """Raise BusyError without a lock: nobody could tell whether its writer completes meanwhile."""
    if not session.lock.excludes_others:
        kind = get_kind(action)
        raise BusyError(
            f"{session.name}: without a lock it cannot be known that {kind} {instant} is left "
            "behind: let its writer finish it, or configure spec.concurrency.lock"
        )


def list_own_files(timeline: Timeline, instant: str) -> list[TimelineFile]:
    """Return the files of an instant on the timeline; another attempt at it has others."""
    return [file for file in timeline.files if file.instant.requested == instant]


def take_over_service(
    session: TableSession, known: Timeline, instant: str, action: Action, limits: Concurrency
) -> None:
    """Check under the lock that nobody works on an instant, and beat for it from now on.

    ``known``: the timeline of the last look. Raises BusyError if the instant has changed since.
    """
    kind = get_kind(action)

    def take() -> None:
        timeline = session.reload_timeline()
        target = _find_pending(timeline, instant)
        seen = list_own_files(known, instant)
        if target is None or list_own_files(timeline, instant) != seen:
            raise BusyError(f"{kind} {instant} is being worked on by another writer")
        if is_being_rolled_back(session, timeline, instant):
            raise BusyError(
                f"a rollback of {kind} {instant} is pending; run apply again when it is done"
            )
        check_abandoned(session, timeline, target, limits)
        session.lock.confirm()
        session.make_heartbeat(instant).start()

    session.run_locked(take)


def is_begun(timeline: Timeline, pending: RequestedInstant) -> bool:
    """Return whether an instant has an inflight file."""
    return timeline.find_file(pending.instant, pending.action, State.INFLIGHT) is not None


def check_taken_over(session: TableSession, timeline: Timeline, pending: RequestedInstant) -> None:
    """Raise BusyError unless an instant is pending still, and taken over by this run.

    The table's lock is held. Whether another writer has begun it is another question.
    """
    kind, time = get_kind(pending.action), pending.instant
    if find_completion(timeline, time, pending.action) is not None:
        raise BusyError(f"{kind} {time} was completed by another writer meanwhile")
    if timeline.find_file(time, pending.action, State.REQUESTED) is None:
        raise BusyError(f"{kind} {time} was removed by another writer meanwhile")
    if session.make_heartbeat(time).is_taken_over():
        raise BusyError(f"{kind} {time} was taken over by another run; plan again when it is done")
    if is_being_rolled_back(session, timeline, time):
        raise BusyError(f"a rollback of {kind} {time} is pending; run apply again when it is done")


def _find_pending(timeline: Timeline, time: str) -> Instant | None:
    return next((one for one in timeline.pending(_SERVICES) if one.requested == time), None)
