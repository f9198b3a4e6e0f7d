"""Evaluate the spec's ``clustering.when``: which partitions and slices exceed it; pure."""

from __future__ import annotations

import numpy as np

from reconciler import units
from reconciler.arrays import Codes, Floats, Integers, Mask
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.last_small_files import LastSmallFiles, choose_last_small_files
from reconciler.planners.cluster.overlap import (
    count_measurable_files,
    find_wide_files,
    iterate_boxes,
)
from reconciler.planners.cluster.size_limits import SizeLimits
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.reasons import pluralize
from reconciler.spec.model import ClusteringTrigger


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triggers:
    """The partitions that exceed a threshold, and what to rewrite in them.

    ``fires``: per partition. ``is_small``, ``is_wide``: per slice; wide ones cause too much
    overlap. ``files``, ``small``: int64 per partition, base files of the newest slices.
    ``overlap``: float64 per partition, mean number of files that cover a row; NaN: not measured.
    ``is_large``: per slice, its base file is to be split. ``limits``: the declared sizes; where
    those are for existing files, ``files`` and ``small`` count slices without a base file too.
    ``only_logs``: int64 per partition, small slices without a base file. ``packs``: per partition,
    its small files are packed. ``takes_rest``: per slice, small files of its partition join it.
    """

    fires: Mask
    is_small: Mask
    is_wide: Mask
    files: Integers
    small: Integers
    overlap: Floats
    when: ClusteringTrigger
    limits: SizeLimits
    is_large: Mask
    only_logs: Integers
    large: Integers
    packs: Mask
    takes_rest: Mask

    def is_selected(self, partition: Codes) -> Mask:
        """Return per slice, given its partition, whether it makes that exceed a threshold."""
        is_cause = self.is_small | self.is_wide | self.is_large | self.takes_rest
        return self.fires[partition] & is_cause

    def list_clauses(self, partition: int, *, only_exceeded: bool) -> list[str]:
        """Return what was measured in a partition, a clause for each threshold.

        ``only_exceeded``: leave out the thresholds that it does not exceed.
        """
        clauses = []
        above = self.when.small_file_share_above
        if above is not None and (self.small[partition] or not self.large[partition]):
            is_packed = bool(self.packs[partition])
            clauses += [self._explain_small(partition, above)] * (is_packed or not only_exceeded)
        if self.large[partition]:
            clauses.append(self._explain_large(partition))
        above = self.when.overlap_above
        if above is not None and not np.isnan(self.overlap[partition]):
            is_above = bool(self.overlap[partition] > above)
            clauses += [self._explain_overlap(partition, above)] * (is_above or not only_exceeded)
        return clauses

    def _explain_small(self, partition: int, limit: float) -> str:
        small, files = int(self.small[partition]), int(self.files[partition])
        share = f"{'above' if small > limit * files else 'within'} smallFileShareAbove {limit:g}"
        if self.packs[partition] and small <= limit * files:
            share = "a quiet partition keeps none"
        only_logs = int(self.only_logs[partition])
        noun, but = "base file", ""
        if only_logs:
            noun, but = "file slice", f"{only_logs} without a base file; "
        return (
            f"{small} of {pluralize(files, noun)} {'is' if small == 1 else 'are'} below "
            f"files.small {units.format_size(self.limits.small)} "
            f"({but}{share})"
        )

    def _explain_large(self, partition: int) -> str:
        large = int(self.large[partition])
        limit = units.format_size(self.limits.large or 0)
        return (
            f"{pluralize(large, 'base file')} {'is' if large == 1 else 'are'} above "
            f"files.large {limit}"
        )

    def _explain_overlap(self, partition: int, limit: float) -> str:
        overlap = self.overlap[partition]
        side = "above" if overlap > limit else "within"
        return f"{overlap:.1f} files overlap per row ({side} overlapAbove {limit:g})"


def evaluate_triggers(  # noqa: PLR0913 (what is declared, and what is known)
    candidates: CandidateSlices,
    limits: SizeLimits,
    can_split: Mask,
    when: ClusteringTrigger,
    ranges: ColumnRanges | None,
    *,
    is_open: Mask,
    sizes: RecordSize,
) -> Triggers:
    """Evaluate the triggers. ``can_split``: per slice, more files than one would be smaller.

    ``is_open``: per slice, it may be rewritten. Without ``ranges`` overlap is unknown and does not
    fire.
    """
    count = len(candidates.view.files.partitions)
    is_small, is_large = limits.find_small(candidates), limits.find_large(candidates) & can_split
    is_file = candidates.has_base | is_small
    files, smalls, larges, only_logs = (
        np.bincount(candidates.partition[mask], minlength=count)
        for mask in (is_file, is_small, is_large, is_small & ~candidates.has_base)
    )
    last = LastSmallFiles.none(candidates)
    packs = np.zeros(count, np.bool_)
    if when.small_file_share_above is not None:
        packs |= smalls > when.small_file_share_above * files
        if limits.keeps_no_small:
            can_take = is_open & candidates.has_base & ~is_small & ~is_large
            last = choose_last_small_files(
                candidates, is_small & is_open, can_take, small=limits.small, sizes=sizes
            )
            packs |= last.is_packed
    fires = packs | (larges > 0)
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
        limits=limits,
        is_large=is_large,
        only_logs=only_logs,
        large=larges,
        packs=packs,
        takes_rest=last.takes_rest,
    )


def find_unmeasured(
    candidates: CandidateSlices, when: ClusteringTrigger, ranges: ColumnRanges | None, is_new: Mask
) -> Mask:
    """Return the new slices of partitions whose gain and overlap cannot be measured.

    Such partitions have enough files to gain or to overlap, and no file with known statistics.
    ``is_new``: per slice, it stays, and no clustering has laid it out as declared. ``ranges``: None
    if unknown.
    """
    partition, count = candidates.partition, len(candidates.view.files.partitions)
    limits = [1 if when.gain_above is not None else None, when.overlap_above]
    least = min((limit for limit in limits if limit is not None), default=np.inf)
    files = np.bincount(partition[candidates.has_base], minlength=count)
    known = np.zeros(count, np.bool_)
    if ranges is not None:
        known[partition[ranges.is_known[candidates.base_row] & candidates.has_base]] = True
    unmeasured: Mask = is_new & candidates.has_base & ((files > least) & ~known)[partition]
    return unmeasured


def _measure_overlap(
    candidates: CandidateSlices,
    ranges: ColumnRanges,
    above: float,
    overlap: Floats,
    is_wide: Mask,
) -> None:
    """Fill in the overlap of every partition and the wide slices of those above the limit.

    Slices that are not wide have half of the overlap limit, so the next few files do not fire.
    """
    counts = count_measurable_files(candidates, ranges, len(overlap))
    # partitions with no more files than may overlap need no measurement
    for partitions, slices, boxes in iterate_boxes(candidates, ranges, counts, above):
        shares = boxes.covered_shares(boxes.sample_points())
        covered = shares.sum(axis=1)
        overlap[partitions] = np.fmax(overlap[partitions], covered)
        fires = covered > above
        is_wide[slices[fires]] |= find_wide_files(shares[fires], above)
