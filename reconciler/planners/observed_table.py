"""Describe the table that a plan is made from; pure."""

from __future__ import annotations

from reconciler.hudi.files.table_files import FileKind
from reconciler.planners.picture import TablePicture
from reconciler.plans.model import Observed, PendingInstant
from reconciler.state.current_files import mark_read_files


def describe_state(picture: TablePicture) -> Observed:
    """Return the version, the instants and the files of a table, for its plan."""
    state, view, small = picture.state, picture.view, picture.file_sizes.small
    files, timeline = state.files, state.timeline
    is_read = mark_read_files(view) & (files.kind == FileKind.BASE)
    last = max((i.requested for i in timeline.instants if i.is_completed), default=None)
    newest = max((i.requested for i in timeline.commits), default=None)
    return Observed(
        table_version=state.table_version,
        table_type=state.table_type,
        last_completed=last,
        pending=tuple(
            PendingInstant(i.requested, i.action.value, i.state.value)
            for i in timeline.instants
            if not i.is_completed
        ),
        savepoints=tuple(s.instant for s in state.savepoints if s.completed),
        files=len(files),
        bytes=int(files.size.sum()),
        small_files=int((is_read & (files.size < small)).sum()),
        newest_write=None if newest == last else newest,
    )
