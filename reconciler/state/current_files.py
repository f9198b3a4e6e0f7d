"""Find the files that a read of the current table needs; pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import sort_unique, to_arrow
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.files.view import FileView


def find_newest_bases(view: FileView) -> NDArray[np.int64]:
    """Return the base files that a current read uses, as ascending rows of the view's files.

    They belong to the newest visible slice of every file group that is not replaced, and to the
    slice before if a compaction is pending. If a slice has two, the last one counts.
    """
    is_read = _is_current(view)
    bases = np.flatnonzero((view.files.kind == FileKind.BASE) & is_read[view.row_slice])
    one = np.full(len(view), -1, np.int64)
    one[view.row_slice[bases]] = bases
    return np.sort(one[one >= 0])


def find_newest_logs(view: FileView) -> NDArray[np.int64]:
    """Return the log files that a current read merges, as ascending rows of the view's files."""
    return np.flatnonzero((view.files.kind == FileKind.LOG) & _is_current(view)[view.row_slice])


def _is_current(view: FileView) -> NDArray[np.bool_]:
    """Return per slice whether it is the newest of a live group, or before a pending compaction."""
    rows = np.flatnonzero(view.is_visible & view.is_live)
    is_last = np.append(np.diff(view.group[rows]) != 0, True)[: len(rows)]
    newest = np.flatnonzero(is_last)
    waits = newest[view.is_phantom[rows[newest]] & (newest > 0)]
    waits = waits[view.group[rows[waits - 1]] == view.group[rows[waits]]]
    is_read = np.zeros(len(view), np.bool_)
    is_read[rows[newest]] = True
    is_read[rows[waits - 1]] = True
    return is_read


def group_by_partition(
    files: TableFiles, rows: NDArray[np.int64]
) -> Iterator[tuple[str, list[str]]]:
    """Yield partition paths with the names of files; ``rows`` are sorted by partition."""
    partition = files.partition[rows]
    for code in sort_unique(partition).tolist():
        start, end = np.searchsorted(partition, [code, code + 1])
        yield (files.partitions[code], files.name.take(to_arrow(rows[start:end])).to_pylist())
