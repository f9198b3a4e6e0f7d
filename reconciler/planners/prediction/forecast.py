"""Forecast what the declared queries read before and after a clustering; pure.

A query that reads more than its ``maxScan`` is a reason to rewrite groups of file slices, if a
simulated rewrite shows that it reads less (``group_benefit``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from reconciler.hudi.files.view import FileView
from reconciler.layout.curves.pseudo_random import count_sample_rows
from reconciler.layout.curves.row_layout import needed_sample_rows
from reconciler.planners.cluster.candidates import find_candidates
from reconciler.planners.cluster.known_statistics import (
    KnownStatistics,
    collect_statistics,
    decide_clustering,
)
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.prediction.current_reads import (
    CurrentReads,
    MaxScanDemand,
    find_demand,
    measure_reads,
)
from reconciler.planners.prediction.group_benefit import GroupBenefit, find_past_result
from reconciler.planners.prediction.layout_candidates import warn_of_unknown_columns
from reconciler.planners.prediction.predicted_reads import (
    ForecastContext,
    PredictedReads,
    SimulationCache,
    build_groups,
)
from reconciler.planners.prediction.query_report import QueryReport, build_predictions
from reconciler.planners.prediction.sampled_group import SimulatedGroup
from reconciler.planners.protection import build_table_view
from reconciler.plans.model import Finding, Note, Sampled
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.sampling.model import SampleRequest

#: rule of the plan's warning about predictions
_RULE: Final = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """What is known about the declared queries.

    ``decision``: None without a clustering block. ``predictions``: those of a plan with clustering;
    ``predictions_unchanged``: those without. ``findings``: queries over their ``maxScan``.
    ``sample_warnings``: only for a plan with clustering. ``sampled``: the sample behind the
    predictions, or None.
    """

    decision: ClusteringDecision | None = None
    predictions: tuple[dict[str, Any], ...] = ()
    predictions_unchanged: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()
    sample_warnings: tuple[Note, ...] = ()
    sampled: Sampled | None = None


def choose_samples(
    spec: TableSpec, state: TableState, *, only_max_scan: bool = False
) -> tuple[SampleRequest, ...]:
    """Return the base files to sample, group by group.

    ``only_max_scan``: sample only if the result decides about steps.
    """
    if (
        spec.clustering is None
        or state.forecast_input is None
        or state.forecast_input.index is None
    ):
        return ()
    view = build_table_view(state)
    now = measure_reads(spec, state.forecast_input, find_candidates(state, view))
    if now is None:
        return ()
    known = collect_statistics(spec, state)
    scans = _find_max_scan(spec, now)
    if only_max_scan and scans is None:
        return ()
    decision = decide_clustering(spec, state, view, known, scans)
    look = ForecastContext(spec, state, state.forecast_input, known, now, view)
    return tuple(
        _build_request(group) for group in build_groups(look, decision) if len(group.members)
    )


def _build_request(group: SimulatedGroup) -> SampleRequest:
    total = float(group.sizes.sum()) or 1.0
    rows = needed_sample_rows(group.outputs)
    wanted = [count_sample_rows(rows, size, total) for size in group.sizes.tolist()]
    return SampleRequest(files=group.members, fit_rows=np.array(wanted, np.int64))


def forecast_queries(
    spec: TableSpec, state: TableState, view: FileView, statistics: KnownStatistics | None
) -> Forecast:
    """Decide about a clustering with regard to the queries, and forecast what they read.

    ``statistics`` is None if the spec has no clustering block.
    """
    foresight = state.forecast_input
    decision = None if statistics is None else decide_clustering(spec, state, view, statistics)
    if foresight is None:
        return Forecast(decision=decision)
    found = find_candidates(state, view) if decision is None else decision.candidates
    doubts = tuple(Note(doubt.rule, doubt.because) for doubt in foresight.warnings)
    if foresight.schema.names:
        doubts = (*warn_of_unknown_columns(spec.queries, foresight.schema), *doubts)
    now = measure_reads(spec, foresight, found)
    if now is None:
        return Forecast(decision=decision, warnings=doubts)
    if decision is None or statistics is None:
        same = build_predictions(now, None)
        notes = (*doubts, *QueryReport(current=now, forecast_input=foresight).warn_of_unreached())
        return Forecast(predictions=same, predictions_unchanged=same, warnings=notes)
    return _forecast_clustering(
        ForecastContext(spec, state, foresight, statistics, now, view), decision, doubts
    )


def _forecast_clustering(
    look: ForecastContext, first: ClusteringDecision, doubts: tuple[Note, ...]
) -> Forecast:
    miniatures = SimulationCache(look.build_question(first.layout))
    scans = _find_max_scan(look.spec, look.current)
    decision, tried = first, None
    if scans is not None:
        trial = look.decide_clustering(scans)
        tried = PredictedReads.predict(look, trial, miniatures)
        judge = GroupBenefit.build(look, miniatures, trial.candidates, tried)
        decision = look.decide_clustering(replace(scans, gains=judge))
    after = PredictedReads.predict(look, decision, miniatures)
    says = QueryReport(
        current=look.current,
        forecast_input=look.forecast_input,
        decision=decision,
        predicted=after,
        predicted_if_all=tried,
        memory=find_past_result(look, first.layout),
    )
    is_rewritten, sampled = bool(after.by_group), look.forecast_input.sample
    same = build_predictions(look.current, None)
    then = build_predictions(look.current, after) if is_rewritten else same
    return Forecast(
        decision=decision,
        predictions=() if after.is_unknown else then,
        predictions_unchanged=same,
        findings=tuple(says.find_drift()),
        warnings=(*doubts, *says.warn_of_unreached()),
        sample_warnings=tuple(_warn_of_sample(after)),
        sampled=Sampled(
            row_groups=sampled.groups, total_row_groups=sampled.total_groups, rows=len(sampled.rows)
        )
        if is_rewritten and sampled is not None
        else None,
    )


def _warn_of_sample(after: PredictedReads) -> Iterator[Note]:
    if after.is_unknown:
        yield Note(
            _RULE,
            "reads after the clustering are not predicted: no row of the files to rewrite could be "
            "sampled",
        )
    elif after.has_logs:
        yield Note(
            _RULE,
            "only base files were sampled: the predictions do not include what log files change",
        )


def _find_max_scan(spec: TableSpec, now: CurrentReads) -> MaxScanDemand | None:
    """Return what to rewrite for queries over ``maxScan``; None under ``when: always``."""
    clustering = spec.clustering
    if clustering is None or clustering.when.always or not clustering.columns:
        return None
    return find_demand(now)
