"""Compose the plan of one table from the plans of its parts; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.arrays import Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.clean_part import CleanPart, plan_clean_part
from reconciler.planners.costs import add_costs
from reconciler.planners.drift import find_drift
from reconciler.planners.expiry.planner import PartitionExpiry, plan_expiry
from reconciler.planners.observed_table import describe_state
from reconciler.planners.orphans import OrphanPlan, plan_orphans
from reconciler.planners.picture import TablePicture
from reconciler.planners.readable_instants import find_earliest_readable
from reconciler.planners.reader_window import ReaderWindow, find_reader_window, refuse_shrinking
from reconciler.planners.recovery.resume_clustering import (
    ClusteringResumes,
    plan_clustering_resumes,
)
from reconciler.planners.recovery.resume_compaction import (
    plan_compaction_resumes,
    warn_of_compactions,
)
from reconciler.planners.recovery.rollback_clustering import list_abandoned
from reconciler.planners.recovery.rollbacks import plan_all_rollbacks, warn_of_stuck_work
from reconciler.planners.savepoint_costs import report_others
from reconciler.planners.savepoints.planner import SavepointDecision, plan_savepoints
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import (
    Finding,
    Impact,
    Note,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Step,
    StepKind,
    TablePlan,
    rewritten_groups,
)
from reconciler.plans.refusals import (
    refuse_by_spec,
    refuse_by_state,
    refuse_incomplete_spec,
    warn_of_spec,
)
from reconciler.plans.refused_steps import find_refused_kinds, omit_refused_steps
from reconciler.plans.savepoint_step import SavepointReport
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import NextInsert
    from reconciler.planners.archive.planner import ArchiveDecision
    from reconciler.planners.cluster.cluster_plan import ClusterPlan
    from reconciler.planners.compact.planner import CompactionPart
    from reconciler.planners.index.planner import IndexDecision
    from reconciler.planners.metadata.planner import MetadataDecision
    from reconciler.planners.prediction.forecast import Forecast
    from reconciler.plans.file_sizes import FileSizeReport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TableParts:
    """The plans of the parts of a table, and all their steps in the order of execution.

    ``refused``: kinds of steps that guardrails forbid; such steps are shown and not applied.
    """

    window: ReaderWindow | None
    savepoints: SavepointDecision
    clean: CleanPart
    expiry: PartitionExpiry
    forecast: Forecast | None
    cluster: ClusterPlan | None
    resumes: ClusteringResumes
    compaction: CompactionPart | None = None
    index: IndexDecision | None = None
    orphans: OrphanPlan = field(default_factory=OrphanPlan)
    others: tuple[SavepointReport, ...] | None = None
    archive: ArchiveDecision | None = None
    metadata: MetadataDecision | None = None
    rollbacks: tuple[RollbackStep, ...] = ()
    compactions: tuple[ResumeStep, ...] = ()
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

    @property
    def is_leaving(self) -> Mask:
        """Return per file of the table whether no reader sees it after a step that is applied."""
        if "deletePartition" in self.refused:
            return self.is_removed
        leaving: Mask = self.is_removed | self.expiry.is_deleted
        return leaving


def plan_table(
    spec: TableSpec,
    state: TableState,
    now: datetime,
    *,
    next_insert: NextInsert | None = None,
    keeps_savepoints: bool = False,
) -> TablePlan:
    """Return the plan of one table.

    ``now`` has a time zone. ``next_insert``: new rows whose effect on file sizes is simulated.
    ``keeps_savepoints``: a clean respects the savepoints that the plan removes, too: their removal
    may fail.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a zone: datetime(..., tzinfo=...)")
    picture = TablePicture(spec, state, now)
    blocked = refuse_by_state(spec, state, now)
    parts = _plan_parts(picture, now, is_blocked=bool(blocked), keeps_savepoints=keeps_savepoints)
    plan = _build_plan(picture, parts)
    policies = evaluate_policies(plan, spec, now)
    unplannable = (
        *parts.expiry.refusals,
        *(parts.cluster.refusals if parts.cluster else ()),
        *(parts.compaction.refusals if parts.compaction else ()),
    )
    shrinking = refuse_shrinking(parts.window, plan.impact)
    guards = (*shrinking, *refuse_by_spec(spec), *policies.refusals)
    refusals = (*blocked, *unplannable, *guards)
    if find_refused_kinds(refusals) and not blocked:  # else there are no steps to leave out
        refused = find_refused_kinds(guards)
        parts = _leave_refused(picture, parts, find_refused_kinds(unplannable), refused)
        plan = _build_plan(picture, parts)
    file_sizes, size_warnings = _report_file_sizes(picture, next_insert)
    warnings = (*policies.warnings, *_collect_warnings(picture, parts, blocked), *size_warnings)
    plan = replace(plan, file_sizes=file_sizes, refusals=refusals, warnings=warnings)
    return add_costs(plan, spec)


