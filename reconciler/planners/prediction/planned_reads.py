"""Predict what queries read and merge after the steps of a plan; pure.

A clustering comes first: it merges the log files of what it rewrites. A compaction takes others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from reconciler.arrays import Mask
from reconciler.planners.newest_slices import CandidateSlices, find_slices
from reconciler.planners.prediction.compacted_reads import CompactedReads, predict_compaction
from reconciler.planners.prediction.current_reads import CurrentReads
from reconciler.planners.prediction.forecast import Forecast
from reconciler.planners.prediction.merge_costs import add_merges, measure_merges
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.groups import slice_paths
from reconciler.plans.model import ClusterStep, Step
from reconciler.plans.rewrites import Rewrites
from reconciler.state.sampling.model import ForecastInput

Predictions = tuple[Mapping[str, Any], ...]


def predict_plan(
    forecast: Forecast, forecast_input: ForecastInput, steps: Iterable[Step]
) -> Predictions:
    """Return the predictions of a plan with these steps, an element per query."""
    rewrites = {
        step.kind: step.groups for step in steps if isinstance(step, ClusterStep | CompactStep)
    }
    clustered, compacted = rewrites.get("cluster"), rewrites.get("compact")
    predictions: Predictions = forecast.predictions
    if clustered is None:
        predictions = forecast.predictions_unchanged
    current, slices = forecast.current, forecast.slices
    if not predictions or current is None or slices is None or not len(slices.log_row):
        return predictions
    merges = measure_merges(forecast_input, slices)
    is_clustered = _mark_slices(slices, clustered)
    is_compacted = _mark_slices(slices, compacted)
    if is_compacted.any():
        after = predict_compaction(current, forecast_input, slices, merges, is_compacted)
        predictions = _add_compaction(predictions, current, slices, after)
    kept = current.reads.kept
    stays = ~is_clustered & ~is_compacted
    return add_merges(predictions, merges.count(kept), merges.count(kept & stays))


def _mark_slices(slices: CandidateSlices, groups: Rewrites | None) -> Mask:
    """Return a mask of the slices that a step rewrites."""
    is_rewritten = np.zeros(len(slices), np.bool_)
    if groups is not None and len(groups):
        rows = find_slices(slices, slice_paths(groups))
        is_rewritten[rows[rows >= 0]] = True
    return is_rewritten


def _add_compaction(
    predictions: Predictions, current: CurrentReads, slices: CandidateSlices, after: CompactedReads
) -> Predictions:
    """Return the predictions with what a compaction changes."""
    before = current.reads.kept & after.is_compacted
    then = after.kept & after.is_compacted
    files = then.sum(axis=1) - before.sum(axis=1)
    size = then @ after.sizes - before @ slices.bytes
    return tuple(
        _change(one, int(files[nth]), int(size[nth]), after.spread[:, nth].tolist())
        for nth, one in enumerate(predictions)
    )


def _change(
    prediction: Mapping[str, Any], files: int, size: int, spread: list[float]
) -> Mapping[str, Any]:
    """Return a prediction with more or fewer files and bytes, which may be off by a spread."""
    error, before = prediction["error"], (prediction["filesAfter"], prediction["bytesAfter"])
    after = (max(before[0] + files, 0), max(before[1] + size, 0))
    errors = [
        (error * old + more) / max(new, 1)
        for old, new, more in zip(before, after, spread, strict=True)
    ]
    changed = {"filesAfter": after[0], "bytesAfter": after[1], "error": round(max(errors), 3)}
    return {**prediction, **changed}
