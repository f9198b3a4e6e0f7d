"""Plan every rollback of a table, and say what stays pending; pure."""

from __future__ import annotations

from reconciler.planners.recovery.finish_clustering import warn_of_unfinished_clusterings
from reconciler.planners.recovery.rollback_clustering import (
    plan_clustering_rollbacks,
    warn_of_abandoned_clusterings,
)
from reconciler.planners.recovery.rollback_failed_write import (
    plan_failed_writes,
    warn_of_failed_writes,
)
from reconciler.planners.recovery.rollback_write import plan_rollbacks, warn_of_rollbacks
from reconciler.plans.model import KeptFiles, Note, RollbackStep
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState


def plan_all_rollbacks(spec: TableSpec, state: TableState) -> tuple[RollbackStep, ...]:
    """Return the steps that roll back dead writes of this program, and work of other writers."""
    return (
        *plan_rollbacks(state),
        *plan_failed_writes(spec, state),
        *plan_clustering_rollbacks(spec, state),
    )


def warn_of_stuck_work(
    spec: TableSpec, state: TableState, kept: KeptFiles | None
) -> tuple[Note, ...]:
    """Return the warnings about dead work that stays, or that holds something back until it goes.

    ``kept``: the files past retention that stay.
    """
    return (
        *warn_of_rollbacks(state),
        *warn_of_failed_writes(spec, state, kept),
        *warn_of_abandoned_clusterings(spec, state, kept),
        *warn_of_unfinished_clusterings(spec, state),
    )
