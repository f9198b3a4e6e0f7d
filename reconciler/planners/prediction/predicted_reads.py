"""Predict what queries read after the groups of a decision are rewritten; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from reconciler.arrays import Floats, Integers
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.cluster.size_limits import find_split_rule
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.current_reads import CurrentReads
from reconciler.planners.prediction.sampled_group import SimulatedGroup
from reconciler.planners.prediction.sampled_layout import SimulationInput
from reconciler.planners.prediction.simulated_rewrite import (
    ExpectedReads,
    SimulatedReads,
    estimate_size_error,
    extrapolate_reads,
    relative_error,
    simulate_group,
)
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.sampling.model import ForecastInput


@dataclass(frozen=True, slots=True)
class ForecastContext:
    """The inputs of one forecast: the picture of the table and what queries read today."""

    picture: TablePicture
    forecast_input: ForecastInput
    current: CurrentReads

    def build_question(self, layout: ClusteringLayout) -> SimulationInput:
        return SimulationInput(
            queries=tuple(query.where for query in self.picture.spec.queries),
            forecast_input=self.forecast_input,
            layout=layout,
            sizes=self.picture.statistics.sizes,
            split=find_split_rule(self.picture.spec),
        )


class SimulationCache:
    """Simulated rewrites of groups; each group is simulated once."""

    def __init__(self, ask: SimulationInput) -> None:
        self.question = ask
        self._known: dict[tuple[bytes, int], SimulatedReads | None] = {}

    def simulate(self, group: SimulatedGroup) -> SimulatedReads | None:
        key = (group.members.tobytes(), group.outputs)
        if key not in self._known:
            self._known[key] = simulate_group(self.question, group)
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedReads:
    """The reads of queries after a decision's groups are rewritten; one element per query.

    ``kept``: (2, queries), files and bytes of slices that stay. ``by_group``: reads of each group;
    None if it was not sampled. ``new_files``: reads of all groups. ``table_bytes``: size of the new
    table. ``size_error``: relative error of the sizes of new files.
    """

    kept: Floats
    by_group: tuple[ExpectedReads | None, ...]
    new_files: ExpectedReads
    table_bytes: float
    size_error: float
    has_logs: bool

    @classmethod
    def predict(
        cls, context: ForecastContext, decision: ClusteringDecision, simulations: SimulationCache
    ) -> PredictedReads:
        candidates, kept = decision.candidates, context.current.reads.kept
        stays = decision.group_of < 0
        reads, sizes = kept[:, stays], candidates.bytes[stays]
        groups = list(build_groups(context, decision))
        counts = [simulations.simulate(group) for group in groups]
        limits = [planned_output(context, *pair) for pair in zip(groups, counts, strict=True)]
        some = [(c, limit) for c, limit in zip(counts, limits, strict=True) if c is not None]
        expected = iter(extrapolate_reads([c for c, _ in some], [limit for _, limit in some]))
        new = tuple(None if c is None else next(expected) for c in counts)
        if some and not decision.layout.columns:
            new = _raise_to_known_reads(context.current, decision, new, limits)
        written = sum(size for _, size in limits)
        return cls(
            kept=np.stack([reads.sum(axis=1), reads @ sizes]).astype(np.float64),
            by_group=new,
            new_files=_sum_groups(new, limits, len(kept)),
            table_bytes=float(sizes.sum()) + written,
            size_error=estimate_size_error(simulations.question),
            has_logs=any(not group.is_whole for group in groups),
        )

    @property
    def is_unknown(self) -> bool:
        return bool(self.by_group) and all(reads is None for reads in self.by_group)

    @property
    def files(self) -> Floats:
        return np.asarray(self.kept[0] + self.new_files.files)

    @property
    def bytes(self) -> Floats:
        return np.asarray(self.kept[1] + self.new_files.bytes)

    @property
    def error(self) -> Floats:
        return relative_error(self.new_files, self.kept, self.size_error)


def _raise_to_known_reads(
    current: CurrentReads,
    decision: ClusteringDecision,
    new: Sequence[ExpectedReads | None],
    limits: Sequence[tuple[float, float]],
) -> tuple[ExpectedReads, ...]:
    """Return the reads of groups that keep the order of their rows, also where a sample finds none.

    A query may read a new file if it reads one of the slices that become it. A sample alone misses
    that where it has no rows of most slices. A slice counts for the file that has its middle. Where
    the sample finds files it is closer: statistics may keep every slice, for NaN for example.
    """
    raised = []
    bounds = pairwise(decision.groups.starts.tolist())
    for reads, (outputs, size), (start, end) in zip(new, limits, bounds, strict=True):
        slices, files = decision.members[start:end], max(round(outputs), 1)
        ends = np.cumsum(decision.candidates.bytes[slices])
        middle = (ends - decision.candidates.bytes[slices] / 2) / max(int(ends[-1]), 1)
        file = np.minimum((middle * files).astype(np.int64), files - 1)
        query, at = np.nonzero(current.reads.kept[:, slices])
        pairs = np.unique(query * files + file[at]) // files
        count = np.bincount(pairs, minlength=len(current.queries)).astype(np.float64)
        known = np.stack([count, count * size / files])
        if reads is None:
            raised.append(ExpectedReads(reads=known, variance=np.zeros_like(known)))
        else:
            found = np.where(reads.reads[0] > 0, reads.reads, known)
            raised.append(replace(reads, reads=found))
    return tuple(raised)


def build_groups(
    context: ForecastContext, decision: ClusteringDecision
) -> Iterator[SimulatedGroup]:
    """Yield the groups of a decision, in its order."""
    starts = decision.groups.starts.tolist()
    for outputs, (start, end) in zip(
        decision.groups.outputs.tolist(), pairwise(starts), strict=True
    ):
        yield build_group(context, decision.candidates, decision.members[start:end], int(outputs))


def build_group(
    context: ForecastContext, candidates: CandidateSlices, slices: Integers, outputs: int
) -> SimulatedGroup:
    """Return the group of slices that are rewritten together into ``outputs`` files."""
    known = context.picture.statistics
    return SimulatedGroup.build(candidates, slices, known.facts.rows, known.sizes, outputs)


def planned_output(
    context: ForecastContext, group: SimulatedGroup, count: SimulatedReads | None
) -> tuple[float, float]:
    """Return how many files a group becomes and their bytes; as planned if not sampled."""
    if count is not None and count.output is not None:
        return count.output
    return group.plan_output(context.picture.statistics.sizes)


def _sum_groups(
    new: Sequence[ExpectedReads | None], limits: Sequence[tuple[float, float]], queries: int
) -> ExpectedReads:
    """Sum the reads of all groups; groups that were not sampled count as the average."""
    pairs = list(zip(new, limits, strict=True))
    factors = []
    for at in (0, 1):
        sampled = sum(limit[at] for reads, limit in pairs if reads is not None)
        others = sum(limit[at] for reads, limit in pairs if reads is None)
        factors.append([1 + others / max(sampled, 1.0)])
    factor, nothing = np.array(factors), np.zeros((2, queries))
    known = [reads for reads in new if reads is not None]
    return ExpectedReads(
        reads=factor * sum((reads.reads for reads in known), nothing),
        variance=factor**2 * sum((reads.variance for reads in known), nothing),
    )
