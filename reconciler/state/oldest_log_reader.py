"""Find the oldest log file that readers merge.

From version 8 on its name has the instant of its write. In version 6 it has that of its slice, so
the writes since then are read until one tells of a log file that is still merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconciler.errors import FormatError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_properties
from reconciler.state.current_files import find_committed_instants, find_newest_logs
from reconciler.state.log_sizes import find_first_write
from reconciler.state.oldest_log import OldestLog

if TYPE_CHECKING:
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: most writes that are read for the age of a log file of version 6
_MAX_WRITES: Final = 50


def find_oldest_log(storage: Storage, state: TableState) -> OldestLog | None:
    """Return the oldest log file of the current slices; None if there is none, or nothing tells.

    Raises StorageError, and NotFoundError if the timeline has changed.
    """
    files = state.files
    logs = find_newest_logs(state.view)
    if len(logs):
        logs = logs[find_committed_instants(state)[files.instant[logs]]]
    if not len(logs):
        return None
    named = files.instants[int(files.instant[logs].min())]
    if state.table_version >= LOGS_BY_COMPLETION:
        return OldestLog(instant=named, is_exact=True)
    keys = frozenset(
        (files.partitions[code], files.name[row].as_py())
        for code, row in zip(files.partition[logs].tolist(), logs.tolist(), strict=True)
    )
    try:
        found = find_first_write(
            storage, load_properties(storage), state.timeline, keys, most=_MAX_WRITES
        )
    except FormatError:  # a damaged write, which a plan names if it matters
        return None
    if found is None:
        return None
    return OldestLog(instant=found, is_exact=named >= (state.timeline.start or ""))
