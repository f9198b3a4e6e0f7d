"""Find the kinds of steps that refusals forbid, and leave out such steps; pure.

A plan shows a step that a guardrail refuses, so that a reviewer sees what a waiver would let
through. Whatever is applied or summed up asks here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    MetadataStep,
    Note,
    OrphansStep,
    ResumeStep,
    Step,
    StepKind,
    TablePlan,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.savepoint_step import SavepointStep

_KIND_OF_RESUMED: Final[Mapping[str, StepKind]] = {
    "clean": "clean",
    "clustering": "cluster",
    "compaction": "compact",
}


def find_refused_kinds(refusals: Iterable[Note]) -> frozenset[StepKind]:
    """Return the kinds of steps that refusals forbid while other work may go on."""
    return frozenset(refusal.step for refusal in refusals if refusal.step is not None)


def omit_refused_steps(steps: Iterable[Step], kinds: Collection[StepKind]) -> tuple[Step, ...]:
    """Return the steps whose kind is not refused, in their order."""
    return tuple(step for step in steps if _find_kind(step) not in kinds)


def list_applied_steps(table: TablePlan) -> tuple[Step, ...]:
    """Return the steps that no refusal of the plan forbids: none of a blocked table."""
    if table.is_blocked:
        return ()
    return omit_refused_steps(table.steps, find_refused_kinds(table.refusals))


def find_refusals(step: Step, refusals: Iterable[Note]) -> tuple[Note, ...]:
    """Return the refusals that forbid steps of this kind alone."""
    kind = _find_kind(step)
    return tuple(note for note in refusals if note.step is not None and note.step == kind)


def _find_kind(step: Step) -> StepKind | None:
    """Return the kind of a step; a resume has that of what it finishes, a rollback has none."""
    match step:
        case ResumeStep():
            return _KIND_OF_RESUMED[step.action]
        case (
            MetadataStep()
            | SavepointStep()
            | DeletePartitionStep()
            | ClusterStep()
            | CompactStep()
            | IndexStep()
            | CleanStep()
            | OrphansStep()
            | ArchiveStep()
        ):
            return step.kind
        case _:
            return None
