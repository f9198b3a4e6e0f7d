"""Find the slices with log files that queries skip, by the rules of reads; pure.

A read skips such a slice if the table's own index excludes its base file and Hudi's column_stats
exclude every log file (``reader.skipping``, ``reader.log_statistics``). Other statistics of a base
file decide nothing, because readers do not use them for slices with log files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reconciler.arrays import Codes, Integers, Mask, to_arrow
from reconciler.index.may_match import find_used_columns, may_match
from reconciler.index.model import FileIndex
from reconciler.index.predicate_columns import find_predicate_columns
from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import Predicate
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.planners.prediction.file_reads import add_partition_values
from reconciler.state.sampling.model import ForecastInput, LogFacts


def find_skipped_slices(
    wheres: tuple[str, ...], forecast_input: ForecastInput, slices: CandidateSlices
) -> Mask:
    """Return queries by slices: whether statistics exclude the base file and all log files."""
    skipped = np.zeros((len(wheres), len(slices)), np.bool_)
    logs = forecast_input.logs
    if logs is None or logs.statistics is None or logs.indexed is None:
        return skipped
    skips = _LogSkips(forecast_input, slices, logs)
    for nth, where in enumerate(wheres):
        skipped[nth] = skips.find(parse(where))
    return skipped


class _LogSkips:
    """The statistics of base and log files of the slices with log files."""

    def __init__(
        self, forecast_input: ForecastInput, slices: CandidateSlices, logs: LogFacts
    ) -> None:
        assert logs.statistics is not None
        assert logs.indexed is not None
        assert logs.is_indexed is not None
        self._input = forecast_input
        self._slices = slices
        at = np.searchsorted(forecast_input.rows, slices.base_row)
        at = np.where(slices.has_base, np.minimum(at, max(len(forecast_input.rows) - 1, 0)), 0)
        self._known = np.flatnonzero(slices.has_base & _take(logs.is_indexed, at))
        self._own = _take_files(logs.indexed, at[self._known])
        of_logs = np.searchsorted(logs.files, slices.log_row)
        self._logs = _take_files(logs.statistics, of_logs)
        self._has_logs = np.bincount(slices.log_slice, minlength=len(slices)) > 0

    def find(self, predicate: Predicate) -> Mask:
        """Return the slices with log files that a query skips."""
        named = find_predicate_columns(predicate, self._input.schema)
        in_files = [name for name in named if name not in self._input.partition_values]
        is_told = any(name in self._logs.columns for name in in_files)
        if not is_told or not any(name in self._own.columns for name in in_files):
            return np.zeros(len(self._slices), np.bool_)
        own = self._add_partitions(self._own, self._slices.partition[self._known])
        may = self._may_match(predicate, own)
        used = find_used_columns(
            predicate, own, schema=self._input.schema, zone=self._input.zone
        ) - set(self._input.partition_values)
        if not used and may.all():
            return np.zeros(len(self._slices), np.bool_)
        excluded = ~self._slices.has_base
        excluded[self._known[~may]] = True
        partition = self._slices.partition[self._slices.log_slice]
        may_log = self._may_match(predicate, self._add_partitions(self._logs, partition))
        excluded[self._slices.log_slice[may_log]] = False
        found: Mask = excluded & self._has_logs
        return found

    def _may_match(self, predicate: Predicate, index: FileIndex) -> Mask:
        return may_match(predicate, index, schema=self._input.schema, zone=self._input.zone)

    def _add_partitions(self, index: FileIndex, partition: Codes) -> FileIndex:
        codes = to_arrow(partition)
        values = self._input.partition_values
        return add_partition_values(
            index, {name: column.take(codes) for name, column in values.items()}
        )


def _take(mask: Mask, at: Integers) -> Mask:
    taken: Mask = mask[at] if len(mask) else np.zeros(len(at), np.bool_)
    return taken


def _take_files(index: FileIndex, at: Integers) -> FileIndex:
    """Return some files of an index, without their names."""
    blank: Any = to_arrow([""] * len(at))
    return replace(
        index,
        partition=blank.dictionary_encode(),
        name=blank,
        size=index.size[at],
        rows=index.rows[at],
        columns={name: stats.take(at) for name, stats in index.columns.items()},
    )
