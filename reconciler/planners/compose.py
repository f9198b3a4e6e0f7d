"""The plan of one table: what it is, what must change, in which order and why; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reconciler.diff import Excess, drift
from reconciler.hudi.files import FileKind
from reconciler.hudi.view import View
from reconciler.plan.document import spec_digest
from reconciler.plan.guard import guarded
from reconciler.plan.model import (
    CleanStep,
    Finding,
    Impact,
    IndexStep,
    KeptFiles,
    Note,
    Observed,
    PendingInstant,
    ResumeStep,
    Step,
    TablePlan,
    rewritten,
)
from reconciler.plan.safety import (
    apply_refusals,
    block_warnings,
    guardrail_refusals,
    instant_at,
    needed_by_apply,
    state_refusals,
    timeline_zone,
)
from reconciler.planners import explain
from reconciler.planners.clean import CleanDecision, plan_clean
from reconciler.planners.readable import earliest_readable
from reconciler.planners.resume import plan_resumes
from reconciler.planners.resume_clustering import ClusteringResumes, plan_clustering_resumes
from reconciler.planners.rollback import plan_rollbacks, rollback_warnings
from reconciler.planners.slices import view_of
from reconciler.planners.window import Window, shrinking, window_of
from reconciler.spec.model import FileSizes, Policy, Retention, TableSpec
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.plan.sizes import FileSizeReport
    from reconciler.planners.foresee import Foreseen
    from reconciler.planners.index import IndexDecision
    from reconciler.planners.relayout import Relayout
    from reconciler.sizing.simulate import NextInsert

__all__ = ["apply_refusals", "plan_table"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cleaning:
    """What the retention block comes to. ``is_removed`` is per row of the state's files."""

    steps: tuple[Step, ...] = ()
    kept: KeptFiles | None = None
    excess: Excess | None = None
    warnings: tuple[Note, ...] = ()
    is_removed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))


def plan_table(
    spec: TableSpec, state: TableState, now: datetime, *, insert: NextInsert | None = None
) -> TablePlan:
    """Everything about one table. ``now`` has a zone; nothing else of the world is looked at.

    ``insert``: rows whose way into the files is simulated.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    blocked = state_refusals(spec, state, now)
    view = view_of(state)
    window = None if blocked else window_of(spec, state, now)
    cleaning = _Cleaning(is_removed=np.zeros(len(state.files), np.bool_))
    if not blocked:
        cleaning = _cleaning(spec, state, now, view, window)
    foreseen = None if blocked or state.foresight is None else _foreseen(spec, state, view)
    laid = None if blocked or spec.clustering is None else _laid(spec, state, view, foreseen)
    resumes = _clustering_resumes(spec, state, now)
    found = drift(spec, state, cleaning.excess, laid.misfit if laid else None)
    pending: tuple[Step, ...] = () if blocked else (*resumes.steps, *plan_rollbacks(state))
    steps = _in_order(pending, cleaning.steps, laid)
    indexed = None
    if not blocked and spec.index is not None:
        indexed = _indexed(spec, state, steps, cleaning.is_removed)
        steps = _with_index(steps, indexed.step)
    impact = _impact(state, view, cleaning.is_removed, steps)
    sized, unsized = _sized(spec, state, view, insert)
    plan = TablePlan(
        name=spec.name,
        path=spec.path,
        spec=spec.document,
        spec_digest=spec_digest(spec.document),
        observed=_observed(spec, state, view),
        drift=(
            *(Finding(d.field, d.desired, d.actual, d.because) for d in found),
            *(foreseen.findings if foreseen else ()),
            *(indexed.drift if indexed else ()),
        ),
        steps=steps,
        kept=cleaning.kept,
        predictions=_predictions(foreseen, laid),
        impact=impact,
        layout=laid.layout if laid else None,
        file_sizes=sized,
        refusals=(
            *blocked,
            *(laid.refusals if laid else ()),
            *shrinking(window, impact),
            *guardrail_refusals(spec),
        ),
        warnings=(
            *cleaning.warnings,
            *(laid.warnings if laid else ()),
            *(foreseen.warnings if foreseen else ()),
            *(foreseen.of_sample if foreseen and laid and laid.step else ()),
            *(indexed.warnings if indexed else ()),
            *(*resumes.warnings, *rollback_warnings(state)),
            *(note for note in needed_by_apply(spec, state) if note.rule not in _rules(blocked)),
            *block_warnings(spec, state),
            *unsized,
        ),
    )
    return guarded(plan, spec, now)


def _foreseen(spec: TableSpec, state: TableState, view: View) -> Foreseen:
    from reconciler.planners.decide import known_of  # noqa: PLC0415 - few specs have queries
    from reconciler.planners.foresee import foresee  # noqa: PLC0415

    return foresee(spec, state, view, known_of(spec, state) if spec.clustering else None)


def _predictions(foreseen: Foreseen | None, laid: Relayout | None) -> tuple[Mapping[str, Any], ...]:
    """Those of the plan as it is: without a cluster step nothing changes for a query."""
    if foreseen is None:
        return ()
    return foreseen.predictions if laid is not None and laid.step else foreseen.unchanged


def _sized(
    spec: TableSpec, state: TableState, view: View, insert: NextInsert | None
) -> tuple[FileSizeReport | None, tuple[Note, ...]]:
    """How big the files are, and what could not be found out about them."""
    if state.writes is None:
        return None, ()
    from reconciler.planners.file_sizes import file_sizes, warnings  # noqa: PLC0415 - not at apply

    return file_sizes(spec, state, view, insert), warnings(state)


def _laid(spec: TableSpec, state: TableState, view: View, foreseen: Foreseen | None) -> Relayout:
    from reconciler.planners.relayout import relayout  # noqa: PLC0415 - few tables are clustered

    return relayout(spec, state, view, foreseen)


def _indexed(
    spec: TableSpec, state: TableState, steps: tuple[Step, ...], is_removed: NDArray[np.bool_]
) -> IndexDecision:
    from reconciler.planners.index import plan_index  # noqa: PLC0415 - few tables are indexed

    return plan_index(spec, state, rewritten(steps), is_removed)


def _clustering_resumes(spec: TableSpec, state: TableState, now: datetime) -> ClusteringResumes:
    """What is pending; another writer's concerns nobody whose table is not clustered here."""
    if not state.pending_clusterings:
        return ClusteringResumes()
    found = plan_clustering_resumes(state, now)
    return found if spec.clustering else replace(found, warnings=())


