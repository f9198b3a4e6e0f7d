"""Compare a reviewed rollback of another writer's write with the table as it is now; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.planners.recovery.failed_files import measure_failed_files
from reconciler.plans.decode import empty_named_files
from reconciler.plans.model import NamedFiles, ResumeStep, RollbackStep

_UNNAMED: Final = "it came after the review, and the plan does not name it: plan again"
_KEPT: Final = "its write has a file that came after the review, so nothing of it goes: plan again"
COMPLETED: Final = "its write was completed after the review, so it is the table's"
_WITHDRAWN: Final = "its write is off the timeline since the review: plan again"

#: partition and name
File = tuple[str, str]


def find_fresh_step(fresh: FreshPlan, step: RollbackStep) -> RollbackStep | None:
    """Return what the planner makes now of a reviewed rollback, None if nothing."""
    for one in fresh.plan.steps:
        match one:
            case RollbackStep(instant=step.instant, writer="foreign"):
                return one
            case ResumeStep(instant=step.instant, writer="foreign"):
                return make_attempt_rollback(one, step.action)
    return None


def make_attempt_rollback(step: ResumeStep, action: str) -> RollbackStep:
    """Return the rollback of the attempt at a clustering that is finished afterwards.

    ``action``: the clustering's on the timeline.
    """
    return RollbackStep(
        instant=step.instant,
        action=action,
        files=step.attempt or empty_named_files(),
        writer="foreign",
        rollback=step.rollback,
        because=step.because,
    )


def find_unreviewed(
    step: RollbackStep, planned: RollbackStep, existing: Mapping[File, int]
) -> list[tuple[str, str, str]]:
    """Return what keeps a write, with the reviewed files that stay with it; empty if nothing does.

    ``planned``: the step that the planner makes now.
    """
    named = set(list_pairs(step.files))
    unnamed = set(list_pairs(planned.files)) - named
    reviewed = {(one.partition, one.file_id, one.base_instant) for one in step.appends or ()}
    unnamed |= {
        (one.partition, name)
        for one in planned.appends or ()
        if (one.partition, one.file_id, one.base_instant) not in reviewed
        for name in one.logs
    }
    return explain_left(tuple(named), unnamed, existing) if unnamed else []


def explain_left(
    named: Sequence[File], unnamed: Sequence[File] | set[File], existing: Mapping[File, int]
) -> list[tuple[str, str, str]]:
    """Return the files that keep a write, and the reviewed ones that stay with it, with reasons."""
    stays = [(*file, _KEPT) for file in sorted(set(named) & set(existing) - set(unnamed))]
    return [*stays, *((*file, _UNNAMED) for file in sorted(unnamed))]


def report_finished(fresh: FreshPlan, step: RollbackStep) -> StepOutcome:
    """Return the outcome of a rollback whose write is not pending any more."""
    is_there = any(i.requested == step.instant for i in fresh.state.timeline.instants)
    because = COMPLETED if is_there else _WITHDRAWN
    existing = measure_failed_files(step.instant, fresh.state)
    named = list_pairs(step.files)
    left = [(*file, because) for file in named if file in existing]
    return StepOutcome(
        kind="rollback",
        how="nothing",
        gone=len(named) - len(left),
        left_out=FileReasons.from_rows(left) if left else None,
    )


def list_pairs(files: NamedFiles) -> list[File]:
    """Return partition and name of every file."""
    return list(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))
