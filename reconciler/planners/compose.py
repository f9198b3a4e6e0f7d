"""Compose the plan of one table from the plans of its parts; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView
from reconciler.planners.clean import explanations
from reconciler.planners.clean.planner import CleanDecision, plan_clean
from reconciler.planners.drift import ExcessSlices, find_drift
from reconciler.planners.protection import build_table_view
from reconciler.planners.readable_instants import find_earliest_readable
from reconciler.planners.reader_window import ReaderWindow, find_reader_window, refuse_shrinking
from reconciler.planners.recovery.resume_clean import plan_clean_resumes
from reconciler.planners.recovery.resume_clustering import (
    ClusteringResumes,
    plan_clustering_resumes,
)
from reconciler.planners.recovery.rollback_write import plan_rollbacks, warn_of_rollbacks
from reconciler.plans.document import compute_spec_digest
from reconciler.plans.guardrails import apply_policies
from reconciler.plans.model import (
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
    rewritten_groups,
)
from reconciler.plans.refusals import (
    find_timeline_zone,
    format_instant,
    refuse_apply,
    refuse_by_spec,
    refuse_by_state,
    refuse_incomplete_spec,
    warn_of_spec,
)
from reconciler.spec.model import FileSizes, Policy, Retention, TableSpec
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.planners.cluster.cluster_plan import ClusterPlan
    from reconciler.planners.index.planner import IndexDecision
    from reconciler.planners.prediction.forecast import Forecast
    from reconciler.plans.file_sizes import FileSizeReport

__all__ = ["plan_table", "refuse_apply"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CleanPart:
    """The steps of the retention block. ``is_removed`` is per row of the state's files."""

    steps: tuple[Step, ...] = ()
    kept: KeptFiles | None = None
    excess: ExcessSlices | None = None
    warnings: tuple[Note, ...] = ()
    is_removed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))


