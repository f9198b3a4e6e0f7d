"""Look after a pending write of this run: whether it is ours still, and take it back."""

from __future__ import annotations

from reconciler.hudi.timeline.instant import Action, State
from reconciler.transaction.footprints import (
    CompletedWrites,
    find_rollback_ms,
    is_being_rolled_back,
)
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.marked_files import remove_marked_files, remove_markers
from reconciler.transaction.recovery.pending_instants import (
    remove_withdrawn_attempt,
    withdraw_instant,
)
from reconciler.transaction.session import TableSession


def is_still_pending(
    session: TableSession, instant: str, action: Action, known: CompletedWrites
) -> bool:
    """Return False if another writer has rolled a write of this run back, or has begun to.

    ``known``: writes and rollbacks that had completed when it began.
    """
    timeline = session.reload_timeline()
    return (
        timeline.find_file(instant, action, State.REQUESTED) is not None
        and timeline.find_file(instant, action, State.INFLIGHT) is not None
        and find_completion(timeline, instant, action) is None
        and find_rollback_ms(session, timeline, instant, known) is None
    )


def take_back_write(session: TableSession, instant: str, action: Action) -> None:
    """Undo a write of this run that failed; the table's lock is held.

    If another run has undone it already, what was written since is removed too. A rollback that
    is pending may count on the rest, which stays. An upgrade of the table may have moved it.
    """
    followed = session.follow_upgrade()
    timeline = followed.reload_timeline()
    if find_completion(timeline, instant, action) is not None:
        return
    if followed.make_heartbeat(instant).is_taken_over():
        return  # another run has undone it, and has taken its time since
    followed.lock.confirm()
    if is_being_rolled_back(followed, timeline, instant):
        remove_marked_files(followed.storage, instant)
        remove_markers(followed.storage, instant)
    elif timeline.find_file(instant, action, State.REQUESTED) is not None:
        withdraw_instant(followed, instant, action)
    else:  # nobody else looks for what the metadata table was given since
        remove_withdrawn_attempt(followed.storage, instant)
    if followed is not session:
        session.publisher.withdraw(instant, action)  # what it wrote after the upgrade
