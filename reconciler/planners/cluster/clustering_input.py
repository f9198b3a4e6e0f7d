"""The input of the choice of groups: the declaration, the slices and facts about them."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.cluster.max_scan import MaxScanDemand
from reconciler.planners.cluster.passes import PassCounts, max_group_bytes
from reconciler.planners.cluster.triggers import Triggers
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.spec.model import Clustering


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringInput:
    """What a clustering is planned from: the declaration, the slices and facts about them.

    ``target``: bytes of a file. ``is_clustered``: per slice, an earlier clustering wrote its base
    file as declared; ``is_settled``: and its log files are small. ``row_bytes``: int64 per slice,
    bytes of its rows in new files. ``passes``: how often slices were clustered as declared.
    ``max_scan``: slices that queries over their ``maxScan`` read; None if there are none.
    """

    clustering: Clustering
    target: int
    candidates: CandidateSlices
    triggers: Triggers
    is_clustered: Mask
    is_settled: Mask
    passes: PassCounts
    row_bytes: Integers
    sizes: RecordSize
    ranges: ColumnRanges | None
    max_scan: MaxScanDemand | None = None

    @property
    def max_group_bytes(self) -> int:
        """Return the most bytes of a group of several slices."""
        return max_group_bytes(self.clustering)

    def count_outputs(self, groups: SliceGroups) -> Integers:
        return self.sizes.count_files(groups.sum_values(self.row_bytes), self.target)