def plan_table(
    spec: TableSpec, state: TableState, now: datetime, *, next_insert: NextInsert | None = None
) -> TablePlan:
    """Return the plan of one table.

    ``now`` has a time zone. ``next_insert``: new rows whose effect on file sizes is simulated.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    blocked = refuse_by_state(spec, state, now)
    view = build_table_view(state)
    window = None if blocked else find_reader_window(spec, state, now)
    cleaning = _CleanPart(is_removed=np.zeros(len(state.files), np.bool_))
    if not blocked:
        cleaning = _plan_clean_part(spec, state, now, view, window)
    foreseen = None if blocked or state.forecast_input is None else _forecast(spec, state, view)
    laid = (
        None if blocked or spec.clustering is None else _plan_cluster(spec, state, view, foreseen)
    )
    resumes = _plan_clustering_resumes(spec, state, now)
    found = find_drift(spec, state, cleaning.excess, laid.unclustered if laid else None)
    pending: tuple[Step, ...] = () if blocked else (*resumes.steps, *plan_rollbacks(state))
    steps = _order_steps(pending, cleaning.steps, laid)
    indexed = None
    if not blocked and spec.index is not None:
        indexed = _plan_index(spec, state, steps, cleaning.is_removed)
        steps = _insert_index_step(steps, indexed.step)
    impact = _measure_impact(state, view, cleaning.is_removed, steps)
    sized, unsized = _report_file_sizes(spec, state, view, next_insert)
    plan = TablePlan(
        name=spec.name,
        path=spec.path,
        spec=spec.document,
        spec_digest=compute_spec_digest(spec.document),
        observed=_describe_state(spec, state, view),
        drift=(
            *(Finding(d.field, d.desired, d.actual, d.because) for d in found),
            *(foreseen.findings if foreseen else ()),
            *(indexed.drift if indexed else ()),
        ),
        steps=steps,
        kept=cleaning.kept,
        predictions=_choose_predictions(foreseen, laid),
        impact=impact,
        layout=laid.layout if laid else None,
        file_sizes=sized,
        refusals=(
            *blocked,
            *(laid.refusals if laid else ()),
            *refuse_shrinking(window, impact),
            *refuse_by_spec(spec),
        ),
        warnings=(
            *cleaning.warnings,
            *(laid.warnings if laid else ()),
            *(foreseen.warnings if foreseen else ()),
            *(foreseen.sample_warnings if foreseen and laid and laid.step else ()),
            *(indexed.warnings if indexed else ()),
            *(*resumes.warnings, *warn_of_rollbacks(state)),
            *(
                note
                for note in refuse_incomplete_spec(spec, state)
                if note.rule not in _rule_names(blocked)
            ),
            *warn_of_spec(spec, state),
            *unsized,
        ),
    )
    return apply_policies(plan, spec, now)


def _forecast(spec: TableSpec, state: TableState, view: FileView) -> Forecast:
    from reconciler.planners.cluster.known_statistics import collect_statistics  # noqa: PLC0415 - few specs have queries
    from reconciler.planners.prediction.forecast import forecast_queries  # noqa: PLC0415

    return forecast_queries(
        spec, state, view, collect_statistics(spec, state) if spec.clustering else None
    )


def _choose_predictions(
    foreseen: Forecast | None, laid: ClusterPlan | None
) -> tuple[Mapping[str, Any], ...]:
    """Return the predictions that match the plan: without a cluster step nothing changes."""
    if foreseen is None:
        return ()
    return (
        foreseen.predictions if laid is not None and laid.step else foreseen.predictions_unchanged
    )


def _report_file_sizes(
    spec: TableSpec, state: TableState, view: FileView, insert: NextInsert | None
) -> tuple[FileSizeReport | None, tuple[Note, ...]]:
    """Return the report on file sizes and warnings about what could not be read."""
    if state.recent_writes is None:
        return None, ()
    from reconciler.planners.prediction.file_sizes import report_file_sizes, warn_of_writes  # noqa: PLC0415 - not at apply

    return report_file_sizes(spec, state, view, insert), warn_of_writes(state)


def _plan_cluster(
    spec: TableSpec, state: TableState, view: FileView, foreseen: Forecast | None
) -> ClusterPlan:
    from reconciler.planners.cluster.cluster_plan import plan_cluster_step  # noqa: PLC0415 - few tables are clustered

    return plan_cluster_step(spec, state, view, foreseen)


def _plan_index(
    spec: TableSpec, state: TableState, steps: tuple[Step, ...], is_removed: NDArray[np.bool_]
) -> IndexDecision:
    from reconciler.planners.index.planner import plan_index  # noqa: PLC0415 - few tables are indexed

    return plan_index(spec, state, rewritten_groups(steps), is_removed)


def _plan_clustering_resumes(
    spec: TableSpec, state: TableState, now: datetime
) -> ClusteringResumes:
    """Return the steps for pending clusterings; warn of foreign ones only if the spec clusters."""
    if not state.pending_clusterings:
        return ClusteringResumes()
    found = plan_clustering_resumes(state, now)
    return found if spec.clustering else replace(found, warnings=())


def _order_steps(
    pending: tuple[Step, ...], steps: tuple[Step, ...], laid: ClusterPlan | None
) -> tuple[Step, ...]:
    """Return the steps in execution order: resumes, rollbacks, clustering, clean.

    ``pending``: resumed clusterings and rollbacks; ``steps`` has the resumed cleans and the clean.
    """
    first = [step for step in steps if isinstance(step, ResumeStep)]
    clustering = () if laid is None or laid.step is None else (laid.step,)
    return (*first, *pending, *clustering, *steps[len(first) :])


def _insert_index_step(steps: tuple[Step, ...], index: IndexStep | None) -> tuple[Step, ...]:
    """Insert the index step after the steps that write files and before the clean."""
    if index is None:
        return steps
    first = [step for step in steps if not isinstance(step, CleanStep)]
    return (*first, index, *(step for step in steps if isinstance(step, CleanStep)))


def _rule_names(notes: tuple[Note, ...]) -> set[str]:
    return {note.rule for note in notes}


def _plan_clean_part(
    spec: TableSpec, state: TableState, now: datetime, view: FileView, window: ReaderWindow | None
) -> _CleanPart:
    retention = spec.retention
    nothing = np.zeros(len(state.files), np.bool_)
    if retention is None:
        return _CleanPart(warnings=_warn_of_unmanaged_cleans(state), is_removed=nothing)
    resumes = plan_clean_resumes(state, spec.concurrency, now, window)
    cutoff = _find_cutoff(spec, state, retention, now)
    decision = plan_clean(
        retention, state, cutoff=cutoff, resumed=resumes.rows, view=view, window=window
    )
    warnings = (*resumes.warnings, *explanations.warn_of_resumes(retention, decision))
    cleaning = _CleanPart(
        steps=resumes.steps,
        excess=_find_excess(decision, cutoff),
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
        steps=(*resumes.steps, *([decision.step] if decision.step else [])),
        kept=decision.kept,
        warnings=(*warnings, *explanations.collect_warnings(retention, state, decision)),
        is_removed=resumes.rows | decision.is_removed,
    )


def _warn_of_unmanaged_cleans(state: TableState) -> tuple[Note, ...]:
    """Warn that pending cleans are not resumed, because the spec has no retention block."""
    return tuple(
        Note(
            "pendingClean",
            f"clean {clean.instant} is {clean.state.lower()} and is not resumed: the spec has no "
            "retention block",
        )
        for clean in state.pending_cleans
    )


def _find_cutoff(
    spec: TableSpec, state: TableState, retention: Retention, now: datetime
) -> str | None:
    if retention.policy is not Policy.HOURS:
        return None
    zone = find_timeline_zone(spec, state)
    assert zone is not None, "a missing zone is refused before"
    return format_instant(now - timedelta(hours=retention.keep), zone)


def _find_excess(decision: CleanDecision, cutoff: str | None) -> ExcessSlices | None:
    """Return the slices past retention that neither savepoints nor pending plans keep."""
    view = decision.view
    rows = decision.is_removed | (
        decision.is_kept & ~decision.protection.is_protected[view.row_slice]
    )
    if not rows.any():
        return None
    beyond = np.zeros(len(view), np.bool_)
    beyond[view.row_slice[rows]] = True
    return ExcessSlices(
        slices=int(beyond.sum()),
        files=int(rows.sum()),
        oldest=view.times[int(view.key[beyond].min())],
        versions=int(view.rank[view.is_visible & view.is_live].max(initial=-1)) + 1,
        cutoff=cutoff,
    )


def _measure_impact(
    state: TableState, view: FileView, is_removed: NDArray[np.bool_], steps: tuple[Step, ...]
) -> Impact:
    before, after = find_earliest_readable(state, view, is_removed)
    return Impact(
        files_removed=int(is_removed.sum()),
        bytes_removed=int(state.files.size[is_removed].sum()),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten_groups(steps)),
        earliest_readable_before=before,
        earliest_readable_after=after,
    )


def _describe_state(spec: TableSpec, state: TableState, view: FileView) -> Observed:
    files, timeline = state.files, state.timeline
    small = (spec.files or FileSizes()).small
    is_read = (view.is_newest & view.is_live)[view.row_slice] & (files.kind == FileKind.BASE)
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
