"""Select the writes and the file slices of an incremental read; pure.

Source: IncrementalQueryAnalyzer, MergeOnReadIncrementalRelationV1 and V2. The result is the table
at the end of the range, restricted to records whose last change is in the range.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reconciler.arrays import Mask
from reconciler.errors import BlockedError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.reader.slice_selection import ReadLimit, SliceSelection
from reconciler.state.model import TableState


def make_read_limit(state: TableState, end: str | None) -> ReadLimit:
    """Return which writes of the table count at the end of a range."""
    if end is None:
        return ReadLimit()
    by_name = state.table_version < LOGS_BY_COMPLETION
    return ReadLimit(requested=end) if by_name else ReadLimit(completed=end)


def find_commit_times(state: TableState, begin: str, end: str | None) -> tuple[str, ...]:
    """Return the requested times of the completed writes after ``begin`` up to ``end``, sorted.

    ``begin`` and ``end`` are requested times in version 6 and completion times later, as in Hudi.
    """
    limit = make_read_limit(state, end)
    requested_times = sorted(instant.requested for instant in state.timeline.commits)
    return tuple(
        time
        for time in requested_times
        if _get_range_time(state, time) > begin
        and limit.includes(time, state.completions.get(time))
    )


def check_range(state: TableState, begin: str, archived: Iterable[Instant]) -> None:
    """Raise BlockedError if writes after ``begin`` are archived, so their files are unknown.

    ``archived``: the completed archived instants. The message names the earliest possible begin.
    """
    version = state.table_version
    times = [
        instant.requested
        if version < LOGS_BY_COMPLETION
        else instant.completed or instant.requested
        for instant in archived
        if instant.action in COMMITS
    ]
    last = max(times, default="")
    if last > begin:
        raise BlockedError(
            f"{state.location}: writes after {begin} are archived, so their changes are unknown; "
            f"begin at {last} or later, or read the whole table"
        )


def find_touched_slices(
    picked: SliceSelection, state: TableState, write_times: tuple[str, ...]
) -> Mask:
    """Return a mask of the slices that may have a record of one of the writes.

    A base file holds records of its own and earlier writes. Log files of version 6 are only known
    when they are read.
    """
    files = picked.files
    if not write_times or not len(files):
        return np.zeros(len(picked), np.bool_)
    first = write_times[0]
    newer = np.array([instant >= first for instant in files.instants], np.bool_)
    base = picked.get_base_instants()
    touched = (base >= 0) & newer[base]
    if state.table_version < LOGS_BY_COMPLETION:
        return touched | picked.has_logs
    counted = frozenset(write_times)
    is_counted = np.array([instant in counted for instant in files.instants], np.bool_)
    return touched | picked.has_marked_log(is_counted[files.instant[picked.logs]])


def _get_range_time(state: TableState, requested: str) -> str:
    """Return the time of a write that ranges compare."""
    if state.table_version < LOGS_BY_COMPLETION:
        return requested
    return state.completions.get(requested, requested)
