"""Measure file sizes, counts and overlap of a table, and predict them after a clustering; pure.

The figures before are measured. Those after are predicted: sizes from record sizes, and overlap
from the bounds of the files.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reconciler.arrays import Codes, Floats, Integers, sort_unique
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.overlap import (
    FileBoxes,
    count_measurable_files,
    estimate_curve_overlap,
    iterate_boxes,
    predict_overlap,
)
from reconciler.planners.cluster.planner import ClusteringDecision
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.plans.columns import build_dictionary, dictionary_codes
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import FileSizes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeHistogram:
    """A histogram of base files by size; int64 arrays.

    ``upper_bounds``: bytes, ascending; a file is in the first class whose bound it is below, and
    the last class has no bound. ``files``, ``bytes``: one element more than there are bounds.
    """

    upper_bounds: Integers
    files: Integers
    bytes: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionFigures:
    """Figures of the newest slices, one element per partition that has any.

    ``partition``: pyarrow dictionary<int32, string>. ``files``, ``small``, ``bytes``: int64, number
    of base files, of those below ``files.small``, and bytes. ``rows``: int64, 0 if unknown.
    ``overlap``: float64, mean number of files that cover a row on the clustering columns; NaN if
    unknown. ``sizes``: histogram of the whole table.
    """

    partition: Any
    files: Integers
    small: Integers
    bytes: Integers
    rows: Integers
    overlap: Floats
    sizes: SizeHistogram

    @property
    def table_overlap(self) -> float:
        """Return the mean overlap of the table's known partitions, weighted by rows, or NaN."""
        known = ~np.isnan(self.overlap)
        weight = np.maximum(self.rows[known], 1)
        return float(np.average(self.overlap[known], weights=weight)) if known.any() else math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutForecast:
    """Figures of a table before and after a clustering, with the same partitions in both.

    ``bytes_written``: of the new files.
    """

    before: PartitionFigures
    after: PartitionFigures
    bytes_written: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteTotals:
    """Sums of the groups of a step, one element per partition that has any.

    ``partition``: pyarrow dictionary<int32, string>. ``groups``, ``slices``, ``outputs``,
    ``bytes``: int64; ``bytes`` are those that are read.
    """

    partition: Any
    groups: Integers
    slices: Integers
    outputs: Integers
    bytes: Integers


def sum_by_partition(groups: Rewrites) -> RewriteTotals:
    """Return the sums of a step's groups by partition, in the order of the groups."""
    codes = dictionary_codes(groups.partition)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    paths = groups.partition.dictionary.to_pylist()

    def sums(values: Integers) -> Integers:
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        differences: Integers = np.diff(ends[np.append(starts, len(values))])
        return differences

    return RewriteTotals(
        partition=build_dictionary(codes[starts], paths),
        groups=sums(np.ones(len(groups), np.int64)),
        slices=sums(np.diff(groups.starts)),
        outputs=sums(groups.outputs),
        bytes=sums(groups.bytes),
    )


