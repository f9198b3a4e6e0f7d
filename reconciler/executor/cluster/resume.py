"""Resume pending clusterings of ours: do them again under their instant, or undo them.

Files of the earlier attempt are removed first, by their markers, and what it wrote to the metadata
table: they may be incomplete. Other writers' clusterings are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from reconciler.errors import BusyError
from reconciler.executor.cluster.execution import (
    ClusterExecution,
    check_no_foreign_writes,
    require_rewriter,
)
from reconciler.executor.cluster.group_selection import (
    GroupSelection,
    drop_groups,
    select_groups,
)
from reconciler.executor.cluster.work import (
    ClusterWork,
    get_clustering_action,
    make_claims,
    make_requested_plan,
)
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.load import load_heartbeat_owner
from reconciler.hudi.timeline.instant import State
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.recovery.resume_clustering import build_resumed_rewrites
from reconciler.plans.model import RollbackStep
from reconciler.rewrite.facts import TableFacts, read_table_facts
from reconciler.state.clustering_layout import LAYOUT_KEY, ClusteringLayout
from reconciler.state.model import PendingClustering, TableState
from reconciler.transaction.conflicts import find_conflicts
from reconciler.transaction.footprints import (
    collect_completed_writes,
    find_rollback_ms,
    read_footprints,
)
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.damaged_files import find_damaged_files
from reconciler.transaction.recovery.pending_instants import remove_attempt
from reconciler.transaction.recovery.takeover import take_over
from reconciler.transaction.retry import (
    MissingFiles,
    ShouldWait,
    raise_changing,
    retry_until_known,
    retry_while_changing,
)
from reconciler.transaction.run import finish_change, run_with_heartbeat

#: the state of the table, facts about it, and the groups of a pending clustering that may run
_Resumption = tuple[TableState, TableFacts, GroupSelection]


def resume_clusterings(session: ApplySession, fresh: FreshPlan) -> Iterator[StepOutcome]:
    """Finish or undo every pending clustering of ours, oldest first.

    One whose rollback another writer has left pending is left to the step that finishes that
    rollback. Raises BusyError for one that another process works on.
    """
    undone = {step.instant for step in session.plan.steps if isinstance(step, RollbackStep)}
    for pending in fresh.state.pending_clusterings:
        if pending.is_ours and pending.instant not in undone:
            with session.phase("resume"):
                _check_not_taken_over(session, pending)
                take_over(session, pending, known=fresh.state.timeline, kind="clustering")
                yield run_with_heartbeat(
                    session, pending.instant, partial(_resume_clustering, session, pending)
                )


def _check_not_taken_over(session: ApplySession, pending: PendingClustering) -> None:
    """Raise BusyError while another writer may be executing our clustering.

    We beat before we write the inflight file, so an inflight file without a heartbeat is not ours.
    """
    owner = load_heartbeat_owner(session.storage, pending.instant)
    begun = pending.state == State.INFLIGHT and owner is None
    taken_ms = find_rollback_ms(session, session.reload_timeline(), pending.instant)
    if not begun and taken_ms is None:
        return
    concurrency = session.spec.concurrency
    stale_after = concurrency.stale_after if concurrency else 0
    began_ms = max(pending.started_ms, taken_ms or 0)
    age_s = (session.context.clock.now_ms() - began_ms) / 1000
    if age_s <= stale_after:
        raise BusyError(
            f"another writer has begun to execute our clustering {pending.instant} "
            f"{age_s:.0f} s ago; it counts as left behind after concurrency.staleAfter, "
            f"{stale_after} s"
        )


def _resume_clustering(session: ApplySession, pending: PendingClustering) -> StepOutcome:
    require_rewriter(session)
    missing = MissingFiles(session)

    def give_up() -> _Resumption:
        missing.raise_missed_again()
        raise_changing(session.name, "a clustering was being resumed")

    look = partial(_choose_groups, session, pending)
    state, facts, chosen = retry_while_changing(partial(missing.look, look), give_up)
    begun = retry_until_known(session, partial(_begin_again, session, pending, chosen, state))
    assert begun is not None, "it waits no longer"
    if not len(begun.groups):
        return StepOutcome(kind="resume", how="undone", rewritten=begun.unchanged)
    work = ClusterWork(
        instant=pending.instant,
        selection=begun,
        layout=_read_layout(session, pending),
        facts=facts,
        state=state,
        extra=pending.extra,
        attempt=session.owner.token,
    )
    change = _ResumedClustering(session=session, is_begun=pending.state == State.INFLIGHT)
    return replace(finish_change(change, work), kind="resume")


def _choose_groups(session: ApplySession, pending: PendingClustering) -> _Resumption:
    """Look at the table afresh and choose the groups that may still run."""
    fresh = session.make_fresh_plan()
    check_no_foreign_writes(session, fresh, own=pending.instant)
    state = fresh.state
    facts = read_table_facts(session.storage, state)
    planned = build_resumed_rewrites(pending.plan, state, f"of clustering {pending.instant}")
    chosen = select_groups(
        planned,
        state,
        own=pending.instant,
        refusal=facts.merge_refusal,
        damage=find_damaged_files(session.storage, session.properties, state, planned),
    )
    return state, facts, chosen


@dataclass(kw_only=True, eq=False)
class _ResumedClustering(ClusterExecution):
    """A pending clustering that is resumed; ``is_begun``: its inflight file is there."""

    is_begun: bool

    def begin(self, pending: ClusterWork) -> None:
        if not self.is_begun:
            super().begin(pending)


def _begin_again(
    session: ApplySession,
    pending: PendingClustering,
    chosen: GroupSelection,
    state: TableState,
    should_wait: ShouldWait,
) -> GroupSelection | None:
    """Remove the earlier attempt, and return the groups that may still run.

    The table's lock is held. The requested plan is reduced to these groups, so that no other writer
    does what we would not. Without any group the instant is withdrawn. None if it has to
    wait.
    """
    time, action = pending.instant, get_clustering_action(state.table_version)
    known = collect_completed_writes(state.timeline)
    timeline, footprints = read_footprints(session, known, time)
    if find_completion(timeline, time, action) is not None:
        raise BusyError(f"clustering {time} was completed by another writer meanwhile")
    if timeline.find_file(time, action, State.REQUESTED) is None:
        raise BusyError(f"clustering {time} was removed by another writer meanwhile")
    if session.make_heartbeat(time).is_taken_over():
        raise BusyError(
            f"clustering {time} was taken over by another run; plan again when it is done"
        )
    if find_rollback_ms(session, timeline, time, known) is not None:
        raise BusyError(
            f"a rollback of our clustering {time} is pending; run apply again when Hudi has "
            "finished it"
        )
    claims = make_claims(chosen.groups, state, session.spec)
    if should_wait(claims, footprints):
        return None
    chosen = drop_groups(chosen, find_conflicts(claims, footprints))
    session.lock.confirm()
    remove_attempt(session.storage, time)
    if not len(chosen.groups):
        session.publisher.withdraw(time, action)
    elif chosen.left or chosen.gone:
        layout = _read_layout(session, pending)
        plan = make_requested_plan(chosen.groups, state, session.spec, layout, pending.extra)
        data = plan.encode(session.storage.location, version=state.table_version)
        session.publisher.amend(time, action, data)
    return chosen


def _read_layout(session: ApplySession, pending: PendingClustering) -> ClusteringLayout:
    """Return how rows are to be ordered, as the instant records it."""
    text = pending.extra.get(LAYOUT_KEY)
    if text is None:
        return ClusteringLayout()
    return ClusteringLayout.parse(text, f"{session.properties.timeline_folder}/{pending.instant}")
