"""Finish pending compactions: those that nobody finishes, and those that an apply has begun.

The plan is executed as it stands. What an earlier attempt left is removed first: files, markers,
and what it wrote to the metadata table. No reader has seen any of it, so unlike Hudi no rollback is
recorded (BaseHoodieTableServiceClient.compact, rollbackInflightCompaction). From then on there is
no inflight file until it is completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from reconciler.arrays import to_arrow
from reconciler.errors import BusyError, UnsupportedError
from reconciler.executor.cluster.execution import require_rewriter
from reconciler.executor.compact.execution import CompactionExecution, make_failed_outcome
from reconciler.executor.compact.publish import begin_again
from reconciler.executor.compact.unplanned_logs import read_unplanned_logs
from reconciler.executor.compact.work import (
    CompactionWork,
    measure_inputs,
)
from reconciler.executor.failed_write_execution import find_limits
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.pending_steps import list_resumed_compactions
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.active import Timeline
from reconciler.planners.recovery.resume_compaction import (
    build_compaction_groups,
    explain_missing_input,
    find_compaction,
)
from reconciler.plans.groups import group_of_slices
from reconciler.plans.model import ResumeStep
from reconciler.rewrite.facts import read_table_facts
from reconciler.state.pending_compaction import PendingCompaction
from reconciler.transaction.recovery.abandoned_services import require_lock, take_over_service
from reconciler.transaction.recovery.damaged_files import find_cut_logs
from reconciler.transaction.retry import MissingFiles, raise_changing, retry_while_changing
from reconciler.transaction.run import finish_change, run_with_heartbeat


def resume_compactions(session: ApplySession, fresh: FreshPlan) -> Iterator[StepOutcome]:
    """Finish every reviewed compaction and those of earlier applies, oldest first.

    Raises BusyError for one that a writer works on, that a fresh plan does not finish, or whose
    plan was changed since the review.
    """
    planned = {step.instant: step for step in fresh.plan.steps if isinstance(step, ResumeStep)}
    for step in list_resumed_compactions(session, fresh):
        pending = find_compaction(fresh.state, step.instant)
        assert pending is not None, "it was listed"
        if step.instant not in planned:
            if missing := explain_missing_input(pending.operations, fresh.state):
                yield make_failed_outcome(pending.instant, missing)
                continue
            raise BusyError(
                f"{session.name}: a fresh plan does not finish compaction {step.instant}: plan "
                "again"
            )
        if _list_slices(planned[step.instant]) != _list_slices(step):
            raise BusyError(
                f"{session.name}: compaction {step.instant} compacts other files now than those "
                "that were reviewed: plan again"
            )
        with session.phase("resume"):
            known, limits = fresh.state.timeline, find_limits(session, fresh, pending.instant)
            require_lock(session, pending.instant, pending.action)
            take_over_service(session, known, pending.instant, pending.action, limits)
            work = partial(_finish, session, pending, known)
            yield run_with_heartbeat(session, pending.instant, work)


def _list_slices(step: ResumeStep) -> Iterable[object]:
    """Return the file slices of a step, with all files."""
    if (groups := step.groups) is None:
        return ()
    partitions = groups.partition.take(to_arrow(group_of_slices(groups)))
    columns = (partitions, groups.file_id, groups.base, groups.logs)
    return [column.to_pylist() for column in columns]


def _finish(session: ApplySession, pending: PendingCompaction, known: Timeline) -> StepOutcome:
    require_rewriter(session)
    missing = MissingFiles(session)

    def give_up() -> CompactionWork | StepOutcome:
        missing.raise_missed_again()
        raise_changing(session.name, "a compaction was being resumed")

    look = partial(_prepare, session, pending)
    prepared = retry_while_changing(partial(missing.look, look), give_up)
    if isinstance(prepared, StepOutcome):
        return prepared
    session.run_locked(partial(begin_again, session, prepared, known))
    outcome: StepOutcome = finish_change(CompactionExecution(session=session), prepared)
    return outcome


def _prepare(session: ApplySession, pending: PendingCompaction) -> CompactionWork | StepOutcome:
    """Look at the table afresh; return why the plan cannot be executed if it cannot."""
    state = session.make_fresh_plan().state
    try:
        facts = read_table_facts(session.storage, state)
    except UnsupportedError as error:
        return make_failed_outcome(pending.instant, str(error))
    work = CompactionWork(
        instant=pending.instant,
        operations=pending.operations,
        facts=facts,
        state=state,
        extra=pending.extra if pending.is_ours else session.make_extra(),
        attempt=session.owner.token,
        sizes=measure_inputs(pending.operations, state),
    )
    others = read_unplanned_logs(session.storage, work)
    problem = others.problem or _find_problem(session, work)
    work = replace(work, facts=others.drop_cancelled(facts))
    return make_failed_outcome(pending.instant, problem) if problem else work


def _find_problem(session: ApplySession, work: CompactionWork) -> str | None:
    """Return why the input files cannot be merged, as far as nothing of them has to be read."""
    if work.facts.merge_refusal:
        return work.facts.merge_refusal
    if missing := explain_missing_input(work.operations, work.state):
        return missing
    groups = build_compaction_groups(work.operations, work.state, "")
    cut = find_cut_logs(session.storage, session.properties, work.state, groups)
    return next((f"partition {path!r}: {why}" for (path, _), why in cut.items()), None)