def _in_order(
    pending: tuple[Step, ...], steps: tuple[Step, ...], laid: Relayout | None
) -> tuple[Step, ...]:
    """What is pending, clustering, clean: that removes no newest slice, which is rewritten.

    ``pending``: resumes and rollbacks, beside the resumes among the ``steps`` of the retention.
    """
    first = [step for step in steps if isinstance(step, ResumeStep)]
    clustering = () if laid is None or laid.step is None else (laid.step,)
    return (*first, *pending, *clustering, *steps[len(first) :])


def _with_index(steps: tuple[Step, ...], index: IndexStep | None) -> tuple[Step, ...]:
    """The index comes after what writes files, and before the clean."""
    if index is None:
        return steps
    first = [step for step in steps if not isinstance(step, CleanStep)]
    return (*first, index, *(step for step in steps if isinstance(step, CleanStep)))


def _rules(notes: tuple[Note, ...]) -> set[str]:
    return {note.rule for note in notes}


def _cleaning(
    spec: TableSpec, state: TableState, now: datetime, view: View, window: Window | None
) -> _Cleaning:
    retention = spec.retention
    nothing = np.zeros(len(state.files), np.bool_)
    if retention is None:
        return _Cleaning(warnings=_unmanaged(state), is_removed=nothing)
    resumes = plan_resumes(state, spec.concurrency, now, window)
    cutoff = _cutoff(spec, state, retention, now)
    decision = plan_clean(
        retention, state, cutoff=cutoff, resumed=resumes.rows, view=view, window=window
    )
    warnings = (*resumes.warnings, *explain.of_resumes(retention, decision))
    cleaning = _Cleaning(
        steps=resumes.steps,
        excess=_excess(decision, cutoff),
        warnings=warnings,
        is_removed=resumes.rows,
    )
    if resumes.is_blocked:
        return cleaning
    gate = explain.closed_gate(retention, state)
    if gate is not None:
        return replace(cleaning, warnings=(*warnings, gate))
    return replace(
        cleaning,
        steps=(*resumes.steps, *([decision.step] if decision.step else [])),
        kept=decision.kept,
        warnings=(*warnings, *explain.warnings(retention, state, decision)),
        is_removed=resumes.rows | decision.is_removed,
    )


def _unmanaged(state: TableState) -> tuple[Note, ...]:
    """Without a retention block nothing is removed, not even what a pending clean names."""
    return tuple(
        Note(
            "pendingClean",
            f"clean {clean.instant} is {clean.state.lower()} and stays so: the spec has no "
            "retention block",
        )
        for clean in state.pending_cleans
    )


def _cutoff(spec: TableSpec, state: TableState, retention: Retention, now: datetime) -> str | None:
    if retention.policy is not Policy.HOURS:
        return None
    zone = timeline_zone(spec, state)
    assert zone is not None, "a missing zone is refused before"
    return instant_at(now - timedelta(hours=retention.keep), zone)


def _excess(decision: CleanDecision, cutoff: str | None) -> Excess | None:
    """The slices beyond the policy that neither savepoints nor pending plans hold."""
    view = decision.view
    rows = decision.is_removed | (decision.is_kept & ~decision.guard.is_protected[view.slice_of])
    if not rows.any():
        return None
    beyond = np.zeros(len(view), np.bool_)
    beyond[view.slice_of[rows]] = True
    return Excess(
        slices=int(beyond.sum()),
        files=int(rows.sum()),
        oldest=view.times[int(view.key[beyond].min())],
        versions=int(view.rank[view.is_visible & view.is_live].max(initial=-1)) + 1,
        cutoff=cutoff,
    )


def _impact(
    state: TableState, view: View, is_removed: NDArray[np.bool_], steps: tuple[Step, ...]
) -> Impact:
    before, after = earliest_readable(state, view, is_removed)
    return Impact(
        files_removed=int(is_removed.sum()),
        bytes_removed=int(state.files.size[is_removed].sum()),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten(steps)),
        earliest_readable_before=before,
        earliest_readable_after=after,
    )


def _observed(spec: TableSpec, state: TableState, view: View) -> Observed:
    files, timeline = state.files, state.timeline
    small = (spec.files or FileSizes()).small
    is_read = (view.is_newest & view.is_live)[view.slice_of] & (files.kind == FileKind.BASE)
    completed = [i.requested for i in timeline.instants if i.is_completed]
    return Observed(
        table_version=state.table_version,
        table_type=state.table_type,
        last_completed=max(completed, default=None),
        pending=tuple(
            PendingInstant(i.requested, i.action.value, i.state.value)
            for i in timeline.instants
            if not i.is_completed
        ),
        savepoints=tuple(s.instant for s in state.savepoints if s.completed),
        files=len(files),
        bytes=int(files.size.sum()),
        small_files=int((is_read & (files.size < small)).sum()),
    )
