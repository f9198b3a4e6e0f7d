"""Find the kinds of steps that refusals forbid, and leave out such steps; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    Note,
    ResumeStep,
    Step,
    StepKind,
)


def find_refused_kinds(refusals: Iterable[Note]) -> frozenset[StepKind]:
    """Return the kinds of steps that refusals forbid while other work may go on."""
    return frozenset(refusal.step for refusal in refusals if refusal.step is not None)


def omit_refused_steps(steps: Iterable[Step], kinds: Collection[StepKind]) -> tuple[Step, ...]:
    """Return the steps whose kind is not refused, in their order."""
    return tuple(step for step in steps if _find_kind(step) not in kinds)


def _find_kind(step: Step) -> StepKind | None:
    """Return the kind of a step; a resume has that of what it finishes, a rollback has none."""
    match step:
        case ResumeStep():
            return "clean" if step.action == "clean" else "cluster"
        case ClusterStep() | IndexStep() | CleanStep():
            return step.kind
        case _:
            return None
