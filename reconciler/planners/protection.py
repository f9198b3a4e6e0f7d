"""Find what protects file slices from a clean; pure.

Source: Hudi's CleanPlanner (savepoints, pending compactions). Pending clusterings and incomplete
savepoints protect slices too, which is a deliberate deviation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reader_window import ReaderProtection, ReaderWindow, find_slices_read
from reconciler.planners.reasons import Sentence
from reconciler.state.model import PendingClusteringSlice, Savepoint, TableState

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Protection:
    """The reasons why each slice's files are needed, as codes into tuples; -1 for none.

    ``savepoint``: code into ``savepoints``; ``compaction`` and ``clustering``: into ``pending``.
    ``is_compacted``: per slice, whether its group is in a pending compaction or log compaction.
    ``by_readers``: the slices that readers may still read.
    """

    savepoints: tuple[str, ...]
    pending: tuple[str, ...]
    savepoint: Codes
    compaction: Codes
    clustering: Codes
    is_compacted: Mask
    by_readers: ReaderProtection

    @property
    def is_protected(self) -> Mask:
        return (
            (self.savepoint >= 0)
            | (self.compaction >= 0)
            | (self.clustering >= 0)
            | self.by_readers.is_read
        )

    @property
    def reasons(self) -> Mapping[str, tuple[Mask, Sentence, NDArray[Any]]]:
        """Return the arguments of ``RowReasons.assign`` for each rule of KEEP_RULES in here."""
        saves, pending = self.savepoints, self.pending
        return {
            "savepoint": (
                self.savepoint >= 0,
                lambda code: f"savepoint {saves[code]} pins its file slice",
                self.savepoint,
            ),
            "pendingCompaction": (
                self.compaction >= 0,
                lambda code: f"pending compaction {pending[code]} reads its file slice",
                self.compaction,
            ),
            "pendingClustering": (
                self.clustering >= 0,
                lambda code: f"pending clustering {pending[code]} reads its file slice",
                self.clustering,
            ),
            "readers": (
                self.by_readers.is_read,
                self.by_readers.explain,
                self.by_readers.reason_key,
            ),
        }


def find_protection(state: TableState, window: ReaderWindow | None = None) -> Protection:
    """Return what protects each slice: savepoints, pending table services and readers."""
    view = state.view
    pending = sorted(
        {op.instant for op in state.compactions} | {given.instant for given in state.clusterings}
    )
    compaction, is_compacted = _protect_by_compaction(state, view, pending)
    return Protection(
        savepoints=tuple(savepoint.instant for savepoint in state.savepoints),
        pending=tuple(pending),
        savepoint=_protect_by_savepoint(state, view),
        compaction=compaction,
        clustering=_protect_by_clustering(state, view, pending),
        is_compacted=is_compacted,
        by_readers=find_slices_read(state, window),
    )


def _protect_by_savepoint(state: TableState, view: FileView) -> Codes:
    """Return per slice the first savepoint that protects it."""
    saved = np.full(len(view), _NONE, np.int32)
    for code, savepoint in reversed(list(enumerate(state.savepoints))):
        saved[find_saved_slices(view, savepoint)] = code
    return saved


def find_saved_slices(view: FileView, savepoint: Savepoint) -> Mask:
    """Return per slice whether a savepoint protects it. One named file protects the whole slice.

    Names match in any partition, as in Hudi. The files of an incomplete savepoint are unknown: it
    protects every slice that a complete one of that time would name.
    """
    if not savepoint.completed:
        return find_slices_as_of(view, savepoint.instant)
    saved = np.zeros(len(view), np.bool_)
    saved[view.row_slice[_find_named_rows(view.files, savepoint.files)]] = True
    return saved


def find_slices_as_of(view: FileView, instant: str) -> Mask:
    """Return per slice whether a read as of an instant uses it, which a savepoint of it pins.

    Of a file group whose newest slice waits for a pending compaction, that is the slice before too.
    """
    after = bisect_right(view.times, instant)
    is_older = view.is_visible & (view.key < after) & (view.replaced[view.group] >= after)
    is_read = is_older & (view.newer >= after)
    waiting = np.full(len(view.replaced), _NONE, np.int64)
    phantoms = is_read & view.is_phantom
    waiting[view.group[phantoms]] = view.rank[phantoms]
    is_before = is_older & (waiting >= 0)[view.group] & (view.rank == waiting[view.group] + 1)
    found: Mask = is_read | is_before
    return found


def _find_named_rows(files: TableFiles, names: Iterable[str]) -> Integers:
    """Return the rows of the files with these names in any partition."""
    wanted = to_arrow(sorted(names))
    if not len(wanted) or not len(files):
        return np.zeros(0, np.int64)
    return np.flatnonzero(to_numpy(pc.is_in(files.name, value_set=wanted)))


def _protect_by_compaction(
    state: TableState, view: FileView, pending: list[str]
) -> tuple[Codes, Mask]:
    """Return per slice the pending (log) compaction that reads it: those from its base on."""
    needed = np.full(len(view), _NONE, np.int32)
    if not state.compactions:
        return needed, np.zeros(len(view), np.bool_)
    count = len(view.files.group_partition)
    in_plan = np.zeros(count, np.bool_)
    groups = find_group_codes(view.files, [(op.partition, op.file_id) for op in state.compactions])
    oldest = np.full(count, view.never_code + 1, np.int32)
    instant = np.full(count, _NONE, np.int32)
    for group, op in zip(groups, state.compactions, strict=True):
        base = view.time_code(op.base_instant)
        if group >= 0 and base < oldest[group]:
            oldest[group], instant[group] = base, pending.index(op.instant)
    in_plan[groups[groups >= 0]] = True
    if len(view):
        is_input = view.key >= oldest[view.group]
        needed[is_input] = instant[view.group][is_input]
    return needed, in_plan[view.group]


def _protect_by_clustering(state: TableState, view: FileView, pending: list[str]) -> Codes:
    """Return per slice the pending clustering whose plan names it."""
    read = np.full(len(view), _NONE, np.int32)
    if not state.clusterings or not len(view):
        return read
    names = {name for given in state.clusterings for name in _slice_names(given)}
    rows = _find_named_rows(view.files, names)
    names_found = view.files.name.take(to_arrow(rows)).to_pylist()
    paths = [view.files.partitions[code] for code in view.files.partition[rows]]
    row_by_file = dict(zip(zip(paths, names_found, strict=True), rows.tolist(), strict=True))
    for given in state.clusterings:
        for name in _slice_names(given):
            row = row_by_file.get((given.partition, name))
            if row is not None:
                read[view.row_slice[row]] = pending.index(given.instant)
    return read


def _slice_names(pending: PendingClusteringSlice) -> tuple[str, ...]:
    base = (pending.base_file,) if pending.base_file else ()
    return (*base, *pending.log_files)
