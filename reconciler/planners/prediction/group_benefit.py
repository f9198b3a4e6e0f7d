"""Decide which groups are worth rewriting for queries over their ``maxScan``; pure.

Each group is decided by itself, from what queries read of its slices today and of the files of a
simulated rewrite. So a group that is skipped once is skipped by the next plan too. Clustered
groups are rewritten only for a gain greater than its error. The result measured after the last
clustering with the same layout prevents repeated rewrites without a gain.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reconciler.arrays import Floats, Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.prediction.current_reads import MIN_GAIN
from reconciler.planners.prediction.predicted_reads import (
    ForecastContext,
    PredictedReads,
    SimulationCache,
    build_group,
    planned_output,
)
from reconciler.planners.prediction.simulated_rewrite import (
    ExpectedReads,
    extrapolate_reads,
    relative_error,
)
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.measured_queries import ClusteringContext, parse_measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class PastResult:
    """The result of the last clustering with the declared layout.

    ``clustering``: None if there was none. ``shares``: share of the table's bytes that each query
    read after it, by its text; None if not measured. ``is_finished``: it left nothing to another
    run.
    """

    clustering: PastClustering | None = None
    shares: dict[str, float] | None = None
    is_finished: bool = True

    @classmethod
    def find(
        cls, past: tuple[PastClustering, ...], layout: ClusteringLayout, target: int
    ) -> PastResult:
        """Return the result for the declared ``layout`` and ``target``; ``past``: oldest first."""
        last = next((entry for entry in reversed(past) if entry.layout == layout), None)
        if last is None:
            return cls()
        recorded = ClusteringContext.read(last.extra)
        if recorded is not None and recorded.target != target:
            return cls()
        measured = [
            entry for entry in parse_measurements(last.extra) if entry.where and not entry.unread
        ]
        shares = {entry.where: entry.bytes / max(entry.of_bytes, 1) for entry in measured}
        return cls(
            clustering=last,
            shares=shares or None,
            is_finished=recorded is None or not recorded.remaining_slices,
        )

    def has_settled(self, where: str, share: float) -> bool:
        """Return whether a query reads no more than after the last clustering.

        Then a rewrite with the same layout cannot help, whatever is predicted.
        """
        if self.clustering is None or not self.is_finished:
            return False
        if self.shares is None:
            return True
        before = self.shares.get(where)
        return before is not None and share <= before * (1 + MIN_GAIN)


@dataclass(frozen=True, slots=True, eq=False)
class GroupBenefit:
    """Decides which groups reduce the reads of queries enough.

    ``exceeding``: positions of the queries over their limit. Per such query ``reaches_limit``: it
    gets below its limit if everything possible is rewritten; ``is_settled``: it reads no more than
    after the last clustering.
    """

    context: ForecastContext
    simulations: SimulationCache
    candidates: CandidateSlices
    exceeding: Integers
    reaches_limit: Mask
    is_settled: Mask

    @classmethod
    def build(
        cls,
        context: ForecastContext,
        simulations: SimulationCache,
        candidates: CandidateSlices,
        tried: PredictedReads,
    ) -> GroupBenefit:
        """Build from the reads predicted if everything possible is rewritten (``tried``)."""
        now, exceeding = context.current, context.current.exceeding
        queries = [now.queries[nth] for nth in exceeding.tolist()]
        limits = np.array([query.max_scan or 0.0 for query in queries])
        memory = find_past_result(context, simulations.question.layout)
        settled = [
            memory.has_settled(now.queries[n].where, now.share(n)) for n in exceeding.tolist()
        ]
        return cls(
            context,
            simulations,
            candidates,
            exceeding,
            np.asarray(tried.bytes[exceeding] <= limits * tried.table_bytes),
            np.array(settled, np.bool_),
        )

    def __call__(self, groups: SliceGroups, outputs: Integers, is_clustered: Mask) -> Mask:
        ends = pairwise(groups.starts.tolist())
        worth = [
            self._is_worth(groups.members[start:end], files, is_clustered)
            for (start, end), files in zip(ends, outputs.tolist(), strict=True)
        ]
        return np.array(worth, np.bool_)

    def _is_worth(self, slices: Integers, outputs: int, is_clustered: Mask) -> bool:
        group = build_group(self.context, self.candidates, slices, outputs)
        count = self.simulations.simulate(group)
        if count is None:
            return False
        now, limit = (
            self._current_shares(slices, is_clustered),
            planned_output(self.context, group, count),
        )
        (then,), total = extrapolate_reads([count], [limit]), max(limit[1], 1.0)
        if is_clustered[slices].all():
            return self._is_worth_again(now[self.exceeding], then, total)
        limited = np.array([query.max_scan is not None for query in self.context.current.queries])
        if then.bytes[limited].sum() > now[limited].sum() * total:
            return False  # other queries lose more than this one gains
        before, after = now[self.exceeding], then.bytes[self.exceeding] / total
        is_less = after < before
        much = is_less & (after <= (1 - MIN_GAIN) * before)
        enough = is_less & self.reaches_limit & ~self.is_settled
        return bool((much | enough).any())

    def _is_worth_again(self, now: Floats, then: ExpectedReads, total: float) -> bool:
        """Return whether a clustered group gains 10 % and more than the error of the prediction."""
        some = np.flatnonzero(~self.is_settled)
        at = self.exceeding[some]
        part = ExpectedReads(reads=then.reads[:, at], variance=then.variance[:, at])
        error = relative_error(part, np.zeros((2, len(some))))
        most = float((part.bytes * (1 + error)).sum()) / total
        before = float(now[some].sum())
        return most < before and most <= (1 - MIN_GAIN) * before

    def _current_shares(self, slices: Integers, is_clustered: Mask) -> Floats:
        """Return the share of the slices' bytes that each query reads today.

        Reads caused by log files of clustered slices do not count: a compaction removes them, and
        after a clustering new ones would follow.
        """
        now, sizes = self.context.current, self.candidates.bytes[slices]
        kept = np.where(
            is_clustered[slices], now.kept_by_base[:, slices], now.reads.kept[:, slices]
        )
        return (kept @ sizes) / max(int(sizes.sum()), 1)


def find_past_result(context: ForecastContext, layout: ClusteringLayout) -> PastResult:
    """Return the result of the last clustering with this layout and the declared file size."""
    return PastResult.find(
        context.picture.statistics.past, layout, context.picture.file_sizes.target
    )


def find_helped(now: Floats, after: Floats, limits: Floats) -> Mask:
    """Return which queries a rewrite helps: below their limit or 10 % less; shares of bytes."""
    return (after < now) & ((after <= limits) | (after <= (1 - MIN_GAIN) * now))
