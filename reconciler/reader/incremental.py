"""What an incremental read needs: the writes between two times, and the slices they wrote to; pure.

Source: IncrementalQueryAnalyzer, MergeOnReadIncrementalRelationV1 and V2. The answer is what the
table held at the end of the range, of it the records whose last change lies in the range.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from reconciler.errors import BlockedError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.reader.slice_selection import ReadLimit, SliceSelection
from reconciler.state.model import TableState


def make_read_limit(state: TableState, end: str | None) -> ReadLimit:
    """What is seen of the table at the end of a range."""
    if end is None:
        return ReadLimit()
    by_name = state.table_version < LOGS_BY_COMPLETION
    return ReadLimit(requested=end) if by_name else ReadLimit(completed=end)


def find_commit_times(state: TableState, begin: str, end: str | None) -> tuple[str, ...]:
    """The completed writes after ``begin`` up to ``end``, by their requested times, sorted.

    ``begin`` and ``end`` are requested times in version 6 and completion times later, as Hudi
    takes them.
    """
    until = make_read_limit(state, end)
    times = (_get_times(state, i.requested) for i in state.timeline.commits)
    return tuple(
        sorted(
            requested
            for requested, moment in times
            if moment > begin and until.includes(requested, state.completions.get(requested))
        )
    )


def check_range(state: TableState, begin: str, archived: Iterable[Instant]) -> None:
    """Raises BlockedError when writes after ``begin`` are archived: what they wrote is not known.

    ``archived``: the completed archived instants. The message names the earliest possible begin.
    """
    version = state.table_version
    moments = [
        i.requested if version < LOGS_BY_COMPLETION else i.completed or i.requested
        for i in archived
        if i.action in COMMITS
    ]
    last = max(moments, default="")
    if last > begin:
        raise BlockedError(
            f"{state.location}: writes after {begin} are archived, so what changed since then is "
            f"not known; begin at {last} or later, or read the whole table"
        )


def find_touched_slices(
    picked: SliceSelection, state: TableState, times: tuple[str, ...]
) -> NDArray[np.bool_]:
    """Per slice whether a write of ``times`` may have a record in it.

    A base file holds records of writes up to its own; what a log file of version 6 holds is seen
    when it is read.
    """
    files = picked.files
    if not times or not len(files):
        return np.zeros(len(picked), np.bool_)
    first = times[0]
    newer = np.array([instant >= first for instant in files.instants], np.bool_)
    base = picked.get_base_instants()
    touched = (base >= 0) & newer[base]
    if state.table_version < LOGS_BY_COMPLETION:
        return touched | picked.has_logs
    known = frozenset(times)
    counts = np.array([instant in known for instant in files.instants], np.bool_)
    return touched | picked.has_marked_log(counts[files.instant[picked.logs]])


def _get_times(state: TableState, requested: str) -> tuple[str, str]:
    """The requested time of a write and the one that ranges compare."""
    if state.table_version < LOGS_BY_COMPLETION:
        return requested, requested
    return requested, state.completions.get(requested, requested)
