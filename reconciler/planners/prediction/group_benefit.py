"""Which groups of file slices are worth a rewrite for the queries that read too much; pure.

Each group is judged by itself: by what queries read of its slices today and of the files that a
rewrite in miniature makes of them. So what is left out once is left out again by the next plan.
What is laid out as declared already is rewritten for more than its error, and never again and again
for a gain that does not come: the last clustering of the same declaration says what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.prediction.current_reads import LEAST_GAIN
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

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastResult:
    """What the last clustering of the same declaration came to.

    ``clustering``: None where there was none. ``shares``: of the table's bytes, what a query read
    then, by its text; None where nobody measured it. ``is_finished``: it left nothing to another run.
    """

    clustering: PastClustering | None = None
    shares: dict[str, float] | None = None
    is_finished: bool = True

    @classmethod
    def find(
        cls, past: tuple[PastClustering, ...], layout: ClusteringLayout, target: int
    ) -> PastResult:
        """``past``: oldest first; ``layout``, ``target``: what is declared."""
        last = next((one for one in reversed(past) if one.layout == layout), None)
        if last is None:
            return cls()
        how = ClusteringContext.read(last.extra)
        if how is not None and how.target != target:
            return cls()
        measured = [one for one in parse_measurements(last.extra) if one.where and not one.unread]
        shares = {one.where: one.bytes / max(one.of_bytes, 1) for one in measured}
        return cls(
            clustering=last,
            shares=shares or None,
            is_finished=how is None or not how.remaining_slices,
        )

    def has_settled(self, where: str, share: float) -> bool:
        """Whether a query that reads this share is no worse off than the last clustering left it.

        Then what it reads is what the layout comes to, whatever is predicted.
        """
        if self.clustering is None or not self.is_finished:
            return False
        if self.shares is None:
            return True
        before = self.shares.get(where)
        return before is not None and share <= before * (1 + LEAST_GAIN)


@dataclass(frozen=True, slots=True, eq=False)
class GroupBenefit:
    """Which groups gain.

    ``exceeding``: places of the queries that read too much; of each of them ``reaches_limit``: it gets
    below its limit where everything is rewritten that may be, and ``is_settled``: it reads what the
    layout has come to before.
    """

    context: ForecastContext
    simulations: SimulationCache
    candidates: CandidateSlices
    exceeding: NDArray[np.int64]
    reaches_limit: NDArray[np.bool_]
    is_settled: NDArray[np.bool_]

    @classmethod
    def build(
        cls,
        look: ForecastContext,
        miniatures: SimulationCache,
        found: CandidateSlices,
        tried: PredictedReads,
    ) -> GroupBenefit:
        """``tried``: what queries read when everything is rewritten that may be."""
        now, exceeding = look.current, look.current.exceeding
        asked = [now.queries[nth] for nth in exceeding.tolist()]
        limits = np.array([query.max_scan or 0.0 for query in asked])
        memory = find_past_result(look, miniatures.question.layout)
        settled = [
            memory.has_settled(now.queries[n].where, now.share(n)) for n in exceeding.tolist()
        ]
        return cls(
            look,
            miniatures,
            found,
            exceeding,
            np.asarray(tried.bytes[exceeding] <= limits * tried.table_bytes),
            np.array(settled, np.bool_),
        )

    def __call__(
        self, groups: SliceGroups, outputs: NDArray[np.int64], is_laid: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        ends = pairwise(groups.starts.tolist())
        worth = [
            self._is_worth(groups.members[start:end], files, is_laid)
            for (start, end), files in zip(ends, outputs.tolist(), strict=True)
        ]
        return np.array(worth, np.bool_)

    def _is_worth(
        self, slices: NDArray[np.int64], outputs: int, is_laid: NDArray[np.bool_]
    ) -> bool:
        group = build_group(self.context, self.candidates, slices, outputs)
        count = self.simulations.simulate(group)
        if count is None:
            return False
        now, limit = (
            self._current_shares(slices, is_laid),
            planned_output(self.context, group, count),
        )
        (then,), total = extrapolate_reads([count], [limit]), max(limit[1], 1.0)
        if is_laid[slices].all():
            return self._is_worth_again(now[self.exceeding], then, total)
        limited = np.array([query.max_scan is not None for query in self.context.current.queries])
        if then.bytes[limited].sum() > now[limited].sum() * total:
            return False  # what one query gains others lose
        before, after = now[self.exceeding], then.bytes[self.exceeding] / total
        is_less = after < before
        much = is_less & (after <= (1 - LEAST_GAIN) * before)
        enough = is_less & self.reaches_limit & ~self.is_settled
        return bool((much | enough).any())

    def _is_worth_again(self, now: Floats, then: ExpectedReads, total: float) -> bool:
        """What is laid out as declared has to gain a tenth, and more than its error."""
        some = np.flatnonzero(~self.is_settled)
        at = self.exceeding[some]
        none = np.zeros(len(some))
        part = ExpectedReads(
            files=then.files[at],
            bytes=then.bytes[at],
            files_variance=then.files_variance[at],
            bytes_variance=then.bytes_variance[at],
        )
        most = float((part.bytes * (1 + relative_error(part, none, none))).sum()) / total
        before = float(now[some].sum())
        return most < before and most <= (1 - LEAST_GAIN) * before

    def _current_shares(self, slices: NDArray[np.int64], is_laid: NDArray[np.bool_]) -> Floats:
        """The share of their bytes that queries read; how big new files get is only estimated.

        Of what is laid out as declared log files are not to blame on the layout: a compaction takes
        them away, and a clustering would only be followed by the next of them.
        """
        now, sizes = self.context.current, self.candidates.bytes[slices]
        kept = np.where(is_laid[slices], now.kept_by_base[:, slices], now.reads.kept[:, slices])
        found: Floats = (kept @ sizes) / max(int(sizes.sum()), 1)
        return found


def find_past_result(look: ForecastContext, layout: ClusteringLayout) -> PastResult:
    """What past clusterings say of a layout under this spec."""
    return PastResult.find(look.known.facts.clusterings, layout, look.known.files.target)


def find_helped(now: Floats, after: Floats, limits: Floats) -> NDArray[np.bool_]:
    """Which queries a rewrite is for: below their limit then, or a tenth less; shares of bytes."""
    found: NDArray[np.bool_] = (after < now) & (
        (after <= limits) | (after <= (1 - LEAST_GAIN) * now)
    )
    return found
