"""Finish a pending clustering of another writer that nobody finishes, as its plan says.

What an earlier attempt wrote is rolled back first, as Hudi does before it executes a plan again: a
rollback instant deletes its files and takes the clustering back to its request. The plan is then
executed under its instant. Until it is completed it has no inflight file, so that its writer,
should it come back, finds nothing to complete. Our heartbeat tells the next apply who has begun.
Source: BaseHoodieTableServiceClient.cluster, HoodieTable.rollbackInflightClustering.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from reconciler.errors import BusyError, UnsupportedError
from reconciler.executor.cluster.execution import (
    ClusterExecution,
    RewrittenGroups,
    find_damaged_input,
    require_rewriter,
)
from reconciler.executor.cluster.group_selection import (
    GroupSelection,
    drop_groups,
    select_groups,
)
from reconciler.executor.cluster.publish import list_file_groups
from reconciler.executor.cluster.rewrite_job import make_rewrite
from reconciler.executor.cluster.work import ClusterWork, get_clustering_action, make_work_claims
from reconciler.executor.failed_write import roll_back_failed_write
from reconciler.executor.failed_write_execution import find_limits
from reconciler.executor.failed_write_review import make_attempt_rollback
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.instant import State
from reconciler.hudi.timeline.plans import ClusteringPlan
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.recovery.finish_clustering import read_plan_layout
from reconciler.planners.recovery.resume_clustering import build_resumed_rewrites
from reconciler.plans.model import Note, ResumeStep
from reconciler.rewrite.facts import read_table_facts
from reconciler.state.model import PendingClustering
from reconciler.transaction.conflicts import find_conflicts
from reconciler.transaction.footprints import read_footprints
from reconciler.transaction.recovery.abandoned_services import (
    check_taken_over,
    is_begun,
    require_lock,
    take_over_service,
)
from reconciler.transaction.recovery.damaged_files import find_damaged_files
from reconciler.transaction.recovery.failed_writes import check_abandoned, find_pending_write
from reconciler.transaction.recovery.finished_runs import write_missing_inflight
from reconciler.transaction.recovery.pending_instants import remove_attempt
from reconciler.transaction.retry import (
    MissingFiles,
    ShouldWait,
    raise_changing,
    retry_until_known,
    retry_while_changing,
)
from reconciler.transaction.run import finish_change, run_with_heartbeat

#: how an outcome of a rollback ends that took a clustering back to its request
_REVERTED: Final = frozenset({"completed", "adopted"})


def finish_clustering(session: ApplySession, step: ResumeStep, fresh: FreshPlan) -> StepOutcome:
    """Finish a reviewed clustering of another writer if it is still left behind.

    ``fresh`` is a plan that was made just now. Raises BusyError while its writer, a rollback or
    another run is at work, StorageError, FormatError.
    """
    action = get_clustering_action(fresh.state.table_version)
    require_lock(session, step.instant, action)
    require_rewriter(session)
    planned = _find_planned(fresh, step)
    pending = _find_pending(fresh, step)
    if planned is None:
        _explain_unplanned(session, step, fresh)
    undone = _undo_attempt(session, step, planned, pending, fresh)
    if undone is not None and undone.how not in _REVERTED:
        return replace(undone, kind="resume")
    if undone is not None:
        fresh = session.observe()
        pending = _find_pending(fresh, step)
    if pending.state != State.REQUESTED:
        raise BusyError(f"clustering {step.instant} is being worked on by another writer")
    with session.phase("resume"):
        limits = find_limits(session, fresh, step.instant)
        take_over_service(session, fresh.state.timeline, step.instant, action, limits)
        outcome = run_with_heartbeat(session, step.instant, partial(_execute, session, pending))
    if undone is None:
        return outcome
    notes = (*undone.warnings, *outcome.warnings)
    return replace(
        outcome, removed=undone.removed, bytes=undone.bytes, gone=undone.gone, warnings=notes
    )


def _undo_attempt(
    session: ApplySession,
    step: ResumeStep,
    planned: ResumeStep,
    pending: PendingClustering,
    fresh: FreshPlan,
) -> StepOutcome | None:
    """Roll back what an earlier attempt wrote; None if there was none."""
    is_begun = pending.state == State.INFLIGHT
    if not (is_begun or step.attempt or planned.attempt or planned.rollback):
        return None
    action = get_clustering_action(fresh.state.table_version).value
    rollback = make_attempt_rollback(step, action)
    return roll_back_failed_write(session, rollback, fresh, keeps_request=True)


def _find_planned(fresh: FreshPlan, step: ResumeStep) -> ResumeStep | None:
    """Return what the planner makes now of the reviewed step, None if nothing."""
    for one in fresh.plan.steps:
        if isinstance(one, ResumeStep) and (one.instant, one.writer) == (step.instant, "foreign"):
            return one
    return None


def _find_pending(fresh: FreshPlan, step: ResumeStep) -> PendingClustering:
    for pending in fresh.state.pending_clusterings:
        if pending.instant == step.instant:
            return pending
    raise BusyError(
        f"clustering {step.instant} was completed or removed by another writer meanwhile; run "
        "apply again"
    )


def _explain_unplanned(session: ApplySession, step: ResumeStep, fresh: FreshPlan) -> NoReturn:
    """Raise BusyError for a clustering that a fresh plan does not finish."""
    timeline = fresh.state.timeline
    target = find_pending_write(timeline, step.instant)
    if target is not None:
        check_abandoned(session, timeline, target, find_limits(session, fresh, step.instant))
    raise BusyError(
        f"{session.name}: a fresh plan does not finish clustering {step.instant}: plan again"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """What a plan may still do. ``problem``: why groups that have not changed cannot be read."""

    work: ClusterWork
    problem: str | None = None


def _execute(session: ApplySession, pending: PendingClustering) -> StepOutcome:
    """Execute the plan; the heartbeat of this run beats."""
    missing = MissingFiles(session)

    def give_up() -> _Decision:
        missing.raise_missed_again()
        raise_changing(session.name, "a clustering was being finished")

    look = partial(_decide, session, pending)
    decision = retry_while_changing(partial(missing.look, look), give_up)
    work = decision.work
    if decision.problem is not None:
        note = Note("pendingClustering", f"{decision.problem}; it stays pending")
        return StepOutcome(kind="resume", how="failed", warnings=(note,))
    retry_until_known(session, partial(_begin, session, work))
    if not len(work.groups):
        return StepOutcome(kind="resume", how="undone", rewritten=work.selection.unchanged)
    return replace(finish_change(_FinishedClustering(session=session), work), kind="resume")


def _decide(session: ApplySession, pending: PendingClustering) -> _Decision:
    """Look at the table afresh, and choose the groups that have not changed."""
    state = session.make_fresh_plan().state
    facts = read_table_facts(session.storage, state)
    planned = build_resumed_rewrites(pending.plan, state, f"of clustering {pending.instant}")
    unchanged = select_groups(planned, state, own=pending.instant)
    readable = select_groups(
        unchanged.groups,
        state,
        own=pending.instant,
        refusal=facts.merge_refusal,
        damage=find_damaged_files(session.storage, session.properties, state, unchanged.groups),
    )
    work = ClusterWork(
        instant=pending.instant,
        selection=unchanged,
        layout=read_plan_layout(pending.plan),
        facts=facts,
        state=state,
        extra=pending.extra,
        attempt=session.owner.token,
        foreign=pending.plan,
    )
    return _Decision(work=work, problem=_find_problem(session, work, readable))


def _find_problem(session: ApplySession, work: ClusterWork, readable: GroupSelection) -> str | None:
    """Return why the plan cannot be executed here, None if it can."""
    if readable.left:
        return readable.left[0].because
    try:
        make_rewrite(
            work.facts, session.spec, work.layout, instant=work.instant, attempt=work.attempt
        )
    except UnsupportedError as error:
        return str(error)
    return None


def _begin(session: ApplySession, work: ClusterWork, should_wait: ShouldWait) -> None:
    """Remove what a dead run of reconciler left; the table's lock is held.

    Groups that have changed leave the requested plan, so that no other writer does what we would
    not. Without any group the instant is withdrawn. Raises BusyError when another writer has
    touched a group since the last look, or may.
    """
    time, action = work.instant, work.action
    timeline, footprints = read_footprints(session, work.known, time)
    check_taken_over(session, timeline, work)
    if is_begun(timeline, work):
        raise BusyError(f"clustering {time} is being worked on by another writer")
    claims = make_work_claims(work, session.spec, footprints)
    if should_wait(claims, footprints):
        return
    for because in find_conflicts(claims, footprints).values():
        raise BusyError(f"clustering {time} cannot be finished now: {because}; run apply again")
    session.lock.confirm()
    remove_attempt(session.storage, time)
    if not len(work.groups):
        session.publisher.withdraw(time, action)
    elif work.selection.left:
        plan = _reduce_plan(work)
        data = plan.encode(session.storage.location, version=work.state.table_version)
        session.publisher.amend(time, action, data)


def _reduce_plan(work: ClusterWork) -> ClusteringPlan:
    """Return the plan with the groups that are executed."""
    assert work.foreign is not None, "only a plan of another writer is reduced so"
    kept = list_file_groups(work.groups)
    groups = (
        group
        for group in work.foreign.groups
        if group.slices and (group.slices[0].partition, group.slices[0].file_id) in kept
    )
    return replace(work.foreign, groups=tuple(groups))


@dataclass(kw_only=True, eq=False)
class _FinishedClustering(ClusterExecution):
    """A clustering of another writer that is brought to its end without an inflight file."""

    def begin(self, pending: ClusterWork) -> None:
        pass

    def tidy(
        self, pending: ClusterWork, result: RewrittenGroups | None, outcome: StepOutcome
    ) -> StepOutcome:
        if outcome.how == "completed":
            session = self.session
            timeline = session.reload_timeline()
            write_missing_inflight(session.storage, session.properties, timeline, pending.instant)
        return super().tidy(pending, result, outcome)

    def explain_failure(
        self,
        pending: ClusterWork,
        error: BaseException,
        *,
        has_worked: bool,
    ) -> StepOutcome | None:
        """Return the outcome of a clustering whose input is damaged; it stays requested."""
        damage = None if has_worked else find_damaged_input(pending, error)
        if not damage:
            return None
        reasons = dict.fromkeys(range(len(pending.groups)), damage)
        chosen = drop_groups(pending.selection, reasons)
        return StepOutcome(kind="cluster", how="failed", rewritten=chosen.unchanged)
