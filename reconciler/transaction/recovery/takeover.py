"""Take over a pending instant whose run is dead, so that this run can finish it."""

from __future__ import annotations

from reconciler.errors import BusyError
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.owner import Owner
from reconciler.state.model import PendingClean, PendingClustering
from reconciler.transaction.heartbeat import find_living_owner
from reconciler.transaction.ownership import OWNER
from reconciler.transaction.session import TableSession


def take_over(
    session: TableSession,
    pending: PendingClean | PendingClustering,
    *,
    known: Timeline,
    kind: str,
) -> None:
    """Check under the lock that nobody works on a pending instant, and beat for it from now on.

    ``known``: the timeline that it was found on; ``kind``: what people call it. Raises BusyError
    naming its owner where that still runs, and where another writer has touched it since.
    """
    time = pending.instant
    with session.hold_lock():
        timeline = session.reload_timeline()
        before = [file for file in known.files if file.instant.requested == time]
        if before != [file for file in timeline.files if file.instant.requested == time]:
            raise BusyError(f"{kind} {time} is being worked on by another writer")
        owner = find_living_owner(
            session.storage,
            time,
            requested_by=Owner.parse(pending.extra.get(OWNER, "")),
            requested_ms=pending.started_ms,
            process=session.run_context.process,
            now_ms=session.clock.now_ms(),
        )
        if owner is not None:
            raise BusyError(f"{kind} {time} is the work of {owner}, which still runs")
        session.lock.confirm()
        session.make_heartbeat(time).beat()
