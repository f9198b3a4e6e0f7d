"""Run one step of a reviewed plan by its kind."""

from __future__ import annotations

from typing import assert_never

from reconciler.executor.archive.run import run_archive
from reconciler.executor.clean.run import run_clean
from reconciler.executor.cluster.run import run_cluster
from reconciler.executor.compact.run import run_compact
from reconciler.executor.expiry.run import run_delete_partitions
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.orphans import run_orphans
from reconciler.executor.result import StepOutcome
from reconciler.executor.rollback import run_rollback
from reconciler.executor.savepoint import run_savepoint
from reconciler.executor.session import ApplySession
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import CleanStep, ClusterStep, OrphansStep, RollbackStep
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.savepoint_step import SavepointStep


def rewrite_groups(
    session: ApplySession,
    step: DeletePartitionStep | ClusterStep | CompactStep,
    fresh: FreshPlan | None,
) -> StepOutcome:
    """Run a step that replaces file groups, or their newest slices."""
    match step:
        case DeletePartitionStep():
            return run_delete_partitions(session, step, fresh)
        case ClusterStep():
            return run_cluster(session, step, fresh)
        case CompactStep():
            return run_compact(session, step, fresh)
        case _:
            assert_never(step)


def run_removal(
    session: ApplySession, step: CleanStep | OrphansStep | ArchiveStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Remove files that reads no longer need, or instants that the timeline no longer needs."""
    match step:
        case CleanStep():
            return run_clean(session, step, fresh)
        case OrphansStep():
            return run_orphans(session, step, fresh)
        case ArchiveStep():
            return run_archive(session, step, fresh)
        case _:
            assert_never(step)


def run_under_lock(
    session: ApplySession, step: RollbackStep | SavepointStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Run a step that has no instant of its own."""
    if isinstance(step, RollbackStep):
        return run_rollback(session, step, fresh)
    return run_savepoint(session, step, fresh)
