"""Measure what the declared queries read today and find the queries over ``maxScan``; pure.

A query reads a slice unless the statistics of its base file or the values in its partition path
exclude it. A slice with log files is read unless statistics exclude these too (``log_skips``), and
one without statistics is always read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.clustering_input import MaxScanDemand
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.prediction.file_reads import FileReads, add_partition_values, find_reads
from reconciler.planners.prediction.log_skips import find_skipped_slices
from reconciler.spec.model import Query, TableSpec
from reconciler.state.sampling.model import ForecastInput

WARNING_RULE: Final = "maxScan"
#: least reduction of reads for which slices are rewritten if a query stays above its limit
MIN_GAIN: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurrentReads:
    """The reads of queries from the newest slices. ``table_bytes``: bytes of all of these.

    ``kept_by_base``: bool, queries by slices, what they would read without log files, which shows
    whether the row order is the reason.
    """

    queries: tuple[Query, ...]
    reads: FileReads
    kept_by_base: Mask
    table_bytes: int

    @property
    def wheres(self) -> tuple[str, ...]:
        """Return the predicates of the queries."""
        return tuple(query.where for query in self.queries)

    @property
    def exceeding(self) -> Integers:
        """Return the positions of the queries that read more than their ``maxScan``."""
        limits = [np.inf if q.max_scan is None else q.max_scan for q in self.queries]
        return np.flatnonzero(self.reads.bytes > np.array(limits) * max(self.table_bytes, 1))

    def share(self, query: int) -> float:
        """Return the share of the table's bytes that a query reads."""
        return float(self.reads.bytes[query]) / max(self.table_bytes, 1)


def measure_reads(
    spec: TableSpec, forecast_input: ForecastInput, candidates: CandidateSlices
) -> CurrentReads | None:
    """Return what every query reads now; None if too little is known of the files."""
    index = forecast_input.index
    if index is None:
        return None
    where = tuple(query.where for query in spec.queries)
    sizes = candidates.bytes
    log_files = np.bincount(candidates.log_slice, minlength=len(candidates))
    has_logs = log_files > 0

    def read(is_able: Mask) -> FileReads:
        slices = build_slice_index(forecast_input, index, candidates, is_able)
        return find_reads(
            where, slices, sizes, schema=forecast_input.schema, zone=forecast_input.zone
        )

    reads = read(candidates.has_base & ~has_logs)
    by_base = read(candidates.has_base).kept if has_logs.any() else reads.kept
    is_there = candidates.has_base | has_logs
    kept = reads.kept & is_there & ~find_skipped_slices(where, forecast_input, candidates)
    reads = FileReads(kept=kept, files=kept.sum(axis=1), bytes=kept @ sizes)
    return CurrentReads(
        queries=spec.queries, reads=reads, kept_by_base=by_base, table_bytes=int(sizes.sum())
    )


def can_skip_slices(
    current: CurrentReads, forecast_input: ForecastInput, candidates: CandidateSlices
) -> bool:
    """Return whether statistics spare a query a slice that its partition does not spare it.

    Slices whose log files alone make a query read them count as spared: a compaction ends that.
    """
    assert forecast_input.index is not None, "current reads are known"
    nothing = np.zeros(len(candidates), np.bool_)
    slices = build_slice_index(forecast_input, forecast_input.index, candidates, nothing)
    by_partition = find_reads(
        current.wheres,
        slices,
        candidates.bytes,
        schema=forecast_input.schema,
        zone=forecast_input.zone,
    )
    return bool((by_partition.kept & ~(current.reads.kept & current.kept_by_base)).any())


def find_demand(current: CurrentReads) -> MaxScanDemand | None:
    """Return what to rewrite for the queries over their ``maxScan``; None if there are none."""
    exceeding = current.exceeding
    if not len(exceeding):
        return None
    is_read: Mask = np.asarray(current.reads.kept[exceeding].any(axis=0))
    first = int(exceeding[0])
    query = current.queries[first]
    others = f" (and {len(exceeding) - 1} more)" if len(exceeding) > 1 else ""
    reason = (
        f"query {query.name!r} reads {format_percent(current.share(first))} of the table's bytes, "
        f"more than its maxScan of {format_percent(query.max_scan or 0.0)}{others}"
    )
    return MaxScanDemand(is_read=is_read, reason=reason)


def format_percent(share: float) -> str:
    """Format a share as a percentage.

    >>> format_percent(0.05), format_percent(0.0434), format_percent(0.271), format_percent(0.00012)
    ('5 %', '4.3 %', '27 %', '0.012 %')
    """
    return f"{float(f'{share * 100:.2g}'):g} %"


def build_slice_index(
    forecast_input: ForecastInput,
    index: FileIndex,
    candidates: CandidateSlices,
    is_able: Mask,
) -> FileIndex:
    """Return the statistics of slices, in their order; some are unknown except their partition.

    ``is_able``: per slice, whether the statistics of its base file are valid for the slice.
    """
    rows = forecast_input.rows
    at = np.minimum(np.searchsorted(rows, candidates.base_row), max(len(rows) - 1, 0))
    is_known = is_able & (rows[at] == candidates.base_row) if len(rows) else np.zeros_like(is_able)
    at = np.where(is_known, at, 0)
    columns = {name: _take_known(stats, at, is_known) for name, stats in index.columns.items()}
    partition_values = {
        name: col.take(to_arrow(candidates.partition))
        for name, col in forecast_input.partition_values.items()
    }
    slice_index = FileIndex(
        partition=to_arrow([""] * len(candidates)).dictionary_encode(),
        name=to_arrow([""] * len(candidates)),
        size=candidates.bytes,
        rows=np.where(is_known, index.rows[at] if len(rows) else -1, UNKNOWN),
        columns=columns,
    )
    return add_partition_values(slice_index, partition_values)


def _take_known(stats: ColumnStats, at: Integers, is_known: Mask) -> ColumnStats:
    """Return the statistics at these positions, unknown if there are none."""
    unknown = ColumnStats.unknown(stats.type, 1)
    both = ColumnStats.concat([stats, unknown])
    return both.take(np.where(is_known, at, len(stats)))
