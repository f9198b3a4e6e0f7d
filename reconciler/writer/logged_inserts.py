"""Find out whether log files of a merge-on-read table may hold rows that no base file has.

Writers whose index finds rows in log files put new rows there, and the statistics of their writes
say so. Where those are archived, log files are searched for keys.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.state.model import TableState

#: how many writes tell the size of a record
NEWEST_WRITES: Final = 20


def count_telling_writes(state: TableState, groups: FileGroupSizes) -> int:
    """Return how many of the newest writes tell record sizes, and what is in current log files."""
    oldest = _find_oldest_log(state, groups)
    if oldest is None:
        return NEWEST_WRITES
    return max(NEWEST_WRITES, len(state.timeline.completed_files(COMMITS, since=oldest)))


def has_archived_logs(state: TableState, groups: FileGroupSizes) -> bool:
    """Return True if writes of current log files may be archived.

    Before version 8 names tell only when the slice began.
    """
    oldest, commits = _find_oldest_log(state, groups), state.timeline.commits
    return oldest is not None and bool(commits) and oldest < commits[0].requested


def _find_oldest_log(state: TableState, groups: FileGroupSizes) -> str | None:
    """Return the oldest instant that may have written a current log file, None without any."""
    if state.table_version < LOGS_BY_COMPLETION:
        logged = groups.slice_start[np.flatnonzero(groups.is_live & (groups.log_files > 0))]
        return groups.instants[int(logged.min())] if len(logged) else None
    files, view = state.files, state.view
    is_log = view.is_current[view.row_slice] & (files.kind == FileKind.LOG)
    written = {files.instants[code] for code in np.unique(files.instant[is_log]).tolist()}
    return min(written, default=None)
