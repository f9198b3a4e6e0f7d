"""Simulate layouts of a whole table and predict what queries would read; pure.

The groups are those of a clustering of everything: newest slices of a partition, at most
``perGroup`` bytes together, each group with its own layout. Only the few groups of which queries
read most are simulated; the same saving is assumed for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from reconciler.arrays import Integers
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.grouping import SliceGroups, pack_next_fit
from reconciler.planners.prediction.layout_candidates import (
    LayoutCandidate,
    LayoutTrial,
    QueryReads,
)
from reconciler.planners.prediction.sampled_group import SimulatedGroup
from reconciler.planners.prediction.sampled_layout import SimulationInput
from reconciler.planners.prediction.simulated_rewrite import (
    ExpectedReads,
    estimate_size_error,
    extrapolate_reads,
    relative_error,
    simulate_group,
)
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.sampling.model import ForecastInput, SampleRequest

if TYPE_CHECKING:
    from reconciler.layout.sizing.record_size import RecordSize
    from reconciler.layout.sizing.split_rule import SplitRule
    from reconciler.planners.newest_slices import CandidateSlices
    from reconciler.planners.prediction.current_reads import CurrentReads

#: greatest number of groups that are simulated
MAX_GROUPS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeTable:
    """A table that is rewritten completely, in ``groups`` of its newest slices.

    ``current``: what the queries read of the slices today; ``rows``: int64 per file of the table.
    ``sizes``: record sizes; ``split``: sizes of new files.
    """

    candidates: CandidateSlices
    current: CurrentReads
    groups: SliceGroups
    rows: Integers
    sizes: RecordSize
    split: SplitRule

    @classmethod
    def build(
        cls,
        found: CandidateSlices,
        now: CurrentReads,
        *,
        rows: Integers,
        sizes: RecordSize,
        split: SplitRule,
        per_group: int,
    ) -> Self:
        """Build from all slices in their order, in groups of at most ``per_group`` bytes."""
        groups = pack_next_fit(np.arange(len(found)), found.partition, found.bytes, per_group)
        return cls(
            candidates=found, current=now, groups=groups, rows=rows, sizes=sizes, split=split
        )

    @property
    def outputs(self) -> Integers:
        """Return how many files each group becomes."""
        return self.sizes.count_files(self.groups.sum_values(self._row_bytes), self.split.target)

    @property
    def bytes(self) -> int:
        """Return the bytes of all new files."""
        return int(self._row_bytes.sum() + self.outputs.sum() * self.sizes.fixed)

    @property
    def _row_bytes(self) -> Integers:
        return self.sizes.data_bytes(self.candidates.base, self.candidates.logs)

    def measure_reads(self) -> Integers:
        """Return files and bytes that queries read of the groups: (2, queries, groups)."""
        sizes = self.candidates.bytes
        return np.array(
            [
                [self.groups.sum_values(np.where(mask, of, 0)) for mask in self.current.reads.kept]
                for of in (np.ones_like(sizes), sizes)
            ]
        )

    @property
    def tried_groups(self) -> Integers:
        """Return the groups to simulate, ascending: those with base files that are read most."""
        has_base = self.groups.sum_values(self.candidates.has_base.astype(np.int64)) > 0
        read = np.where(has_base, self.measure_reads()[1].sum(axis=0), -1)
        most = np.argsort(-read, kind="stable")[:MAX_GROUPS]
        return np.sort(most[has_base[most]])

    def build_group(self, number: int) -> SimulatedGroup:
        """Return a group as the simulation needs it."""
        outputs = int(self.outputs[number])
        slices = self.groups[number]
        return SimulatedGroup.build(self.candidates, slices, self.rows, self.sizes, outputs)

    def choose_samples(self, max_rows: int) -> tuple[SampleRequest, ...]:
        """Return what to sample of the simulated groups, for ``max_rows`` rows in all."""
        groups = [self.build_group(number) for number in self.tried_groups.tolist()]
        each = max(max_rows // max(len(groups), 1), 1)
        return tuple(group.request_rows(each) for group in groups)


def try_layout(
    table: WholeTable, forecast_input: ForecastInput, candidate: LayoutCandidate
) -> LayoutTrial | None:
    """Return what queries would read with this layout; None if no row of the table is sampled."""
    question = SimulationInput(
        queries=tuple(query.where for query in table.current.queries),
        forecast_input=forecast_input,
        layout=ClusteringLayout(
            columns=candidate.columns, curve=candidate.curve, mapping=candidate.mapping
        ),
        sizes=table.sizes,
        split=table.split,
    )
    numbers = table.tried_groups.tolist()
    groups = [table.build_group(number) for number in numbers]
    counts = [simulate_group(question, group) for group in groups]
    known = [nth for nth, found in enumerate(counts) if found is not None]
    expected = extrapolate_reads(
        [found for found in counts if found is not None],
        [groups[nth].plan_output(table.sizes) for nth in known],
    )
    if not expected:
        return None
    both = _extrapolate(table, expected, np.array([numbers[nth] for nth in known], np.int64))
    none = np.zeros((2, len(question.queries)))
    return LayoutTrial(
        candidate=candidate,
        reads=tuple(
            QueryReads(files=round(files), bytes=round(size))
            for files, size in both.reads.T.tolist()
        ),
        errors=tuple(relative_error(both, none, estimate_size_error(question)).round(3).tolist()),
        table_bytes=table.bytes,
    )


def _extrapolate(
    table: WholeTable, expected: list[ExpectedReads], groups: Integers
) -> ExpectedReads:
    """Extrapolate reads to all groups: the same saving is assumed for those not simulated."""
    now = table.measure_reads()
    then = np.sum([group.reads for group in expected], axis=0)
    before = now[:, :, groups].sum(axis=2)
    # the overall ratio of future to current reads counts for a query that reads nothing today
    overall = [[a.sum() / b.sum() if b.sum() else 1.0] for a, b in zip(then, before, strict=True)]
    factor = np.where(before > 0, then / np.maximum(before, 1.0), overall)
    return ExpectedReads(
        reads=then + factor * (now.sum(axis=2) - before),
        variance=np.sum([group.variance for group in expected], axis=0),
    )
