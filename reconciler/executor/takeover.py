"""Taking over a pending instant: nobody works on it, and from now on we do."""

from __future__ import annotations

from reconciler.errors import BusyError
from reconciler.executor.gate import FreshPlan
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.owner import Owner
from reconciler.state.model import PendingClean, PendingClustering
from reconciler.transaction.heartbeat import find_living_owner
from reconciler.transaction.ownership import OWNER


def take_over(
    session: ApplySession, fresh: FreshPlan, pending: PendingClean | PendingClustering, what: str
) -> None:
    """Make sure under the lock that nobody works on it, and say that we do now.

    Raises BusyError naming who does.
    """
    with session.hold_lock():
        timeline = session.reload_timeline()
        before = [f for f in fresh.state.timeline.files if f.instant.requested == pending.instant]
        if before != [f for f in timeline.files if f.instant.requested == pending.instant]:
            raise BusyError(f"{what} {pending.instant} is being worked on by another writer")
        owner = find_living_owner(
            session.storage,
            pending.instant,
            requested_by=Owner.parse(pending.extra.get(OWNER, "")),
            requested_ms=pending.started_ms,
            process=session.context.process,
            now_ms=session.context.clock.now_ms(),
        )
        if owner is not None:
            raise BusyError(f"{what} {pending.instant} is the work of {owner}, which still runs")
        session.lock.confirm()
        session.make_heartbeat(pending.instant).beat()
