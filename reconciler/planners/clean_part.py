"""Plan all that removes files of expired file slices: pending cleans, and a new one; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from datetime import datetime

import numpy as np

from reconciler.arrays import Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.clean import explanations
from reconciler.planners.clean.boundary import find_cutoff
from reconciler.planners.clean.excess import find_excess
from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.drift import ExcessSlices
from reconciler.planners.picture import TablePicture
from reconciler.planners.reader_window import ReaderWindow
from reconciler.planners.recovery.resume_clean import plan_clean_resumes
from reconciler.plans.model import CleanStep, KeptFiles, Note, ResumeStep, Step
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanPart:
    """The cleans of a plan and their facts. ``is_removed`` is per row of the state's files."""

    resumes: tuple[Step, ...] = ()
    step: CleanStep | None = None
    kept: KeptFiles | None = None
    excess: ExcessSlices | None = None
    warnings: tuple[Note, ...] = ()
    is_removed: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))

    def find_earliest_to_retain(self, state: TableState) -> str | None:
        """Return the earliest instant to retain of the newest clean that is executed, or None."""
        if self.step is not None:
            return self.step.earliest_instant_to_retain
        resumed = {step.instant for step in self.resumes if isinstance(step, ResumeStep)}
        cleans = [clean for clean in state.pending_cleans if clean.instant in resumed]
        newest = max(cleans, key=lambda clean: clean.instant, default=None)
        return newest.earliest_instant_to_retain if newest else None


def plan_clean_part(
    picture: TablePicture,
    now: datetime,
    window: ReaderWindow | None,
    planned: TableState,
    *,
    ended: Collection[str] = (),
) -> CleanPart:
    """Plan the pending cleans and the clean of a table's retention block.

    ``planned``: the state with the savepoints that a clean finds; a pending one goes on before.
    ``ended``: pending writes that other steps of the plan finish or roll back.
    """
    spec, state, retention = picture.spec, picture.state, picture.spec.retention
    nothing = np.zeros(len(state.files), np.bool_)
    if retention is None:
        return CleanPart(warnings=_warn_of_unmanaged_cleans(spec, state), is_removed=nothing)
    resumes = plan_clean_resumes(state, spec.concurrency, now, window)
    cutoff = find_cutoff(spec, state, now)
    decision = plan_clean(retention, planned, cutoff=cutoff, resumed=resumes.rows, window=window)
    warnings = (*resumes.warnings, *explanations.warn_of_resumes(retention, decision))
    cleaning = CleanPart(
        resumes=resumes.steps,
        excess=find_excess(decision, cutoff),
        warnings=warnings,
        is_removed=resumes.rows,
    )
    if resumes.is_blocked:
        return cleaning
    gate = explanations.check_after_commits(retention, state)
    if gate is not None:
        return replace(cleaning, warnings=(*warnings, gate))
    return replace(
        cleaning,
        step=decision.step,
        kept=decision.kept,
        warnings=(*warnings, *explanations.collect_warnings(retention, planned, decision, ended)),
        is_removed=resumes.rows | decision.is_removed,
    )


def _warn_of_unmanaged_cleans(spec: TableSpec, state: TableState) -> tuple[Note, ...]:
    """Warn that pending cleans are not resumed, because the spec declares no cleans."""
    has_block = spec.partition_retention is not None
    why = "retention has no count" if has_block else "the spec has no retention block"
    return tuple(
        Note(
            "pendingClean",
            f"clean {clean.instant} is {clean.state.lower()} and is not resumed: {why}",
        )
        for clean in state.pending_cleans
    )