def size_classes(files: FileSizes) -> Integers:
    """Return the upper bounds of size classes, from the spec's small and target sizes.

    >>> from reconciler.spec.model import FileSizes
    >>> size_classes(FileSizes(target=120, small=96)).tolist()
    [6, 24, 96, 120, 240]
    """
    large = files.large or 2 * files.target
    ends = [files.small // 16, files.small // 4, files.small, files.target, large]
    return sort_unique(np.array([end for end in ends if end > 0], np.int64))


def measure_layout(
    candidates: CandidateSlices,
    files: FileSizes,
    ranges: ColumnRanges | None = None,
    *,
    known: Floats | None = None,
) -> PartitionFigures:
    """Measure the newest slices.

    ``ranges``: statistics on the clustering columns; None: overlap is not measured. ``known``:
    float64 per partition of the files, overlaps that are already known, else NaN.
    """
    has_base = candidates.has_base
    codes = sort_unique(candidates.partition)
    overlap = np.full(len(candidates.view.files.partitions), np.nan)
    if known is not None:
        overlap[:] = known
    if ranges is not None:
        _measure_overlap(candidates, ranges, overlap)
    rows = np.zeros(len(candidates), np.int64)
    if ranges is not None:
        rows[has_base] = ranges.rows[candidates.base_row[has_base]]
    current = _EqualFiles(
        partition=candidates.partition[has_base],
        size=candidates.base[has_base],
        count=np.ones(int(has_base.sum()), np.int64),
    )
    rows = _sum_by_partition(candidates.partition, rows, codes)
    partitions = build_dictionary(codes, candidates.view.files.partitions)
    return _build_figures(partitions, current, files, rows, overlap[codes])


def predict_layout(
    decision: ClusteringDecision,
    files: FileSizes,
    sizes: RecordSize,
    ranges: ColumnRanges | None = None,
) -> LayoutForecast:
    """Predict the figures after a clustering. ``sizes``, ``ranges``: inputs of the decision.

    The files of a group get equal sizes, and they cover a row as often as files along the curve do
    (``estimate_curve_overlap``). Other files do not change. Rows that are equal in all columns may
    be in more files than predicted, because bounds do not show that.
    """
    candidates, groups = decision.candidates, decision.groups
    known = decision.triggers.overlap if decision.triggers is not None else None
    before = measure_layout(candidates, files, ranges, known=known)
    codes = sort_unique(candidates.partition)
    member = np.flatnonzero(decision.group_of >= 0)
    number = decision.group_of[member]
    count = len(groups)
    data_bytes = sizes.data_bytes(candidates.base[member], candidates.logs[member])
    data = _sum_by_key(number, data_bytes, count)
    first = np.full(count, len(candidates), np.int64)
    np.minimum.at(first, number, member)
    of_group = candidates.partition[np.minimum(first, max(len(candidates) - 1, 0))]
    stays = np.flatnonzero(candidates.has_base & (decision.group_of < 0))
    overlap = before.overlap.copy()
    if ranges is not None:
        _predict_overlap(decision, ranges, codes, overlap)
    new_size = sizes.fixed + data // groups.outputs
    new = _EqualFiles(
        partition=np.concatenate([candidates.partition[stays], of_group]),
        size=np.concatenate([candidates.base[stays], new_size]),
        count=np.concatenate([np.ones(len(stays), np.int64), groups.outputs]),
    )
    after = _build_figures(before.partition, new, files, before.rows, overlap)
    written = int((new_size * groups.outputs).sum())
    return LayoutForecast(before=before, after=after, bytes_written=written)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _EqualFiles:
    """Files given as ``count`` files of the same ``size`` in a ``partition``."""

    partition: Codes
    size: Integers
    count: Integers


def _build_figures(
    partitions: Any,
    equal: _EqualFiles,
    files: FileSizes,
    rows: Integers,
    overlap: Floats,
) -> PartitionFigures:
    """Build the figures of files; ``partitions``: pyarrow dictionary of those that have any."""
    codes, partition, count = dictionary_codes(partitions), equal.partition, equal.count
    below = size_classes(files)
    place = np.searchsorted(below, equal.size, side="right")
    return PartitionFigures(
        partition=partitions,
        files=_sum_by_partition(partition, count, codes),
        small=_sum_by_partition(partition, np.where(equal.size < files.small, count, 0), codes),
        bytes=_sum_by_partition(partition, count * equal.size, codes),
        rows=rows,
        overlap=overlap,
        sizes=SizeHistogram(
            upper_bounds=below,
            files=_sum_by_key(place, count, len(below) + 1),
            bytes=_sum_by_key(place, count * equal.size, len(below) + 1),
        ),
    )


def _sum_by_key(which: Integers, values: Integers, count: int) -> Integers:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, which, values)
    return sums


def _sum_by_partition(partition: Codes, values: Integers, codes: Codes) -> Integers:
    return _sum_by_key(np.searchsorted(codes, partition), values, len(codes))


def _measure_overlap(candidates: CandidateSlices, ranges: ColumnRanges, overlap: Floats) -> None:
    """Fill in the overlap of partitions that have none yet."""
    counts = count_measurable_files(candidates, ranges, len(overlap))
    counts = np.where(np.isnan(overlap), counts, 0)
    overlap[counts == 1] = 1.0
    for partitions, _slices, boxes in iterate_boxes(candidates, ranges, counts, 1):
        covered = boxes.covered_shares(boxes.sample_points()).sum(axis=1)
        overlap[partitions] = np.fmax(overlap[partitions], covered)


def _predict_overlap(
    decision: ClusteringDecision,
    ranges: ColumnRanges,
    codes: Codes,
    overlap: Floats,
) -> None:
    """Overwrite the overlap of rewritten partitions with the predicted one."""
    candidates, layout = decision.candidates, decision.layout
    covering = np.array(
        [
            estimate_curve_overlap(layout.curve, len(layout.columns), files)
            for files in decision.groups.outputs.tolist()
        ]
    )
    touched = sort_unique(candidates.partition[decision.group_of >= 0])
    for partition in touched.tolist():
        bases = candidates.bases_of(partition)
        place = int(np.searchsorted(codes, partition))
        if not np.isnan(overlap[place]):
            overlap[place] = max(
                predict_overlap(boxes, decision.group_of[bases], covering)
                for boxes in FileBoxes.on_scales(ranges, candidates.base_row[bases][None])
            )
