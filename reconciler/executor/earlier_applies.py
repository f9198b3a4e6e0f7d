"""Find what earlier applies of the same plan have completed, before they were stopped."""

from __future__ import annotations

from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.model import ClusterStep, ResumeStep
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.state.extra_metadata import PLAN_DIGEST


def find_earlier_commits(
    session: ApplySession, timeline: Timeline, action: Action
) -> frozenset[str]:
    """Return the completed instants of an action that applies of this very plan have made.

    Only commits that are newer than the plan are read. Raises FormatError for one that is damaged.
    """
    observed = session.plan.observed
    since = (observed.last_completed if observed else None) or ""
    found = []
    for file in timeline.completed_files({action}, since):
        data, path = session.read_instant(file)
        if CommitMetadata.parse(data, path).extra.get(PLAN_DIGEST) == session.digest:
            found.append(file.instant.requested)
    return frozenset(found)


def adopt_replacements(
    session: ApplySession, first: FreshPlan, fresh: FreshPlan | None
) -> FreshPlan | None:
    """Let removals go on as if this run had replaced what earlier applies of the plan replaced.

    ``first``: the plan that was made when this run began. Returns ``fresh``, or None if it was made
    without these replacements. Raises FormatError for a commit that is damaged.
    """
    earlier = _find_replacements(session, first.state.timeline) - session.clustered
    session.clustered.update(earlier)
    return None if earlier else fresh


def _find_replacements(session: ApplySession, timeline: Timeline) -> frozenset[str]:
    """Return the completed clusterings and deletions of partitions that belong to the plan.

    Earlier applies have made them, or they are clusterings of other writers that it was to finish.
    """
    steps = session.plan.steps
    named = {step.instant for step in steps if isinstance(step, ResumeStep)}
    completed = timeline.completed_files({Action.REPLACECOMMIT})
    found = named.intersection(file.instant.requested for file in completed)
    if any(isinstance(step, ClusterStep | DeletePartitionStep) for step in steps):
        found |= find_earlier_commits(session, timeline, Action.REPLACECOMMIT)
    return frozenset(found)
