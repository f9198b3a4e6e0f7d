"""Measure the log files of file slices: their bytes, their number and their age; pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import numpy as np

from reconciler.arrays import Floats, Integers, Mask
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices, find_candidates
from reconciler.state.model import TableState

#: bytes of a base file by those of the log files it is made of; Hudi's
#: hoodie.logfile.to.parquet.compression.ratio
_BASE_SHARE_OF_LOGS: Final = 0.35


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFigures:
    """The newest slices and what their log files come to; arrays have an element per slice.

    ``files``: log files. ``oldest``: the instant of the oldest one, at least as old as the file;
    empty for a slice without. In version 6, whose names do not tell, it is that of the first
    deltacommit on the active timeline since the slice began.
    """

    slices: CandidateSlices
    files: Integers
    oldest: tuple[str, ...]

    @property
    def has_logs(self) -> Mask:
        has_logs: Mask = self.files > 0
        return has_logs

    @property
    def share(self) -> Floats:
        """Return the share of each slice's bytes that its log files have; 0 for empty ones."""
        share: Floats = self.slices.logs / np.maximum(self.slices.bytes, 1)
        return share

    def estimate_written(self) -> Integers:
        """Return about how many bytes the new base file of each slice has."""
        return estimate_base_bytes(self.slices)

    def count_io(self, target_bytes: int) -> Integers:
        """Return the bytes that compacting each slice reads and writes, as Hudi counts them.

        ``target_bytes``: what a slice without a base file is expected to write. Source:
        FileSliceMetricUtils; it drops fractions of a MiB of each slice.
        """
        written = np.where(self.slices.has_base, self.slices.base, target_bytes)
        io: Integers = self.slices.bytes + written
        return io


def estimate_base_bytes(slices: CandidateSlices) -> Integers:
    """Return about how many bytes the base file of each slice has once it is compacted."""
    of_logs = (slices.logs * _BASE_SHARE_OF_LOGS).astype(np.int64)
    return np.where(slices.has_base, slices.base, of_logs)


def measure_logs(state: TableState) -> LogFigures:
    """Return the newest slices of a table with the figures of their log files."""
    slices = find_candidates(state)
    return LogFigures(
        slices=slices,
        files=np.bincount(slices.log_slice, minlength=len(slices)),
        oldest=_find_oldest(slices, state),
    )


def _find_oldest(slices: CandidateSlices, state: TableState) -> tuple[str, ...]:
    files = slices.view.files
    oldest = [""] * len(slices)
    which, first = np.unique(slices.log_slice, return_index=True)
    by_name = state.table_version >= LOGS_BY_COMPLETION
    writes = sorted(i.requested for i in state.timeline.completed({Action.DELTACOMMIT}))
    rows = slices.log_row[first]
    named = zip(which.tolist(), files.instant[rows].tolist(), strict=True)
    for number, code in named:
        instant = files.instants[code]
        if not by_name and slices.base_row[number] >= 0:
            at = bisect_right(writes, instant)
            instant = writes[at] if at < len(writes) else instant
        oldest[number] = instant
    return tuple(oldest)
