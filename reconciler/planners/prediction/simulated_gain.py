"""Simulate the gain of partitions for declared queries, with sampled rows of their groups; pure.

The ranges of files on the clustering columns find the candidates. Statistics of all columns that a
query names, and a simulated rewrite, then show what the queries read of them today and afterwards.
"""

from __future__ import annotations

import numpy as np

from reconciler.arrays import Floats, Mask
from reconciler.planners.cluster.clustering_input import SimulatedGains
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.cluster.read_model import READ_FIGURES, BlockReads
from reconciler.planners.prediction.predicted_reads import (
    ForecastContext,
    SimulationCache,
    build_groups,
    planned_output,
)
from reconciler.planners.prediction.simulated_rewrite import extrapolate_reads


def has_candidates(decision: ClusteringDecision) -> bool:
    """Return whether declared queries decide about the gain of a partition."""
    gains = decision.gains
    return gains is not None and gains.is_declared and bool(gains.fires.any())


def simulate_gains(
    context: ForecastContext, trial: ClusteringDecision, simulations: SimulationCache
) -> SimulatedGains | None:
    """Return the simulated gains of the candidates of a trial; None if there are none.

    Partitions with a group that was not sampled stay unknown.
    """
    if trial.gains is None or not has_candidates(trial):
        return None
    groups = list(build_groups(context, trial))
    counts = [simulations.simulate(group) for group in groups]
    sampled = [n for n, count in enumerate(counts) if count is not None]
    expected = extrapolate_reads(
        [count for count in counts if count is not None],
        [planned_output(context, groups[n], counts[n]) for n in sampled],
    )
    is_known = trial.gains.fires.copy()
    partition = np.array([group.partition for group in groups], np.int64)
    is_known[partition[[n for n, count in enumerate(counts) if count is None]]] = False
    figures = _measure_slices(context, trial)
    for number, reads in zip(sampled, expected, strict=True):
        figures["files_then"][partition[number]] += float(reads.files.sum())
        figures["bytes_then"][partition[number]] += float(reads.bytes.sum())
    queries = max(len(context.current.queries), 1)
    means = {name: np.where(is_known, figures[name] / queries, np.nan) for name in READ_FIGURES}
    return SimulatedGains(BlockReads.build(means))


def _measure_slices(context: ForecastContext, trial: ClusteringDecision) -> dict[str, Floats]:
    """Return what all queries read of partitions today, and of the slices that stay."""
    candidates, kept = trial.candidates, context.current.kept_by_base
    count = len(candidates.view.files.partitions)
    reads, stays = kept.sum(axis=0).astype(np.float64), trial.group_of < 0

    def sums(values: Floats, where: Mask) -> Floats:
        weights = np.where(where, values, 0.0)
        return np.bincount(candidates.partition, weights, minlength=count).astype(np.float64)

    size, everywhere = reads * candidates.bytes, np.ones_like(stays)
    return {
        "files_now": sums(reads, everywhere),
        "files_then": sums(reads, stays),
        "bytes_now": sums(size, everywhere),
        "bytes_then": sums(size, stays),
    }
