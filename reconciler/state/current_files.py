"""Find the files that a read of the current table needs, for indexes and forecasts; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from reconciler.arrays import Integers, Mask, sort_unique, to_arrow
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView

if TYPE_CHECKING:
    from reconciler.state.model import TableState


def find_newest_bases(view: FileView) -> Integers:
    """Return the base files that a current read uses, as ascending rows of the view's files.

    They belong to the newest visible slice of every file group that is not replaced, or to the
    slice before if a compaction is pending: readers do not open what it has written so far. If a
    slice has two, the last one counts.
    """
    is_read = view.is_current & ~view.is_phantom
    bases = np.flatnonzero((view.files.kind == FileKind.BASE) & is_read[view.row_slice])
    one = np.full(len(view), -1, np.int64)
    one[view.row_slice[bases]] = bases
    return np.sort(one[one >= 0])


def mark_read_files(view: FileView) -> Mask:
    """Return a mask of the view's files: those of the slices that a current read uses.

    A base file that a pending compaction is writing is none of them.
    """
    is_begun = (view.files.kind == FileKind.BASE) & view.is_phantom[view.row_slice]
    is_read: Mask = view.is_current[view.row_slice] & ~is_begun
    return is_read


def find_newest_logs(view: FileView) -> Integers:
    """Return the log files that a current read merges, as ascending rows of the view's files."""
    return np.flatnonzero((view.files.kind == FileKind.LOG) & view.is_current[view.row_slice])


def find_committed_instants(state: TableState) -> Mask:
    """Return per instant of the files whether a log file of it has committed rows, or may have."""
    instants = state.files.instants
    if state.table_version < LOGS_BY_COMPLETION:
        return np.ones(len(instants), np.bool_)
    start = state.timeline.start or ""
    done = {instant.requested for instant in state.timeline.commits}
    return np.array([i in done or i < start for i in instants], np.bool_)


def list_current_partitions(view: FileView) -> list[str]:
    """Return the partitions in which a current read finds files, without the table's own folder."""
    rows = np.flatnonzero(view.is_current[view.row_slice])
    codes = sort_unique(view.files.partition[rows]).tolist()
    return sorted(filter(None, (view.files.partitions[code] for code in codes)))


def group_by_partition(files: TableFiles, rows: Integers) -> Iterator[tuple[str, list[str]]]:
    """Yield partition paths with the names of files; ``rows`` are sorted by partition."""
    partition = files.partition[rows]
    for code in sort_unique(partition).tolist():
        start, end = np.searchsorted(partition, [code, code + 1])
        yield (files.partitions[code], files.name.take(to_arrow(rows[start:end])).to_pylist())
