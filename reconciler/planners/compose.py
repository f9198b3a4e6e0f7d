"""Compose the plan of one table from the plans of its parts; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.arrays import Mask
from reconciler.hudi.files.table_files import FileKind
from reconciler.planners.clean import explanations
from reconciler.planners.clean.planner import CleanDecision, plan_clean
from reconciler.planners.drift import ExcessSlices, find_drift
from reconciler.planners.picture import TablePicture
from reconciler.planners.readable_instants import find_earliest_readable
from reconciler.planners.reader_window import ReaderWindow, find_reader_window, refuse_shrinking
from reconciler.planners.recovery.resume_clean import plan_clean_resumes
from reconciler.planners.recovery.resume_clustering import (
    ClusteringResumes,
    plan_clustering_resumes,
)
from reconciler.planners.recovery.rollback_write import plan_rollbacks, warn_of_rollbacks
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import (
    CleanStep,
    Finding,
    Impact,
    KeptFiles,
    Note,
    Observed,
    PendingInstant,
    Step,
    StepKind,
    TablePlan,
    rewritten_groups,
)
from reconciler.plans.refusals import (
    find_timeline_zone,
    format_instant,
    refuse_by_spec,
    refuse_by_state,
    refuse_incomplete_spec,
    warn_of_spec,
)
from reconciler.plans.refused_steps import find_refused_kinds, omit_refused_steps
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.planners.cluster.cluster_plan import ClusterPlan
    from reconciler.planners.index.planner import IndexDecision
    from reconciler.planners.metadata.planner import MetadataDecision
    from reconciler.planners.prediction.forecast import Forecast
    from reconciler.plans.file_sizes import FileSizeReport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CleanPart:
    """The cleans of a plan and their facts. ``is_removed`` is per row of the state's files."""

    resumes: tuple[Step, ...] = ()
    step: CleanStep | None = None
    kept: KeptFiles | None = None
    excess: ExcessSlices | None = None
    warnings: tuple[Note, ...] = ()
    is_removed: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TableParts:
    """The plans of the parts of a table, and all their steps in the order of execution.

    ``refused``: kinds of steps that guardrails forbid; such steps are shown and not applied.
    """

    window: ReaderWindow | None
    clean: _CleanPart
    forecast: Forecast | None
    cluster: ClusterPlan | None
    resumes: ClusteringResumes
    index: IndexDecision | None = None
    metadata: MetadataDecision | None = None
    steps: tuple[Step, ...] = ()
    refused: frozenset[StepKind] = frozenset()

    @property
    def applied_steps(self) -> tuple[Step, ...]:
        return omit_refused_steps(self.steps, self.refused)

    @property
    def is_removed(self) -> Mask:
        """Return per file of the table whether a step that is applied removes it."""
        removed = self.clean.is_removed
        return np.zeros_like(removed) if "clean" in self.refused else removed


