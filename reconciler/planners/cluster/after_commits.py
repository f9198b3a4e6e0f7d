"""Decide whether enough commits were made since the newest clustering; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.planners.cluster.slice_verdicts import SliceVerdicts
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import Note
from reconciler.spec.model import Clustering
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.measured_queries import ClusteringContext
from reconciler.state.model import TableState

#: the rule of the note that nothing is clustered
NOTHING_TO_DO: Final = "nothingToDo"


def check_after_commits(
    clustering: Clustering,
    state: TableState,
    past: Sequence[PastClustering],
    layout: ClusteringLayout,
    verdicts: SliceVerdicts,
) -> Note | None:
    """Return the note that ``afterCommits`` is not met, after excluding all undecided slices.

    Commits count from the newest clustering, also a pending one. Source: Hudi's
    ClusteringPlanActionExecutor (1.2.0). Without ``when: always``, a clustering of this program
    that left slices to another run does not count. ``layout``: the declared one.
    """
    always = clustering.when.always
    times = [one.instant for one in past if always or not _is_unfinished(one, layout)]
    times += [given.instant for given in state.clusterings]
    last = max(times, default=None)
    done = sum(last is None or i.requested > last for i in state.timeline.commits)
    if done >= clustering.after_commits:
        return None
    since = f" since clustering {last}" if last else ""
    done_text = pluralize(done, "commit") if done else "no commits"
    reason = f"{done_text}{since} (clustering.afterCommits: {clustering.after_commits})"
    verdicts.decide("afterCommits", verdicts.is_open, reason)
    return Note(NOTHING_TO_DO, f"no clustering: {reason}")


def _is_unfinished(past: PastClustering, declared: ClusteringLayout) -> bool:
    """Return whether a clustering of this program left slices or had another layout."""
    if PLAN_DIGEST not in past.extra:
        return False
    context = ClusteringContext.read(past.extra)
    return past.layout != declared or (context is not None and context.remaining_slices > 0)
