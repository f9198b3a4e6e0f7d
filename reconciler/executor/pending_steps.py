"""List the pending work of a table that an apply finishes before the reviewed steps."""

from __future__ import annotations

from reconciler.executor.fresh_plan import FreshPlan, is_planned_here
from reconciler.executor.session import ApplySession
from reconciler.planners.recovery.resume_compaction import find_compaction
from reconciler.plans.model import ResumeStep


def find_pending(session: ApplySession, fresh: FreshPlan) -> frozenset[str]:
    """Return the pending instants that are resumed: cleans, clusterings, compactions."""
    clusterings = {one.instant for one in fresh.state.pending_clusterings if one.is_ours}
    clusterings |= {step.instant for step in list_foreign_clusterings(session, fresh)}
    compactions = (step.instant for step in list_resumed_compactions(session, fresh))
    cleans = (clean.instant for clean in fresh.state.pending_cleans)
    return frozenset((*cleans, *clusterings, *compactions))


def list_foreign_clusterings(session: ApplySession, fresh: FreshPlan) -> list[ResumeStep]:
    """Return the reviewed steps that finish another writer's clustering that is pending."""
    pending = {one.instant for one in fresh.state.pending_clusterings if not one.is_ours}
    return [
        step
        for step in session.plan.steps
        if isinstance(step, ResumeStep) and step.writer and step.instant in pending
    ]


def list_resumed_compactions(session: ApplySession, fresh: FreshPlan) -> list[ResumeStep]:
    """Return the steps of compactions that are pending and to be finished, oldest first.

    Those are the reviewed ones, and those that an earlier apply has planned: they were reviewed
    then.
    """
    reviewed = [
        step
        for step in session.plan.steps
        if isinstance(step, ResumeStep)
        and step.action == "compaction"
        and find_compaction(fresh.state, step.instant) is not None
    ]
    named = {step.instant for step in reviewed}
    ours = [
        step
        for step in fresh.plan.steps
        if isinstance(step, ResumeStep)
        and step.instant not in named
        and is_planned_here(fresh.state, step)
    ]
    return sorted([*reviewed, *ours], key=lambda step: step.instant)
