"""Count what queries merge: slices, whole log files, and the rows that go through the merge; pure.

A read takes every log file of a slice whole, because blocks of rows have neither columns nor
statistics of their own, and every row of the base file, because a log record may replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.index.model import UNKNOWN
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.state.sampling.model import ForecastInput


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceMerges:
    """What a read of each slice merges; int64, an element per slice.

    ``files``, ``bytes``: its log files. ``records``: records and deletions in these; ``inserts``:
    those of new rows; ``base_rows``: rows of the base file; -1 if unknown, 0 without.
    """

    files: Integers
    bytes: Integers
    records: Integers
    inserts: Integers
    base_rows: Integers

    @property
    def rows(self) -> Integers:
        """Return the rows that go through the merge of each slice, -1 if unknown."""
        is_known = (self.records >= 0) & (self.base_rows >= 0)
        return np.where(is_known, self.records + self.base_rows, UNKNOWN)

    def count(self, kept: Mask) -> tuple[MergeCost, ...]:
        """Return what each query merges; ``kept``: bool, queries by slices, what each reads."""
        rows = self.rows
        costs = []
        for is_read in kept & (self.files > 0):
            is_known = bool((rows[is_read] >= 0).all())
            costs.append(
                MergeCost(
                    slices=int(is_read.sum()),
                    files=int(self.files[is_read].sum()),
                    bytes=int(self.bytes[is_read].sum()),
                    rows=int(rows[is_read].sum()) if is_known else None,
                )
            )
        return tuple(costs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCost:
    """What one query merges.

    ``slices``: file slices with log files; ``files``, ``bytes``: these log files, read whole;
    ``rows``: rows of the base files and records of the log files, None if unknown.
    """

    slices: int = 0
    files: int = 0
    bytes: int = 0
    rows: int | None = 0


def measure_merges(forecast_input: ForecastInput, slices: CandidateSlices) -> SliceMerges:
    """Return what a read of each slice merges."""
    logs, count = forecast_input.logs, len(slices)
    records, inserts = (np.full(len(slices.log_row), UNKNOWN, np.int64) for _ in range(2))
    if logs is not None and len(slices.log_row):
        at = np.searchsorted(logs.files, slices.log_row)
        records, inserts = logs.records[at], logs.inserts[at]
    return SliceMerges(
        files=np.bincount(slices.log_slice, minlength=count).astype(np.int64),
        bytes=slices.logs,
        records=_sum_known(records, slices),
        inserts=_sum_known(inserts, slices),
        base_rows=_count_base_rows(forecast_input, slices),
    )


def _sum_known(values: Integers, slices: CandidateSlices) -> Integers:
    """Return the sums of log files by slice, -1 for a slice with an unknown value."""
    count = len(slices)
    total = np.bincount(slices.log_slice, values, minlength=count).astype(np.int64)
    unknown = np.bincount(slices.log_slice, values < 0, minlength=count) > 0
    return np.where(unknown, UNKNOWN, total)


def _count_base_rows(forecast_input: ForecastInput, slices: CandidateSlices) -> Integers:
    index, rows = forecast_input.index, forecast_input.rows
    counts = np.where(slices.has_base, UNKNOWN, 0).astype(np.int64)
    if index is None or not len(rows):
        return counts
    at = np.minimum(np.searchsorted(rows, slices.base_row), len(rows) - 1)
    is_known = slices.has_base & (rows[at] == slices.base_row)
    return np.where(is_known, index.rows[at], counts)


def add_merges(
    predictions: Sequence[Mapping[str, Any]],
    before: Sequence[MergeCost],
    after: Sequence[MergeCost],
) -> tuple[Mapping[str, Any], ...]:
    """Return the predictions with what each query merges, if it merges anything today."""
    return tuple(
        {**one, "merging": _describe(now, then)} if now.slices else one
        for one, now, then in zip(predictions, before, after, strict=True)
    )


def _describe(now: MergeCost, then: MergeCost) -> dict[str, int | None]:
    return {
        "slicesBefore": now.slices,
        "slicesAfter": then.slices,
        "logFilesBefore": now.files,
        "logFilesAfter": then.files,
        "logBytesBefore": now.bytes,
        "logBytesAfter": then.bytes,
        "rowsBefore": now.rows,
        "rowsAfter": then.rows,
    }