def plan_table(
    spec: TableSpec, state: TableState, now: datetime, *, next_insert: NextInsert | None = None
) -> TablePlan:
    """Return the plan of one table.

    ``now`` has a time zone. ``next_insert``: new rows whose effect on file sizes is simulated.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    picture = TablePicture(spec, state, now)
    blocked = refuse_by_state(spec, state, now)
    parts = _plan_parts(picture, now, is_blocked=bool(blocked))
    plan = _build_plan(picture, parts)
    policies = evaluate_policies(plan, spec, now)
    unplannable = parts.cluster.refusals if parts.cluster else ()
    guards = (
        *refuse_shrinking(parts.window, plan.impact),
        *refuse_by_spec(spec),
        *policies.refusals,
    )
    refusals = (*blocked, *unplannable, *guards)
    if find_refused_kinds(refusals) and not blocked:  # else there are no steps to leave out
        refused = find_refused_kinds(guards)
        parts = _leave_refused(picture, parts, find_refused_kinds(unplannable), refused)
        plan = _build_plan(picture, parts)
    file_sizes, size_warnings = _report_file_sizes(picture, next_insert)
    warnings = (*policies.warnings, *_collect_warnings(picture, parts, blocked), *size_warnings)
    return replace(plan, file_sizes=file_sizes, refusals=refusals, warnings=warnings)


def _build_plan(picture: TablePicture, parts: _TableParts) -> TablePlan:
    """Return the plan of the parts, still without refusals, warnings and file sizes."""
    spec = picture.spec
    return TablePlan(
        name=spec.name,
        path=spec.path,
        spec=spec.document,
        spec_digest=compute_spec_digest(spec.document),
        observed=_describe_state(picture),
        drift=_collect_drift(picture, parts),
        steps=parts.steps,
        kept=parts.clean.kept,
        predictions=_choose_predictions(parts),
        impact=_measure_impact(picture.state, parts.is_removed, parts.applied_steps),
        layout=parts.cluster.layout if parts.cluster else None,
    )


def _leave_refused(
    picture: TablePicture,
    parts: _TableParts,
    unplannable: Collection[StepKind],
    refused: frozenset[StepKind],
) -> _TableParts:
    """Return the parts without a clustering that cannot be planned.

    Steps that guardrails refuse stay, so that a reviewer sees what a waiver would let through. The
    index is planned for what the steps that are applied leave.
    """
    cluster, resumes = parts.cluster, parts.resumes
    if "cluster" in unplannable:
        cluster = None if cluster is None else replace(cluster, step=None, layout=None)
        resumes = replace(resumes, steps=())
    left = replace(parts, cluster=cluster, resumes=resumes, refused=refused)
    return _order_steps(picture, left)


def _plan_parts(picture: TablePicture, now: datetime, *, is_blocked: bool) -> _TableParts:
    """Plan every part of a table; a blocked table has no steps."""
    spec, state = picture.spec, picture.state
    resumes = _plan_clustering_resumes(picture, now)
    if is_blocked:
        return _TableParts(
            window=None,
            clean=_CleanPart(is_removed=np.zeros(len(state.files), np.bool_)),
            forecast=None,
            cluster=None,
            resumes=resumes,
        )
    window = find_reader_window(spec, state, now)
    clean = _plan_clean_part(picture, now, window)
    forecast = None if state.forecast_input is None else _forecast_queries(picture)
    cluster = _plan_cluster(picture, forecast) if spec.rewriting is not None else None
    parts = _TableParts(
        window=window, clean=clean, forecast=forecast, cluster=cluster, resumes=resumes
    )
    return _order_steps(picture, parts)


def _order_steps(picture: TablePicture, parts: _TableParts) -> _TableParts:
    """Return the parts with all their steps in order, and with the index that these steps need."""
    clean, cluster = parts.clean, parts.cluster
    rollbacks = plan_rollbacks(picture.state)
    steps: list[Step | None] = [*clean.resumes, *parts.resumes.steps, *rollbacks]
    metadata = None
    if picture.spec.metadata is not None:
        from reconciler.planners.metadata.planner import plan_metadata  # noqa: PLC0415 (few specs)

        metadata = plan_metadata(picture.spec, picture.state)
        steps += metadata.steps
    steps.append(cluster.step if cluster else None)
    index = None
    if picture.spec.index is not None:
        earlier = omit_refused_steps((step for step in steps if step), parts.refused)
        index = _plan_index(picture, earlier, parts.is_removed)
    steps += [index.step if index else None, clean.step]
    return replace(parts, index=index, metadata=metadata, steps=tuple(filter(None, steps)))


def _collect_drift(picture: TablePicture, parts: _TableParts) -> tuple[Finding, ...]:
    """Return where the table differs from its spec, part by part."""
    unclustered = parts.cluster.unclustered if parts.cluster else None
    return (
        *find_drift(picture.spec, picture.state, parts.clean.excess, unclustered),
        *(parts.cluster.findings if parts.cluster else ()),
        *(parts.forecast.findings if parts.forecast else ()),
        *(parts.index.drift if parts.index else ()),
    )


def _collect_warnings(
    picture: TablePicture, parts: _TableParts, blocked: tuple[Note, ...]
) -> tuple[Note, ...]:
    """Return the warnings of all parts, and those about the spec that no refusal repeats."""
    spec, state = picture.spec, picture.state
    has_cluster_step = parts.cluster is not None and parts.cluster.step is not None
    refused = {note.rule for note in blocked}
    return (
        *parts.clean.warnings,
        *(parts.cluster.warnings if parts.cluster else ()),
        *(parts.forecast.warnings if parts.forecast else ()),
        *(parts.forecast.sample_warnings if parts.forecast and has_cluster_step else ()),
        *(parts.index.warnings if parts.index else ()),
        *(parts.metadata.warnings if parts.metadata else ()),
        *parts.resumes.warnings,
        *warn_of_rollbacks(state),
        *(note for note in refuse_incomplete_spec(spec, state) if note.rule not in refused),
        *warn_of_spec(spec, state),
    )


def _choose_predictions(parts: _TableParts) -> tuple[Mapping[str, Any], ...]:
    """Return the predictions that match the plan: without a cluster step nothing changes."""
    if parts.forecast is None:
        return ()
    if parts.cluster is None or parts.cluster.step is None:
        return parts.forecast.predictions_unchanged
    return parts.forecast.predictions


def _forecast_queries(picture: TablePicture) -> Forecast:
    from reconciler.planners.prediction.forecast import (  # noqa: PLC0415 (few specs have queries)
        forecast_queries,
    )

    return forecast_queries(picture)


def _report_file_sizes(
    picture: TablePicture, next_insert: NextInsert | None
) -> tuple[FileSizeReport | None, tuple[Note, ...]]:
    """Return the report on file sizes and warnings about what could not be read."""
    if picture.state.recent_writes is None:
        return None, ()
    from reconciler.planners.prediction.file_sizes import (  # noqa: PLC0415 (not at apply)
        report_file_sizes,
        warn_of_writes,
    )

    return report_file_sizes(picture, next_insert), warn_of_writes(picture.state)


def _plan_cluster(picture: TablePicture, forecast: Forecast | None) -> ClusterPlan:
    from reconciler.planners.cluster.cluster_plan import (  # noqa: PLC0415 (few tables need it)
        plan_cluster_step,
    )

    if forecast is None:
        return plan_cluster_step(picture)
    return plan_cluster_step(picture, forecast.decision, forecast.sampled)


def _plan_index(picture: TablePicture, steps: Iterable[Step], is_removed: Mask) -> IndexDecision:
    from reconciler.planners.index.planner import plan_index  # noqa: PLC0415 (few tables need it)

    return plan_index(picture, rewritten_groups(steps), is_removed)


def _plan_clustering_resumes(picture: TablePicture, now: datetime) -> ClusteringResumes:
    """Return the steps for pending clusterings; warn of foreign ones only if the spec rewrites."""
    if not picture.state.pending_clusterings:
        return ClusteringResumes()
    resumes = plan_clustering_resumes(picture.state, now)
    return resumes if picture.spec.rewriting else replace(resumes, warnings=())


def _plan_clean_part(
    picture: TablePicture, now: datetime, window: ReaderWindow | None
) -> _CleanPart:
    """Plan the pending cleans and the clean of a table's retention block."""
    spec, state, retention = picture.spec, picture.state, picture.spec.retention
    nothing = np.zeros(len(state.files), np.bool_)
    if retention is None:
        return _CleanPart(warnings=_warn_of_unmanaged_cleans(state), is_removed=nothing)
    resumes = plan_clean_resumes(state, spec.concurrency, now, window)
    cutoff = _find_cutoff(spec, state, retention, now)
    decision = plan_clean(retention, state, cutoff=cutoff, resumed=resumes.rows, window=window)
    warnings = (*resumes.warnings, *explanations.warn_of_resumes(retention, decision))
    cleaning = _CleanPart(
        resumes=resumes.steps,
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
        step=decision.step,
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


def _measure_impact(state: TableState, is_removed: Mask, steps: tuple[Step, ...]) -> Impact:
    before, after = find_earliest_readable(state, is_removed)
    return Impact(
        files_removed=int(is_removed.sum()),
        bytes_removed=int(state.files.size[is_removed].sum()),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten_groups(steps)),
        earliest_readable_before=before,
        earliest_readable_after=after,
    )


def _describe_state(picture: TablePicture) -> Observed:
    state, view, small = picture.state, picture.view, picture.file_sizes.small
    files, timeline = state.files, state.timeline
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
