"""Forecast what the declared queries read before and after a clustering; pure.

A query that reads more than its ``maxScan`` is a reason to rewrite groups of file slices, if a
simulated rewrite shows that it reads less (``group_benefit``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from reconciler.layout.curves.row_layout import needed_sample_rows
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.clustering_input import MaxScanDemand, SimulatedGains
from reconciler.planners.cluster.planner import ClusteringDecision, decide_clustering
from reconciler.planners.newest_slices import CandidateSlices, find_candidates
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.current_reads import CurrentReads, find_demand, measure_reads
from reconciler.planners.prediction.group_benefit import GroupBenefit, find_past_result
from reconciler.planners.prediction.layout_candidates import warn_of_unknown_columns
from reconciler.planners.prediction.predicted_reads import (
    ForecastContext,
    PredictedReads,
    SimulationCache,
    build_groups,
)
from reconciler.planners.prediction.query_report import QueryReport, build_predictions
from reconciler.planners.prediction.simulated_gain import has_candidates, simulate_gains
from reconciler.plans.layout_change import Sampled
from reconciler.plans.model import Finding, Note
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.state.sampling.model import RowSample, SampleRequest

#: rule of the plan's warning about predictions
_RULE: Final = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """The current and predicted reads of the declared queries.

    ``decision``: None if no rewrite is declared. ``predictions``: those of a plan with a rewrite;
    ``predictions_unchanged``: those without. ``findings``: queries over their ``maxScan``.
    ``sample_warnings``: only for a plan with clustering. ``sampled``: the sample behind the
    predictions, or None. ``current``, ``slices``: what queries read of which slices today, None if
    it is unknown.
    """

    decision: ClusteringDecision | None = None
    predictions: tuple[dict[str, Any], ...] = ()
    predictions_unchanged: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Note, ...] = ()
    sample_warnings: tuple[Note, ...] = ()
    sampled: Sampled | None = None
    current: CurrentReads | None = None
    slices: CandidateSlices | None = None


def choose_samples(
    spec: TableSpec, state: TableState, *, only_max_scan: bool = False
) -> tuple[SampleRequest, ...]:
    """Return the base files to sample, group by group.

    ``only_max_scan``: sample only if the result decides about steps.
    """
    picture, forecast_input = TablePicture(spec, state), state.forecast_input
    if not picture.can_rewrite or forecast_input is None or forecast_input.index is None:
        return ()
    current = measure_reads(spec, forecast_input, find_candidates(state))
    if current is None:
        return ()
    max_scan = _find_max_scan(spec, current)
    context = ForecastContext(picture, forecast_input, current)
    trial = decide_clustering(picture, max_scan, SimulatedGains())
    if only_max_scan and max_scan is None and not has_candidates(trial):
        return ()
    groups = build_groups(context, trial)
    return tuple(
        group.request_rows(needed_sample_rows(group.outputs) if trial.layout.columns else 1)
        for group in groups
        if len(group.members)
    )


def forecast_queries(picture: TablePicture) -> Forecast:
    """Decide about a rewrite with regard to the queries, and forecast what they read.

    For file sizes alone the queries decide nothing, and their reads are forecast all the same.
    """
    spec, forecast_input = picture.spec, picture.state.forecast_input
    decision = decide_clustering(picture) if picture.can_rewrite else None
    if forecast_input is None:
        return Forecast(decision=decision)
    candidates = find_candidates(picture.state) if decision is None else decision.candidates
    warnings = tuple(Note(warning.rule, warning.because) for warning in forecast_input.warnings)
    if forecast_input.schema.names:
        warnings = (*warn_of_unknown_columns(spec.queries, forecast_input.schema), *warnings)
    current = measure_reads(spec, forecast_input, candidates)
    if current is None:
        return Forecast(decision=decision, warnings=warnings)
    if decision is None:
        same = build_predictions(current, None)
        report = QueryReport(
            current=current,
            forecast_input=forecast_input,
            compacts=spec.compaction is not None,
        )
        notes = (*warnings, *report.warn_of_unreached())
        return Forecast(
            predictions=same,
            predictions_unchanged=same,
            warnings=notes,
            current=current,
            slices=candidates,
        )
    context = ForecastContext(picture, forecast_input, current)
    return _forecast_clustering(context, decision, warnings)


def _forecast_clustering(
    context: ForecastContext, first: ClusteringDecision, warnings: tuple[Note, ...]
) -> Forecast:
    """Return the forecast with a rewrite; ``first``: the decision without regard to queries."""
    simulations = SimulationCache(context.build_question(first.layout))
    max_scan = _find_max_scan(context.picture.spec, context.current)
    trial = first
    if max_scan is not None or first.gains is not None:
        trial = decide_clustering(context.picture, max_scan, SimulatedGains())
    gains = simulate_gains(context, trial, simulations)
    decision, predicted_if_all = first, None
    if gains is not None:
        decision = decide_clustering(context.picture, None, gains)
    if max_scan is not None:
        trial = decide_clustering(context.picture, max_scan, gains)
        predicted_if_all = PredictedReads.predict(context, trial, simulations)
        benefit = GroupBenefit.build(context, simulations, trial.candidates, predicted_if_all)
        decision = decide_clustering(context.picture, replace(max_scan, gains=benefit), gains)
    predicted = PredictedReads.predict(context, decision, simulations)
    report = QueryReport(
        current=context.current,
        forecast_input=context.forecast_input,
        decision=decision,
        is_for_sizes=context.picture.spec.clustering is None,
        predicted=predicted,
        predicted_if_all=predicted_if_all,
        memory=find_past_result(context, first.layout),
        compacts=context.picture.spec.compaction is not None,
    )
    is_rewritten, sample = bool(predicted.by_group), context.forecast_input.sample
    unchanged = build_predictions(context.current, None)
    changed = build_predictions(context.current, predicted) if is_rewritten else unchanged
    return Forecast(
        decision=decision,
        predictions=() if predicted.is_unknown else changed,
        predictions_unchanged=unchanged,
        findings=tuple(report.find_drift()),
        warnings=(*warnings, *report.warn_of_unreached()),
        sample_warnings=(*_warn_of_sample(predicted), *report.warn_of_more_bytes()),
        sampled=describe_sample(sample) if is_rewritten and sample is not None else None,
        current=context.current,
        slices=first.candidates,
    )


def describe_sample(sample: RowSample) -> Sampled:
    """Return the sample as plans record it."""
    return Sampled(
        row_groups=sample.groups, total_row_groups=sample.total_groups, rows=len(sample.rows)
    )


def _warn_of_sample(predicted: PredictedReads) -> Iterator[Note]:
    if predicted.is_unknown:
        yield Note(
            _RULE,
            "reads after the clustering are not predicted: no row of the files to rewrite could be "
            "sampled",
        )
    elif predicted.has_logs:
        yield Note(
            _RULE,
            "only base files were sampled: the predictions do not include what log files change",
        )


def _find_max_scan(spec: TableSpec, current: CurrentReads) -> MaxScanDemand | None:
    """Return what to rewrite for queries over ``maxScan``; None under ``when: always``."""
    clustering = spec.clustering
    if clustering is None or clustering.when.always or not clustering.columns:
        return None
    return find_demand(current)
