"""Take back deletions of partitions whose apply died before they were complete.

Such a deletion has written no file but its own on the timeline, so nobody has to review this.
"""

from __future__ import annotations

from functools import partial

from reconciler.errors import NotFoundError
from reconciler.executor.expiry.run import OPERATION
from reconciler.executor.session import ApplyContext
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.plans.refusals import choose_zone
from reconciler.spec.model import TableSpec
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.storage.api import Storage
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.recovery.pending_instants import withdraw_instant
from reconciler.transaction.recovery.takeover import read_last_heartbeat
from reconciler.transaction.session import TableSession, open_session


def take_back_dead_deletions(spec: TableSpec, storage: Storage, context: ApplyContext) -> None:
    """Take back the pending deletions of partitions of dead applies.

    For plans that delete partitions: others have a step for each. A table without a pending
    replacement is only listed. Raises StorageError, FormatError, and BusyError if the lock is
    needed and another run has it.
    """
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    zone = choose_zone(properties.timezone, spec.timezone)
    has_lock = spec.concurrency is not None and spec.concurrency.lock is not None
    if not timeline.pending({Action.REPLACECOMMIT}) or zone is None or not has_lock:
        return
    session = open_session(
        spec,
        storage,
        properties,
        timeline,
        zone,
        owner=context.process.make_owner(context.new_token()),
        context=context.run_context,
    )
    if find_dead_deletions(session, timeline):
        with session.heartbeats.run():
            session.run_locked(partial(_take_back, session))


def find_dead_deletions(session: TableSession, timeline: Timeline) -> list[Instant]:
    """Return the pending deletions of partitions of dead applies; raises as reading them does."""
    pending = timeline.pending({Action.REPLACECOMMIT})
    return [instant for instant in pending if _is_dead_deletion(session, timeline, instant)]


def _take_back(session: TableSession) -> None:
    """Withdraw what is pending and dead; the table's lock is held."""
    timeline = session.reload_timeline()
    for instant in find_dead_deletions(session, timeline):
        if not is_being_rolled_back(session, timeline, instant.requested):
            session.lock.confirm()
            withdraw_instant(session, instant.requested, instant.action)
            session.storage.delete(heartbeat_path(instant.requested))


def _is_dead_deletion(session: TableSession, timeline: Timeline, instant: Instant) -> bool:
    """Return whether an instant deletes partitions for a plan, and its run is dead."""
    file = timeline.find_file(instant.requested, instant.action, State.REQUESTED)
    if file is None or not file.size:
        return False
    try:
        request = RequestedReplace.parse(*session.read_instant(file))
    except NotFoundError:
        return False
    if request.operation != OPERATION or PLAN_DIGEST not in request.extra:
        return False
    beat = read_last_heartbeat(session.storage, instant.requested)
    process, now_ms = session.run_context.process, session.clock.now_ms()
    return beat is not None and beat.is_owner_dead(session.storage, process, now_ms)
