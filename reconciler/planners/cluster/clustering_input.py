"""The input of the choice of groups: the declaration, the slices and facts about them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.asked_boxes import AskedBoxes
from reconciler.planners.cluster.grouping import SliceGroups, pack_next_fit
from reconciler.planners.cluster.overlap import z_order_keys
from reconciler.planners.cluster.passes import PassCounts
from reconciler.planners.cluster.read_model import BlockReads
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.cluster.triggers import Triggers
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.spec.model import Clustering

#: returns which groups are worth a rewrite, from their output files and, per slice, whether it is
#: clustered as declared
GainCheck = Callable[[SliceGroups, Integers, Mask], Mask]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaxScanDemand:
    """The slices to rewrite because queries exceed their ``maxScan``.

    ``is_read``: per slice, a query over its limit reads it. ``gains``: returns which groups are
    worth it; None: all. ``reason``: the sentence for the plan.
    """

    is_read: Mask
    reason: str
    gains: GainCheck | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedGains:
    """What declared queries read of partitions by their statistics and by simulated rewrites.

    ``reads``: per partition, NaN where nothing was simulated; None accepts all candidates for a
    simulation.
    """

    reads: BlockReads | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringInput:
    """The input of clustering planning: the declaration, the slices and facts about them.

    ``block``: the block of the spec with the conditions. ``limits``: the declared sizes of files.
    ``is_clustered``: per slice, an earlier clustering wrote its base file as declared;
    ``is_settled``: and its log files are small. ``row_bytes``: int64 per slice, bytes of its rows
    in new files. ``passes``: how often slices were clustered as declared. ``max_scan``: slices that
    queries over their ``maxScan`` read; None if there are none. ``asked``: what readers ask for;
    None if no gain is predicted. ``simulated``: simulated gains of declared queries, which count
    more than predictions from ranges.
    """

    clustering: Clustering
    block: str
    limits: SizeLimits
    candidates: CandidateSlices
    triggers: Triggers
    is_clustered: Mask
    is_settled: Mask
    passes: PassCounts
    row_bytes: Integers
    sizes: RecordSize
    ranges: ColumnRanges | None
    max_scan: MaxScanDemand | None = None
    asked: AskedBoxes | None = None
    simulated: SimulatedGains | None = None

    @property
    def max_group_bytes(self) -> int:
        """Return the most bytes of a group of several slices."""
        return self.clustering.budget.max_group_bytes

    def count_outputs(self, groups: SliceGroups) -> Integers:
        return self.limits.count_files(self.sizes, groups.sum_values(self.row_bytes))

    def pack(self, order: Integers) -> SliceGroups:
        """Split slices into groups of one partition and at most ``max_group_bytes``."""
        candidates = self.candidates
        return pack_next_fit(order, candidates.partition, candidates.bytes, self.max_group_bytes)

    def sort_slices(self, slices: Integers, is_near: Mask) -> Integers:
        """Sort slices by partition; within it by nearness if it overlaps, else the biggest first.

        ``is_near``: partitions to sort by nearness in any case; all are if ``gainAbove`` is
        declared. Ties keep the order of file groups.
        """
        candidates = self.candidates
        near = np.zeros(len(slices), np.uint64)
        if self.ranges is not None and len(slices):
            codes = candidates.partition[slices]
            overlap = self.triggers.overlap[codes]
            when = self.clustering.when
            wanted = (overlap > (when.overlap_above or np.inf)) | is_near[codes]
            wanted |= when.gain_above is not None
            rows = np.flatnonzero(wanted)
            near[rows] = z_order_keys(self.ranges, candidates.base_row[slices[rows]], codes[rows])
        partitions, biggest_first = candidates.partition[slices], -candidates.bytes[slices]
        return slices[np.lexsort((slices, biggest_first, near, partitions))]
