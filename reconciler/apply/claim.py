"""Taking over a pending instant: nobody works on it, and from now on we do."""

from __future__ import annotations

from reconciler.apply.checks import Look
from reconciler.apply.table import Table
from reconciler.errors import BusyError
from reconciler.hudi.owner import Owner
from reconciler.state.model import PendingClean, PendingClustering
from reconciler.transaction.pulse import living_owner
from reconciler.transaction.signature import OWNER


def claim(table: Table, look: Look, pending: PendingClean | PendingClustering, what: str) -> None:
    """Make sure under the lock that nobody works on it, and say that we do now.

    Raises BusyError naming who does.
    """
    with table.locked():
        timeline = table.reread()
        before = [f for f in look.state.timeline.files if f.instant.requested == pending.instant]
        if before != [f for f in timeline.files if f.instant.requested == pending.instant]:
            raise BusyError(f"{what} {pending.instant} is being worked on by another writer")
        owner = living_owner(
            table.storage,
            pending.instant,
            requested_by=Owner.parse(pending.extra.get(OWNER, "")),
            requested_ms=pending.started_ms,
            process=table.tools.process,
            now_ms=table.tools.clock.now_ms(),
        )
        if owner is not None:
            raise BusyError(f"{what} {pending.instant} is the work of {owner}, which still runs")
        table.lock.confirm()
        table.heartbeat(pending.instant).beat()
