"""Find files of the newest write that are gone, so that a read does not show older rows.

Hudi lists files by its metadata table and fails to open such a file. A listing of folders lacks it,
and older rows of its file group, or none, would be read. Only the newest write is checked: every
write before it would cost a read of its commit.
"""

from __future__ import annotations

from typing import Final

from reconciler.errors import FormatError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import TimelineFile
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.state.model import TableState
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.recovery.damaged_files import REMEDY, find_files_lost_of

#: a bigger commit takes longer to decode than it is worth
_MAX_BYTES: Final = 4 * 1024 * 1024


class LostFileError(FormatError):
    """A file of the newest write is gone, and nothing has replaced it."""


def check_newest_write(storage: Storage, properties: TableProperties, state: TableState) -> None:
    """Raise LostFileError if a file of the newest completed write is gone from its slice."""
    newest = _find_newest(state)
    if newest is None or newest.size > _MAX_BYTES:
        return
    found = find_files_lost_of(storage, properties, state, newest)
    lost = [
        make_file_path(folder, name)
        for (folder, _), name in sorted(found.items())
        if name not in {entry.name for entry in list_if_exists(storage, folder)}
    ]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        write = f"{newest.instant.action.value} {newest.instant.requested}"
        problem = f"is gone{more}, which {write} wrote; a read would show older rows"
        raise LostFileError(lost[0], problem, REMEDY)


def _find_newest(state: TableState) -> TimelineFile | None:
    """Return the completed file of the write that completed last."""
    completed = state.timeline.completed_files(COMMITS)

    def end(file: TimelineFile) -> str:
        return state.completions.get(file.instant.requested) or file.instant.requested

    return max(completed, key=end, default=None)
