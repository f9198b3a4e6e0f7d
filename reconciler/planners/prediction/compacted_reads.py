"""Predict what queries read of slices once they are compacted; pure.

The new base file of a slice has the values of its base file and of its log files. If rows of log
files were read, their ranges count too. Otherwise they are assumed to be within those of the base
file, and the error includes that the query may read the file all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask, to_arrow, to_numpy
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compact.log_figures import estimate_base_bytes
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.prediction.current_reads import CurrentReads, build_slice_index
from reconciler.planners.prediction.file_reads import find_reads
from reconciler.planners.prediction.merge_costs import SliceMerges
from reconciler.planners.prediction.sample_statistics import SampleStatistics
from reconciler.state.sampling.model import ForecastInput

#: relative error of the size of a new base file, as for files of a clustering, and the share of the
#: bytes of log files by which it grows at most, if nothing tells how many rows are new
_SIZE_ERROR: Final = 0.1
_GROWTH_OF_LOGS: Final = 0.35


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactedReads:
    """What queries read of compacted slices.

    ``is_compacted``: bool per slice. ``kept``: bool, queries by slices, whether a query reads what
    a slice has become. ``sizes``: int64 per slice, bytes of that. ``spread``: float64, (2,
    queries), by how many files and bytes the prediction may be off.
    """

    is_compacted: Mask
    kept: Mask
    sizes: Integers
    spread: Floats


def predict_compaction(
    current: CurrentReads,
    forecast_input: ForecastInput,
    slices: CandidateSlices,
    merges: SliceMerges,
    is_compacted: Mask,
) -> CompactedReads:
    """Return the reads after some slices were compacted; the others are read as today."""
    sizes = np.where(is_compacted, estimate_base_bytes(slices), slices.bytes)
    by_values, is_known = _find_by_values(current, forecast_input, slices)
    kept = np.where(is_compacted, by_values, current.reads.kept)
    is_unsure = is_compacted & ~is_known & current.reads.kept & ~kept
    growth = np.where(is_compacted, _bound_growth(slices, merges), 0.0)
    compacted = kept & is_compacted
    return CompactedReads(
        is_compacted=is_compacted,
        kept=kept,
        sizes=sizes,
        spread=np.stack(
            [
                is_unsure.sum(axis=1).astype(np.float64),
                is_unsure @ sizes + compacted @ (_SIZE_ERROR * sizes + growth),
            ]
        ),
    )


def _bound_growth(slices: CandidateSlices, merges: SliceMerges) -> Floats:
    """Return by how many bytes each new base file may be greater than the old one."""
    most = slices.logs * _GROWTH_OF_LOGS
    is_known = (merges.inserts >= 0) & (merges.base_rows > 0)
    share = merges.inserts / np.maximum(merges.base_rows, 1)
    growth = np.where(is_known, np.minimum(slices.base * share, most), most)
    return np.asarray(np.where(slices.has_base, growth, most))


def _find_by_values(
    current: CurrentReads, forecast_input: ForecastInput, slices: CandidateSlices
) -> tuple[Mask, Mask]:
    """Return whether a row of each new base file may match, queries by slices.

    The second value is a mask of the slices whose values are known, also those of their log files.
    """
    index = forecast_input.index
    assert index is not None, "current reads are known"
    logs = forecast_input.logs
    sample = None if logs is None else logs.sample
    if sample is None:
        return current.kept_by_base, np.zeros(len(slices), np.bool_)
    has_rows = np.isin(slices.group, sample.groups)
    place = np.full(int(slices.group.max(initial=-1)) + 1, -1, np.int64)
    place[slices.group] = np.arange(len(slices))
    of_row = place[sample.group] if len(sample.group) else np.zeros(0, np.int64)
    statistics = SampleStatistics.build(sample.rows, current.wheres)
    built, _ = statistics.build_index(of_row, len(slices))
    whole = np.arange(len(built) - len(slices), len(built))
    base = build_slice_index(forecast_input, index, slices, slices.has_base)
    columns = {
        name: _unite(stats, built.columns[name].take(whole), slices.has_base, has_rows)
        for name, stats in base.columns.items()
        if name in built.columns and built.columns[name].type == stats.type
    }
    united: FileIndex = replace(base, columns={**base.columns, **columns})
    reads = find_reads(
        current.wheres,
        united,
        slices.bytes,
        schema=forecast_input.schema,
        zone=forecast_input.zone,
    )
    return reads.kept, has_rows


def _unite(base: ColumnStats, logs: ColumnStats, has_base: Mask, has_logs: Mask) -> ColumnStats:
    """Return the statistics of files that have the rows of a base file and of log files."""
    is_empty = ~has_base | base.is_all_null
    is_alone = ~has_logs | to_numpy(logs.least.is_null())
    outer = to_arrow(is_empty), to_arrow(is_alone)
    return ColumnStats(
        least=_choose(base.least, logs.least, pc.less, *outer),
        greatest=_choose(base.greatest, logs.greatest, pc.greater, *outer),
        nulls=_add_known(base.nulls, logs.nulls, has_base, has_logs),
        values=_add_known(base.values, logs.values, has_base, has_logs),
        is_exact_least=(base.is_exact_least | is_empty) & (logs.is_exact_least | is_alone),
        is_exact_greatest=(base.is_exact_greatest | is_empty) & (logs.is_exact_greatest | is_alone),
        is_nan_free=(base.is_nan_free | ~has_base) & (logs.is_nan_free | ~has_logs),
    )


def _choose(first: Any, second: Any, is_beyond: Any, is_empty: Any, is_alone: Any) -> Any:
    """Return the outer one of two bounds; null if that of the base file is unknown.

    ``is_empty``: the first has no value, so the second counts; ``is_alone``: the other way round.
    """
    outer = pc.if_else(is_beyond(first, second), first, second)
    return pc.if_else(is_alone, first, pc.if_else(is_empty, second, outer))


def _add_known(base: Integers, logs: Integers, has_base: Mask, has_logs: Mask) -> Integers:
    """Return sums of counts, -1 where one is unknown."""
    first = np.where(has_base, base, 0)
    second = np.where(has_logs, logs, 0)
    return np.where((first < 0) | (second < 0), UNKNOWN, first + second)
