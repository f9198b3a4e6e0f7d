"""Which partitions a clustering is for, and which of their slices: the spec's ``when``; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler import units
from reconciler.arrays import sort_unique
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.overlap import ColumnRanges, FileBoxes, find_wide_files
from reconciler.planners.reasons import pluralize
from reconciler.spec.model import ClusteringTrigger

#: files measured at once
_AT_ONCE: Final = 2**12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triggers:
    """``fires``: per partition. ``is_small``, ``is_wide``: per slice, what to rewrite there.

    ``files``, ``small_below``: int64 per partition, base files of the newest slices.
    ``overlap``: float64 per partition, mean number of files that cover a row; NaN: not measured.
    ``is_wide``: the slice is one of those that are to blame for too much overlap.
    """

    fires: NDArray[np.bool_]
    is_small: NDArray[np.bool_]
    is_wide: NDArray[np.bool_]
    files: NDArray[np.int64]
    small: NDArray[np.int64]
    overlap: NDArray[np.float64]
    when: ClusteringTrigger
    limit: int

    def is_selected(self, partition: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Per slice, given their partitions, whether it is what its partition fires for."""
        found: NDArray[np.bool_] = self.fires[partition] & (self.is_small | self.is_wide)
        return found

    def explain(self, partition: int, query: str = "") -> str:
        """What is the matter with a partition that fires, or why it does not.

        ``query``: what a query reads too much, where it is for that; then only what fires besides.
        """
        is_scanned = bool(query)
        said = [query] if is_scanned else []
        above = self.when.small_file_share_above
        if above is not None:
            is_above = int(self.small[partition]) > above * int(self.files[partition])
            said += [self._explain_small(partition, above)] if is_above or not is_scanned else []
        above = self.when.overlap_above
        if above is not None and not np.isnan(self.overlap[partition]):
            is_above = self.overlap[partition] > above
            said += [self._explain_overlap(partition, above)] if is_above or not is_scanned else []
        return " and ".join(said) or "nothing in clustering.when can be measured in its partition"

    def _explain_small(self, partition: int, above: float) -> str:
        small, files = int(self.small[partition]), int(self.files[partition])
        is_above = small > above * files
        beyond = "more than" if is_above else "no more than"
        return (
            f"{small} of {pluralize(files, 'base file')} in its partition "
            f"{'is' if small == 1 else 'are'} below files.small ({units.format_size(self.limit)}), "
            f"{beyond} the share of {above:g} (when.smallFileShareAbove)"
        )

    def _explain_overlap(self, partition: int, above: float) -> str:
        overlap = self.overlap[partition]
        beyond = "more than" if overlap > above else "no more than"
        return (
            f"{overlap:.1f} files cover a row of its partition on average, {beyond} {above:g} "
            "(when.overlapAbove)"
        )


def evaluate_triggers(
    candidates: CandidateSlices,
    small_below: int,
    when: ClusteringTrigger,
    ranges: ColumnRanges | None,
) -> Triggers:
    """What fires. ``small_below``: bytes below which a base file is small.

    Without ``ranges`` nobody knows what files cover, and no overlap fires.
    """
    count = len(candidates.view.files.partitions)
    is_small = candidates.has_base & (candidates.base < small_below)
    files = np.bincount(candidates.partition[candidates.has_base], minlength=count)
    smalls = np.bincount(candidates.partition[is_small], minlength=count)
    fires = np.zeros(count, np.bool_)
    if when.small_file_share_above is not None:
        fires |= smalls > when.small_file_share_above * files
    overlap = np.full(count, np.nan)
    is_wide = np.zeros(len(candidates), np.bool_)
    if when.overlap_above is not None and ranges is not None:
        _measure_overlap(candidates, ranges, when.overlap_above, overlap, is_wide)
        fires |= overlap > when.overlap_above
    return Triggers(
        fires=fires,
        is_small=is_small,
        is_wide=is_wide,
        files=files,
        small=smalls,
        overlap=overlap,
        when=when,
        limit=small_below,
    )


def _measure_overlap(
    found: CandidateSlices,
    ranges: ColumnRanges,
    above: float,
    overlap: NDArray[np.float64],
    is_wide: NDArray[np.bool_],
) -> None:
    """Fill in the overlap of every partition, and the wide slices of those where it is too much.

    What is not wide overlaps half as much as what fires: so the next few files don't fire again.
    """
    bases = np.flatnonzero(found.has_base)
    ends = np.searchsorted(found.partition[bases], np.arange(len(overlap) + 1))
    is_known = ranges.is_known[found.base_row[bases]]
    told = np.bincount(found.partition[bases], weights=is_known, minlength=len(overlap))
    counts = np.where(told > 0, np.diff(ends), 0)
    # no more files than may overlap, or nothing is known of any: nothing to measure
    for count in sort_unique(counts[counts > above]).tolist():
        alike = np.flatnonzero(counts == count)
        step = max(_AT_ONCE // count, 1)
        for first in range(0, len(alike), step):
            partitions = alike[first : first + step]
            here = bases[ends[partitions][:, None] + np.arange(count)]
            for boxes in FileBoxes.on_scales(ranges, found.base_row[here]):
                shares = boxes.covered_shares(boxes.sample_points())
                covered = shares.sum(axis=1)
                overlap[partitions] = np.fmax(overlap[partitions], covered)
                fires = covered > above
                is_wide[here[fires]] |= find_wide_files(shares[fires], above)