def _build_plan(picture: TablePicture, parts: _TableParts) -> TablePlan:
    """Return the plan of the parts, still without refusals, warnings and file sizes."""
    spec = picture.spec
    return TablePlan(
        name=spec.name,
        path=spec.path,
        spec=spec.document,
        spec_digest=compute_spec_digest(spec.document),
        observed=describe_state(picture),
        drift=_collect_drift(picture, parts),
        steps=parts.steps,
        kept=parts.clean.kept,
        predictions=_predict_reads(picture.state, parts),
        impact=_measure_impact(picture.state, parts.is_removed, parts.applied_steps),
        layout=parts.cluster.layout if parts.cluster else None,
        other_savepoints=parts.others,
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
    return _order_steps(picture, replace(left, compaction=_plan_compaction(picture, cluster)))


def _plan_parts(
    picture: TablePicture, now: datetime, *, is_blocked: bool, keeps_savepoints: bool
) -> _TableParts:
    """Plan every part of a table; a blocked table has no steps."""
    spec, state = picture.spec, picture.state
    resumes = _plan_clustering_resumes(picture, now)
    nothing = np.zeros(len(state.files), np.bool_)
    if is_blocked:
        return _TableParts(
            window=None,
            savepoints=SavepointDecision(savepoints=state.savepoints, kept=state.savepoints),
            clean=CleanPart(is_removed=nothing),
            expiry=PartitionExpiry(is_deleted=nothing),
            forecast=None,
            cluster=None,
            resumes=resumes,
        )
    expiry = plan_expiry(picture)
    picture = replace(picture, expired=expiry.reasons)
    window = find_reader_window(spec, state, now)
    savepoints = plan_savepoints(picture, now)
    planned = state.with_savepoints(savepoints.kept if keeps_savepoints else savepoints.savepoints)
    rollbacks = plan_all_rollbacks(spec, state)
    compactions = plan_compaction_resumes(spec, state)
    ended = {one.instant for one in rollbacks}
    ended |= {one.instant for one in (*resumes.steps, *compactions)}
    clean = plan_clean_part(picture, now, window, planned, ended=ended)
    forecast = None if state.forecast_input is None else _forecast_queries(picture)
    cluster = _plan_cluster(picture, forecast) if spec.rewriting is not None else None
    parts = _TableParts(
        window=window,
        savepoints=savepoints,
        clean=clean,
        expiry=expiry,
        forecast=forecast,
        cluster=cluster,
        compaction=_plan_compaction(picture, cluster),
        resumes=resumes,
        others=report_others(spec, planned, now, window),
        archive=_plan_archive(spec, planned, clean) if state.archival is not None else None,
        rollbacks=rollbacks,
        compactions=compactions,
    )
    return _order_steps(picture, parts)


def _order_steps(picture: TablePicture, parts: _TableParts) -> _TableParts:
    """Return the parts with all their steps in order, and with the index that these steps need."""
    clean, cluster = parts.clean, parts.cluster
    undone = {step.instant for step in parts.rollbacks}
    resumed = [step for step in parts.resumes.steps if step.instant not in undone]
    steps: list[Step | None] = [*clean.resumes, *resumed, *parts.compactions, *parts.rollbacks]
    metadata = _plan_metadata(picture)
    steps += metadata.steps if metadata else ()
    steps += parts.savepoints.steps
    steps += [parts.expiry.step, cluster.step if cluster else None]
    steps += [parts.compaction.step if parts.compaction else None]
    index = None
    if picture.spec.index is not None:
        earlier = omit_refused_steps((step for step in steps if step), parts.refused)
        index = _plan_index(picture, earlier, parts.is_leaving)
    steps += [index.step if index else None, clean.step]
    earlier = omit_refused_steps((step for step in steps if step), parts.refused)
    orphans = plan_orphans(picture, earlier, parts.is_removed)
    steps += [orphans.step, parts.archive.step if parts.archive else None]
    ordered = tuple(step for step in steps if step is not None)
    return replace(parts, index=index, metadata=metadata, orphans=orphans, steps=ordered)


def _collect_drift(picture: TablePicture, parts: _TableParts) -> tuple[Finding, ...]:
    """Return where the table differs from its spec, part by part."""
    unclustered = parts.cluster.unclustered if parts.cluster else None
    return (
        *find_drift(picture.spec, picture.state, parts.clean.excess, unclustered),
        *parts.savepoints.drift,
        *parts.expiry.drift,
        *(parts.cluster.findings if parts.cluster else ()),
        *(parts.compaction.findings if parts.compaction else ()),
        *(parts.forecast.findings if parts.forecast else ()),
        *(parts.index.drift if parts.index else ()),
        *parts.orphans.drift,
        *([parts.archive.finding] if parts.archive and parts.archive.finding else ()),
    )


def _collect_warnings(
    picture: TablePicture, parts: _TableParts, blocked: tuple[Note, ...]
) -> tuple[Note, ...]:
    """Return the warnings of all parts, and those about the spec that no refusal repeats."""
    spec, state = picture.spec, picture.state
    has_cluster_step = parts.cluster is not None and parts.cluster.step is not None
    refused = {note.rule for note in blocked}
    return (
        *parts.savepoints.warnings,
        *parts.clean.warnings,
        *parts.expiry.warnings,
        *(parts.cluster.warnings if parts.cluster else ()),
        *(parts.compaction.warnings if parts.compaction else ()),
        *(parts.forecast.warnings if parts.forecast else ()),
        *(parts.forecast.sample_warnings if parts.forecast and has_cluster_step else ()),
        *(parts.index.warnings if parts.index else ()),
        *(parts.archive.warnings if parts.archive else ()),
        *(parts.metadata.warnings if parts.metadata else ()),
        *parts.resumes.warnings,
        *warn_of_compactions(spec, state, parts.clean.kept),
        *warn_of_stuck_work(spec, state, parts.clean.kept),
        *parts.orphans.warnings,
        *(note for note in refuse_incomplete_spec(spec, state) if note.rule not in refused),
        *warn_of_spec(spec, state),
    )


def _predict_reads(state: TableState, parts: _TableParts) -> tuple[Mapping[str, Any], ...]:
    """Return the predictions that match the steps: without a rewrite nothing changes."""
    if parts.forecast is None or state.forecast_input is None:
        return ()
    from reconciler.planners.prediction.planned_reads import predict_plan  # noqa: PLC0415 (few)

    return predict_plan(parts.forecast, state.forecast_input, parts.steps)


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


def _plan_compaction(picture: TablePicture, cluster: ClusterPlan | None) -> CompactionPart | None:
    if picture.spec.compaction is None:
        return None
    from reconciler.planners.compact.planner import plan_compaction  # noqa: PLC0415 (few specs)

    step = cluster.step if cluster else None
    return plan_compaction(picture, step.groups if step else None)


def _plan_index(picture: TablePicture, steps: Iterable[Step], is_removed: Mask) -> IndexDecision:
    from reconciler.planners.index.planner import plan_index  # noqa: PLC0415 (few tables need it)

    return plan_index(picture, rewritten_groups(steps), is_removed)


def _plan_metadata(picture: TablePicture) -> MetadataDecision | None:
    if picture.spec.metadata is None:
        return None
    from reconciler.planners.metadata.planner import plan_metadata  # noqa: PLC0415 (few specs)

    return plan_metadata(picture.spec, picture.state)


def _plan_archive(spec: TableSpec, planned: TableState, clean: CleanPart) -> ArchiveDecision | None:
    """Plan the archival; ``planned``: the state with the savepoints that it finds."""
    from reconciler.planners.archive.planner import plan_archival  # noqa: PLC0415 (few declare it)

    if spec.timeline is None:
        return None
    newest = clean.find_earliest_to_retain(planned)
    return plan_archival(spec.timeline, spec.retention, planned, [newest] if newest else ())


def _plan_clustering_resumes(picture: TablePicture, now: datetime) -> ClusteringResumes:
    """Return the steps for pending clusterings; warn of foreign ones only if the spec rewrites."""
    spec, state = picture.spec, picture.state
    if not state.pending_clusterings:
        return ClusteringResumes()
    from reconciler.planners.recovery.finish_clustering import plan_clustering_finishes  # noqa: PLC0415 (few tables)

    resumes = plan_clustering_resumes(state, now, list_abandoned(spec, state))
    steps = (*resumes.steps, *plan_clustering_finishes(spec, state))
    in_order = tuple(sorted(steps, key=lambda step: step.instant))
    return ClusteringResumes(steps=in_order, warnings=resumes.warnings if spec.rewriting else ())


def _measure_impact(state: TableState, is_removed: Mask, steps: tuple[Step, ...]) -> Impact:
    before, after = find_earliest_readable(state, is_removed)
    orphans = [step.files.bytes for step in steps if isinstance(step, OrphansStep)]
    return Impact(
        files_removed=int(is_removed.sum()) + sum(map(len, orphans)),
        bytes_removed=int(state.files.size[is_removed].sum() + sum(map(np.sum, orphans))),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten_groups(steps)),
        earliest_readable_before=before,
        earliest_readable_after=after,
    )
