"""Find the slices that may be rewritten: the newest of every live file group; pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.names import LogName
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import find_committed_instants
from reconciler.state.model import TableState

NO_HOLDER = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSlices:
    """The newest slices, one element per slice, sorted by partition and file group.

    ``group``: int32, code of the file group; ``partition``: int32, code of the partition.
    ``base_row``: int64, row of the base file in the view's files; -1 for a slice with only logs.
    ``base``, ``logs``: int64, bytes of the base file and of the log files.
    ``log_row``, ``log_slice``: int64, rows of the log files in merge order by slice, and the slice
    of each. ``holder``: int32 into ``holders``, the pending service or write that uses the file
    group; -1 for none. ``holders``: pairs of a rule and an instant.
    """

    view: FileView
    group: Codes
    partition: Codes
    base_row: Integers
    base: Integers
    logs: Integers
    log_row: Integers
    log_slice: Integers
    holder: Codes
    holders: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.group)

    @property
    def has_base(self) -> Mask:
        return self.base_row >= 0

    @property
    def bytes(self) -> Integers:
        """Return the bytes of each slice, base file and logs."""
        return self.base + self.logs

    def bases_of(self, partition: int) -> Integers:
        """Return the slices of a partition that have a base file."""
        start, end = np.searchsorted(self.partition, [partition, partition + 1]).tolist()
        return np.arange(start, end)[self.base_row[start:end] >= 0]


def find_candidates(state: TableState) -> CandidateSlices:
    """Return the newest slice with files of every file group that is not replaced.

    A slice that waits for a pending compaction has the log files written since, and no base file
    that the compaction may have begun. From version 8 on, log files of incomplete writes do not
    belong to a slice; in version 6 a log file holds blocks of several writes. Source: Hudi's
    getLatestFileSlices and getLatestMergedFileSlicesBeforeOrOn (1.2.0).
    """
    view, files = state.view, state.view.files
    newest, place = _place_slices(view)
    of_row = place[view.row_slice]
    is_base = (files.kind == FileKind.BASE) & ~view.is_phantom[view.row_slice]
    bases = np.flatnonzero(is_base & (of_row >= 0))
    base_row = np.full(len(newest), NO_HOLDER, np.int64)
    base_row[of_row[bases]] = bases  # the last name wins if a task wrote a file twice
    is_log = (files.kind == FileKind.LOG) & (of_row >= 0)
    logs = np.flatnonzero(is_log & find_committed_instants(state)[files.instant])
    log_row = _sort_logs(logs, of_row, view)
    holder, holders = _find_holders(state, view)
    group = view.group[newest]
    base = np.where(base_row >= 0, files.size[base_row], 0) if len(files) else base_row
    return CandidateSlices(
        view=view,
        group=group,
        partition=files.group_partition[group],
        base_row=base_row,
        base=base,
        logs=_sum_by_slice(of_row[log_row], files.size[log_row], len(newest)),
        log_row=log_row,
        log_slice=of_row[log_row],
        holder=holder[group],
        holders=holders,
    )


def _place_slices(view: FileView) -> tuple[Integers, Integers]:
    """Return the newest slices with files, and the place among them of every slice, -1 for none.

    What a pending compaction is going to fill has the place of the slice that it compacts.
    """
    visible = np.flatnonzero(view.is_visible & (view.file_counts > 0) & view.is_live)
    is_waiting = view.is_phantom & (view.rank == 0)
    settled = visible[~is_waiting[visible]]
    begun = visible[is_waiting[visible] & ~np.isin(view.group[visible], view.group[settled])]
    some = np.sort(np.concatenate([settled, begun]))
    newest = some[np.append(np.diff(view.group[some]) != 0, True)[: len(some)]]
    place = np.full(len(view), NO_HOLDER, np.int64)
    place[newest] = np.arange(len(newest))
    waiting = visible[is_waiting[visible]]
    place[waiting] = np.searchsorted(view.group[newest], view.group[waiting])
    return newest, place


def make_slice_keys(slices: CandidateSlices) -> Any:
    """Return ``partition/file id`` of every slice as pyarrow strings."""
    files = slices.view.files
    folders = to_arrow(files.partitions).take(to_arrow(slices.partition))
    ids = files.group_id.take(to_arrow(slices.group))
    return pc.binary_join_element_wise(folders, ids, "/")


def find_slices(slices: CandidateSlices, keys: Any) -> Integers:
    """Return the slice of each ``partition/file id``, -1 for a file group that has none."""
    indices = pc.index_in(keys, value_set=make_slice_keys(slices))
    return to_numpy(indices.fill_null(-1)).astype(np.int64)


def _sort_logs(logs: Integers, of_row: Integers, view: FileView) -> Integers:
    """Return rows of log files sorted by slice, instant and version, and by token for retries."""
    files = view.files
    keys = np.stack([of_row[logs], files.instant[logs], files.version[logs]])
    order = np.lexsort(keys[::-1])
    keys, rows = keys[:, order], logs[order]
    same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    ends = np.append(np.flatnonzero(~same) + 1, len(rows))
    for end in ends[np.diff(ends, prepend=0) > 1].tolist():
        start = end - 1
        while start > 0 and same[start - 1]:
            start -= 1
        rows[start:end] = sorted(
            rows[start:end], key=lambda row: _log_order(files.name[row].as_py())
        )
    return rows


def _log_order(name: str) -> tuple[object, ...]:
    log = LogName.parse(name)
    assert log is not None, "files holds names of the grammar only"
    return log.order


def _sum_by_slice(which: Integers, values: Integers, count: int) -> Integers:
    """Return the sum of the values of each slice; ``which`` is ascending."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    bounds = np.searchsorted(which, np.arange(count + 1))
    return np.diff(ends[bounds])


def _find_holders(state: TableState, view: FileView) -> tuple[Codes, tuple[tuple[str, str], ...]]:
    """Return per file group who uses it: a compaction, else a clustering, else a write."""
    rules = {Action.COMPACTION: "pendingCompaction", Action.LOGCOMPACTION: "pendingLogCompaction"}
    claims = [
        ((rules[op.action], op.instant), (op.partition, op.file_id)) for op in state.compactions
    ]
    claims += [
        (("pendingClustering", given.instant), (given.partition, given.file_id))
        for given in state.clusterings
    ]
    writes = _groups_of_pending_writes(state, view)
    holders = sorted({holder for holder, _ in claims} | {holder for holder, _ in writes})
    code = {holder: number for number, holder in enumerate(holders)}
    holder_of = np.full(len(view.files.group_partition), NO_HOLDER, np.int32)
    for holder, groups in writes:
        holder_of[groups] = code[holder]
    codes = find_group_codes(view.files, [group for _, group in claims])
    for (holder, _), group in reversed(list(zip(claims, codes.tolist(), strict=True))):
        if group >= 0:
            holder_of[group] = code[holder]
    return holder_of, tuple(holders)


def _groups_of_pending_writes(
    state: TableState, view: FileView
) -> list[tuple[tuple[str, str], Codes]]:
    """Return the file groups with files of each pending write."""
    files = view.files
    pending = {i.requested for i in state.timeline.writes if not i.is_completed}
    return [
        (("pendingWrite", instant), files.group[files.instant == code])
        for code, instant in enumerate(files.instants)
        if instant in pending
    ]
