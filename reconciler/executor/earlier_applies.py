"""Find what earlier applies of the same plan have completed, before they were stopped."""

from __future__ import annotations

from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.model import ResumeStep
from reconciler.state.extra_metadata import PLAN_DIGEST


def find_earlier_commits(
    session: ApplySession, timeline: Timeline, action: Action
) -> frozenset[str]:
    """Return the completed instants of an action that earlier applies of this plan have made.

    Reads the commits from the last one that the plan knows; raises FormatError for a damaged one.
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
    """Add what earlier applies of the plan have replaced to ``session.replacements``.

    Without that, a removal would leave files that were reviewed for it until the replaced file
    groups expire. ``first``: the plan that was made when this run began. Returns ``fresh``, or None
    if it has to be made again. Raises FormatError for a damaged commit.
    """
    earlier = _find_replacements(session, first.state.timeline) - session.replacements
    session.replacements.update(earlier)
    return None if earlier else fresh


def _find_replacements(session: ApplySession, timeline: Timeline) -> frozenset[str]:
    """Return the completed clusterings and deletions of partitions that belong to the plan.

    Earlier applies of the plan have made them, or they are clusterings of other writers that the
    plan finishes, whoever has completed them.
    """
    steps = session.plan.steps
    named = frozenset(step.instant for step in steps if isinstance(step, ResumeStep))
    completed = timeline.completed_files({Action.REPLACECOMMIT})
    finished = named.intersection(file.instant.requested for file in completed)
    return finished | find_earlier_commits(session, timeline, Action.REPLACECOMMIT)
