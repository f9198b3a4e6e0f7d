"""Plan to finish other writers' pending clusterings that nobody finishes; pure.

``concurrency.pending.clustering: finish`` declares it. The plan of Hudi is executed as it is: its
groups, its number of files for each, its sort columns. The layout strategy and the file size of its
writer are options that no plan of Hudi records: without them Hudi sorts linearly.
Source: BaseHoodieTableServiceClient.cluster, MultipleSparkJobExecutionStrategy.getPartitioner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.arrays import to_arrow
from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.files.bucket_ids import find_bucket_ids
from reconciler.hudi.metadata.sync_decisions import decide_rewrite_sync
from reconciler.hudi.timeline.plans import (
    JAVA_SORT_AND_SIZE,
    SORT_AND_SIZE,
    ClusteringPlan,
    ClusteringPlanGroup,
)
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.planners.reasons import pluralize
from reconciler.planners.recovery.failed_files import (
    describe_rollback,
    finishes_clusterings,
    has_no_lock,
    list_failed_files,
)
from reconciler.planners.recovery.resume_clustering import build_resumed_rewrites
from reconciler.planners.recovery.rollback_clustering import describe_clustering, find_abandoned
from reconciler.plans.decode import empty_removed_files
from reconciler.plans.model import Note, ResumeStep
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Concurrency, TableSpec
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.model import ForeignWrite, PendingClustering, PendingRollback, TableState

#: options of a plan's strategy (HoodieClusteringConfig)
_LAYOUT: Final = "hoodie.layout.optimize.strategy"
_BUILD: Final = "hoodie.layout.optimize.curve.build.method"
_TARGET: Final = "hoodie.clustering.plan.strategy.target.file.max.bytes"
_CURVES: Final[Mapping[str, str]] = {"LINEAR": "linear", "ZORDER": "z-order", "HILBERT": "hilbert"}
#: bytes of a new file, by Hudi's default
_HUDIS_TARGET: Final = 1 << 30
_EXECUTORS: Final = frozenset({SORT_AND_SIZE, JAVA_SORT_AND_SIZE})
_SKELETON: Final = "_00000000000001.parquet"
_REMEDY: Final = "let Hudi finish it, or declare concurrency.pending.clustering: rollback"


def plan_clustering_finishes(spec: TableSpec, state: TableState) -> tuple[ResumeStep, ...]:
    """Return a step for every clustering of another writer that is finished, the oldest first."""
    if not finishes_clusterings(spec) or has_no_lock(spec):
        return ()
    return tuple(
        _build_step(clustering, pending, find_rollback(clustering.instant, state), spec, state)
        for clustering, pending in _pair_abandoned(spec, state)
        if _find_obstacle(clustering.instant, pending.plan, spec, state) is None
    )


def warn_of_unfinished_clusterings(spec: TableSpec, state: TableState) -> tuple[Note, ...]:
    """Return a warning for every clustering that the spec has finished and that cannot be."""
    if not finishes_clusterings(spec) or has_no_lock(spec):
        return ()
    notes = []
    for clustering, pending in _pair_abandoned(spec, state):
        problem = _find_obstacle(clustering.instant, pending.plan, spec, state)
        if problem is not None:
            text = f"{describe_clustering(clustering, spec, state)}; it is not finished: {problem}"
            notes.append(Note("pendingClustering", text))
    return tuple(notes)


def find_rollback(instant: str, state: TableState) -> PendingRollback | None:
    """Return the pending rollback of an instant, None if there is none."""
    return next(
        (
            rollback
            for rollback in state.pending_rollbacks
            if rollback.plan is not None and rollback.plan.target == instant
        ),
        None,
    )


def read_plan_layout(plan: ClusteringPlan) -> ClusteringLayout:
    """Return how Hudi orders the rows of a plan, as far as the plan says it.

    Raises UnsupportedError for an order that is not made here.

    >>> read_plan_layout(ClusteringPlan(groups=())).columns
    ()
    """
    columns = plan.sort_columns
    if not columns:
        return ClusteringLayout()
    named = plan.strategy.get(_LAYOUT, "LINEAR").upper()
    curve = _CURVES.get(named)
    if curve is None:
        raise UnsupportedError(f"its plan wants the layout {named}, which is not made here")
    build = plan.strategy.get(_BUILD, "DIRECT").upper()
    if curve != "linear" and build != "DIRECT":
        raise UnsupportedError(f"its plan wants the curve to be built by {build}, from a sample")
    mapping = "rank" if curve == "linear" else "direct"
    return ClusteringLayout(columns=columns, curve=curve, mapping=mapping)


def find_plan_split(plan: ClusteringPlan, groups: Rewrites) -> SplitRule:
    """Return when a new file of a plan is split: not below the size that its planner meant.

    ``groups``: those that are rewritten, at least one.
    """
    named = plan.strategy.get(_TARGET, "")
    target = int(named) if named.isdecimal() and int(named) > 0 else _HUDIS_TARGET
    return SplitRule(target=max(target, int((groups.bytes // groups.outputs).max())))


def _pair_abandoned(
    spec: TableSpec, state: TableState
) -> Iterator[tuple[ForeignWrite, PendingClustering]]:
    pending = {clustering.instant: clustering for clustering in state.pending_clusterings}
    for clustering in find_abandoned(spec, state):
        if clustering.instant in pending:
            yield clustering, pending[clustering.instant]


def _build_step(
    clustering: ForeignWrite,
    pending: PendingClustering,
    rollback: PendingRollback | None,
    spec: TableSpec,
    state: TableState,
) -> ResumeStep:
    attempt = list_failed_files(clustering.instant, state)
    deletes = (
        f", after {pluralize(len(attempt), 'file')} of an earlier attempt that no reader has seen "
        f"{'is' if len(attempt) == 1 else 'are'} deleted"
        if len(attempt)
        else ""
    )
    order = (
        f", with rows sorted by {', '.join(columns)}"
        if (columns := pending.plan.sort_columns)
        else ""
    )
    because = (
        f"{describe_clustering(clustering, spec, state)}; apply executes its plan{order}, for the "
        f"file slices that have not changed{deletes}"
    )
    groups = build_resumed_rewrites(pending.plan, state, because)
    return ResumeStep(
        instant=clustering.instant,
        action="clustering",
        files=empty_removed_files(),
        groups=groups,
        writer="foreign",
        attempt=attempt if len(attempt) else None,
        rollback=None if rollback is None else rollback.instant,
        because=because,
    )


def _find_obstacle(
    instant: str, plan: ClusteringPlan, spec: TableSpec, state: TableState
) -> str | None:
    """Return why a clustering cannot be finished here, None if it can."""
    rollback = find_rollback(instant, state)
    if rollback is not None and not rollback.is_dead(
        state.observed_ms, spec.concurrency or Concurrency()
    ):
        return f"{describe_rollback(rollback)}, and may still be at work"
    if (problem := _find_unknown_form(plan)) is not None:
        return f"{problem}; {_REMEDY}"
    try:
        read_plan_layout(plan)
        decide_rewrite_sync(
            state.metadata_partitions, table_version=state.table_version, rows=0, inflight=()
        )
    except (UnsupportedError, BusyError) as error:
        return f"{error}; {_REMEDY}"
    return None


def _find_unknown_form(plan: ClusteringPlan) -> str | None:
    """Return what a plan wants that is not done here."""
    if plan.executor_class not in _EXECUTORS:
        return f"its plan wants to be executed by {plan.executor_class}, which is not done here"
    if not plan.keeps_commit_times:
        return "its plan wants new commit times of all rows, and rewrites here keep theirs"
    for group in plan.groups:
        if not group.slices or len({one.partition for one in group.slices}) > 1:
            return "its plan has a group that is not of one partition"
        if _mixes_buckets(group):
            return (
                f"its plan merges or splits buckets of partition {group.slices[0].partition!r}, "
                "whose writers find rows by the bucket's number"
            )
        if any((one.base_file or "").endswith(_SKELETON) for one in group.slices):
            return "its plan rewrites bootstrap skeletons, whose data lie outside the table"
    return None


def _mixes_buckets(group: ClusteringPlanGroup) -> bool:
    """Return whether a group makes anything but one new file of one bucket's file group."""
    is_bucket = find_bucket_ids(to_arrow([one.file_id for one in group.slices]))
    is_alone = len(group.slices) == 1 and group.output_count == 1
    return bool(is_bucket.any()) and not is_alone
