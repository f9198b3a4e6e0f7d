"""What the declared queries read today, and which slices may be rewritten for ``maxScan``; pure.

A query reads a slice unless the statistics of its base file rule that out, or what its partition's
path says. Slices with log files are read whatever the base file says, and so are those of log files
alone, and those whose base file tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import to_integer_array, to_string_array
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.planners.cluster.grouping import SliceGroups
from reconciler.planners.prediction.file_reads import FileReads, add_partition_values, find_reads
from reconciler.spec.model import Query, TableSpec
from reconciler.state.sampling.model import ForecastInput

WARNING_RULE: Final = "maxScan"
#: what is rewritten for a query that stays above its limit is read at least so much less
LEAST_GAIN: Final = 0.1

#: which of some groups, given with the files that each becomes and, per slice, whether it is laid
#: out as declared, are worth a rewrite
GainCheck = Callable[[SliceGroups, NDArray[np.int64], NDArray[np.bool_]], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurrentReads:
    """What queries read of the newest slices. ``table_bytes``: bytes of all of these.

    ``kept_by_base``: bool, queries by slices, what they would read if log files said nothing: whether
    the order of the rows is to blame.
    """

    queries: tuple[Query, ...]
    reads: FileReads
    kept_by_base: NDArray[np.bool_]
    table_bytes: int

    @property
    def exceeding(self) -> NDArray[np.int64]:
        """Places of the queries that read more than their ``maxScan``."""
        limits = [np.inf if q.max_scan is None else q.max_scan for q in self.queries]
        found: NDArray[np.int64] = np.flatnonzero(
            self.reads.bytes > np.array(limits) * max(self.table_bytes, 1)
        )
        return found

    def share(self, query: int) -> float:
        """Of the table's bytes, what a query reads."""
        return float(self.reads.bytes[query]) / max(self.table_bytes, 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaxScanDemand:
    """Why slices are rewritten for a ``maxScan``.

    ``mark_read_slices``: per slice, a query reads it that reads too much. ``gains``: which groups of them
    it is worth it for; None: not known yet, all. ``reason``: the reason.
    """

    is_read: NDArray[np.bool_]
    reason: str
    gains: GainCheck | None = None


def measure_reads(
    spec: TableSpec, forecast_input: ForecastInput, candidates: CandidateSlices
) -> CurrentReads | None:
    """What every query reads now; None where not enough is known of the files."""
    index = forecast_input.index
    if index is None:
        return None
    where = tuple(query.where for query in spec.queries)
    sizes, has_logs = candidates.bytes, candidates.logs > 0

    def read(is_able: NDArray[np.bool_]) -> FileReads:
        slices = _slice_index(forecast_input, index, candidates, is_able)
        return find_reads(
            where, slices, sizes, schema=forecast_input.schema, zone=forecast_input.zone
        )

    told = read(candidates.has_base & ~has_logs)
    by_base = read(candidates.has_base).kept if has_logs.any() else told.kept
    return CurrentReads(
        queries=spec.queries, reads=told, kept_by_base=by_base, table_bytes=int(sizes.sum())
    )


def find_demand(current: CurrentReads) -> MaxScanDemand | None:
    """What may be rewritten for the queries that read too much; None where none does."""
    exceeding = current.exceeding
    if not len(exceeding):
        return None
    is_read: NDArray[np.bool_] = np.asarray(current.reads.kept[exceeding].any(axis=0))
    first = int(exceeding[0])
    query = current.queries[first]
    others = f" (and {len(exceeding) - 1} more)" if len(exceeding) > 1 else ""
    says = (
        f"query {query.name!r} reads {format_percent(current.share(first))} of the table's bytes, more than "
        f"its maxScan of {format_percent(query.max_scan or 0.0)}{others}"
    )
    return MaxScanDemand(is_read=is_read, reason=says)


def format_percent(share: float) -> str:
    """A share as people write it.

    >>> percent(0.05), percent(0.0434), percent(0.271), percent(0.00012)
    ('5 %', '4.3 %', '27 %', '0.012 %')
    """
    return f"{float(f'{share * 100:.2g}'):g} %"


def _slice_index(
    foresight: ForecastInput, index: FileIndex, found: CandidateSlices, is_able: NDArray[np.bool_]
) -> FileIndex:
    """The statistics of slices, in their order; of some nothing is known but where they are.

    ``is_able``: per slice whether the statistics of its base file are its own.
    """
    rows = foresight.rows
    at = np.minimum(np.searchsorted(rows, found.base_row), max(len(rows) - 1, 0))
    is_told = is_able & (rows[at] == found.base_row) if len(rows) else np.zeros_like(is_able)
    at = np.where(is_told, at, 0)
    columns = {name: _take_known(stats, at, is_told) for name, stats in index.columns.items()}
    said = {
        name: col.take(to_integer_array(found.partition))
        for name, col in foresight.partition_values.items()
    }
    own = FileIndex(
        partition=to_string_array([""] * len(found)).dictionary_encode(),
        name=to_string_array([""] * len(found)),
        size=found.bytes,
        rows=np.where(is_told, index.rows[at] if len(rows) else -1, UNKNOWN),
        columns=columns,
    )
    return add_partition_values(own, said)


def _take_known(
    stats: ColumnStats, at: NDArray[np.int64], is_told: NDArray[np.bool_]
) -> ColumnStats:
    """The statistics at places, unknown where they are not told."""
    unknown = ColumnStats.unknown(stats.type, 1)
    both = ColumnStats.concat([stats, unknown])
    return both.take(np.where(is_told, at, len(stats)))
