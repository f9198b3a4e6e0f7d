"""Sum up what readers find in each partition: files, bytes and the newest write; pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reconciler.arrays import Codes, Integers, Mask, sum_by_code
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.lazy_dataclass import dataclass
from reconciler.state.model import TableState

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionFigures:
    """Partitions with files that readers see: an element a partition, in the order of ``paths``.

    ``rows``: rows of the state's files, of all these partitions together; ``place``: the partition
    of each, index into ``paths``. ``files``, ``bytes``: int64. ``last_commit``: instant of the
    newest write. ``has_logs``: whether a log file is among the files.
    """

    paths: tuple[str, ...]
    rows: Integers
    place: Integers
    files: Integers
    bytes: Integers
    last_commit: tuple[str, ...]
    has_logs: Mask


def measure_partitions(state: TableState) -> PartitionFigures:
    """Return the figures of all partitions; those of a table without partitions are none.

    Replaced file groups do not count, and from version 8 on log files of incomplete writes do not.
    """
    view = state.view
    rows = _find_current_rows(state, view)
    partitions = frozenset(state.partitions) - {""}
    known = np.array([path in partitions for path in view.files.partitions], np.bool_)
    rows = rows[known[view.files.partition[rows]]]
    codes, place = np.unique(view.files.partition[rows], return_inverse=True)
    paths = tuple(view.files.partitions[code] for code in codes.tolist())
    is_log = view.files.kind[rows] == FileKind.LOG
    has_logs = np.bincount(place[is_log], minlength=len(paths)) > 0
    return PartitionFigures(
        paths=paths,
        rows=rows,
        place=place.astype(np.int64),
        files=np.bincount(place, minlength=len(paths)).astype(np.int64),
        bytes=sum_by_code(place, view.files.size[rows], len(paths)),
        last_commit=_find_newest_writes(state, paths, rows, place, has_logs),
        has_logs=has_logs,
    )


def find_held_partitions(state: TableState) -> dict[str, str]:
    """Return the partitions that pending work reads or writes, each with what it is.

    Hudi deletes no such partition either (DeletePartitionUtils.checkForPendingTableServiceActions).
    """
    held: dict[str, str] = {}
    files, pending = state.files, {i.requested: i for i in state.timeline.pending(WRITES)}
    for code, instant in enumerate(files.instants):
        if instant in pending:
            writes = np.flatnonzero(np.bincount(files.partition[files.instant == code])).tolist()
            text = f"{pending[instant].action} {instant} is pending and writes to it"
            held |= dict.fromkeys((files.partitions[partition] for partition in writes), text)
    for given in state.clusterings:
        held[given.partition] = f"clustering {given.instant} is pending and rewrites it"
    for operation in state.compactions:
        kind = "log compaction" if operation.action is Action.LOGCOMPACTION else "compaction"
        held[operation.partition] = f"{kind} {operation.instant} is pending and rewrites it"
    return held


def _find_current_rows(state: TableState, view: FileView) -> Integers:
    """Return the rows of the base and log files that readers need."""
    files = view.files
    kinds = (files.kind == FileKind.BASE) | (files.kind == FileKind.LOG)
    is_read = view.is_current[view.row_slice] & kinds
    is_read &= (files.kind != FileKind.BASE) | ~view.is_phantom[view.row_slice]
    if state.table_version >= LOGS_BY_COMPLETION:
        is_read &= (files.kind == FileKind.BASE) | _is_committed(state)[files.instant]
    return np.flatnonzero(is_read)


def _is_committed(state: TableState) -> Mask:
    """Return per instant of the files whether it is completed, by the timeline or its start."""
    start = state.timeline.start or ""
    done = {instant.requested for instant in state.timeline.commits}
    return np.array([i in done or i < start for i in state.files.instants], np.bool_)


def _find_newest_writes(
    state: TableState, paths: tuple[str, ...], rows: Integers, place: Integers, has_logs: Mask
) -> tuple[str, ...]:
    """Return the instant of the newest write of each partition.

    Clusterings and compactions count as writes, as in Hudi's KeepByTimeStrategy. Log files count
    too, which Hudi does not: it deletes partitions that only got updates since. In version 6 log
    files are named for their base file, so the timeline tells; what it has archived was before it.
    """
    codes = _rank_instants(state)
    newest = np.full(len(paths), _NONE, np.int32)
    np.maximum.at(newest, place, codes[state.files.instant[rows]])
    instants = [state.view.times[code] for code in newest.tolist()]
    if state.table_version >= LOGS_BY_COMPLETION or not has_logs.any():
        return tuple(instants)
    written = _find_newest_by_timeline(state.written_partitions or {})
    start = state.timeline.start or ""
    return tuple(
        max(instant, written.get(path, start)) if with_logs else instant
        for path, instant, with_logs in zip(paths, instants, has_logs.tolist(), strict=True)
    )


def _find_newest_by_timeline(written: Mapping[str, frozenset[str]]) -> dict[str, str]:
    return {path: instant for instant, paths in sorted(written.items()) for path in paths}


def _rank_instants(state: TableState) -> Codes:
    """Return per instant of the files its place among the times of the view."""
    ranks = {time: code for code, time in enumerate(state.view.times)}
    return np.array([ranks[instant] for instant in state.files.instants], np.int32)
