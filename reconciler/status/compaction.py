"""The status of a declared compaction: what the plan compacts now; pure."""

from __future__ import annotations

from typing import Final

from reconciler.planners.compact.deltacommits import count_deltacommits
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import TablePlan
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.status.model import CompactionStatus

_BUDGET: Final = "budget"


def compaction_status(
    spec: TableSpec, state: TableState, plan: TablePlan
) -> CompactionStatus | None:
    """Return what a plan compacts; None if the spec declares no compaction, or nothing can be.

    A step that is refused compacts nothing.
    """
    if spec.compaction is None or not state.is_merge_on_read:
        return None
    steps = [step for step in list_applied_steps(plan) if isinstance(step, CompactStep)]
    parts = [part for step in steps for part in step.expected]
    left = [rule for step in steps for rule in step.untouched if rule.rule == _BUDGET]
    made = count_deltacommits(state)
    return CompactionStatus(
        slices=sum(part.slices for part in parts),
        log_files=sum(part.log_files for part in parts),
        log_bytes=sum(part.log_bytes for part in parts),
        waiting_slices=sum(rule.slices for rule in left),
        deltacommits=made.count,
        newest=made.compaction,
    )
