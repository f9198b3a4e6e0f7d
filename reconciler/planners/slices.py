"""What protects file slices from a clean, and the view that a clean decides on.

Source: Hudi's CleanPlanner (savepoints, pending compactions), and DESIGN's deliberate deviations
(pending clusterings, half-made savepoints).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import flags, integers, strings
from reconciler.hudi.files import Files
from reconciler.hudi.view import View, group_codes
from reconciler.planners.window import Reading, Window, reading
from reconciler.state.model import ClusteringInput, TableState
from reconciler.state.view import view_of

__all__ = ["Protection", "protection", "view_of"]

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Protection:
    """Per slice what must not lose its files; codes into the tuples beside them, -1 for nothing.

    ``savepoint`` into ``savepoints``; ``compaction`` and ``clustering`` into ``pending``.
    ``is_compacted``: per slice, its group is in a pending compaction or log compaction.
    ``reading``: what readers may still read.
    """

    savepoints: tuple[str, ...]
    pending: tuple[str, ...]
    savepoint: NDArray[np.int32]
    compaction: NDArray[np.int32]
    clustering: NDArray[np.int32]
    is_compacted: NDArray[np.bool_]
    reading: Reading

    @property
    def is_protected(self) -> NDArray[np.bool_]:
        protected: NDArray[np.bool_] = (
            (self.savepoint >= 0)
            | (self.compaction >= 0)
            | (self.clustering >= 0)
            | self.reading.is_read
        )
        return protected


def protection(state: TableState, view: View, window: Window | None = None) -> Protection:
    """Everything on the timeline that keeps slices alive, and what readers need of it."""
    pending = sorted(
        {op.instant for op in state.compactions} | {given.instant for given in state.clusterings}
    )
    compaction, is_compacted = _by_compaction(state, view, pending)
    return Protection(
        savepoints=tuple(savepoint.instant for savepoint in state.savepoints),
        pending=tuple(pending),
        savepoint=_by_savepoint(state, view),
        compaction=compaction,
        clustering=_by_clustering(state, view, pending),
        is_compacted=is_compacted,
        reading=reading(state, view, window),
    )


def _by_savepoint(state: TableState, view: View) -> NDArray[np.int32]:
    """A slice of which a savepoint names any file stays whole; names match in any partition.

    The files of a half-made savepoint aren't known: it protects what one made then would pin.
    """
    saved = np.full(len(view), _NONE, np.int32)
    for code, savepoint in reversed(list(enumerate(state.savepoints))):
        if savepoint.completed:
            rows = _named(view.files, savepoint.files)
            saved[view.slice_of[rows]] = code
        else:
            after = bisect_right(view.times, savepoint.instant)
            is_read = view.is_visible & (view.key < after) & (view.newer >= after)
            saved[is_read & (view.replaced[view.group] >= after)] = code
    return saved


def _named(files: Files, names: Iterable[str]) -> NDArray[np.int64]:
    """Rows whose name is among the names, in whatever partition."""
    wanted = strings(sorted(names))
    if not len(wanted) or not len(files):
        return np.zeros(0, np.int64)
    return np.flatnonzero(flags(pc.is_in(files.name, value_set=wanted)))


def _by_compaction(
    state: TableState, view: View, pending: list[str]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Slices at or after the base of a pending (log) compaction's operation are its input."""
    needed = np.full(len(view), _NONE, np.int32)
    count = len(view.files.group_partition)
    in_plan = np.zeros(count, np.bool_)
    groups = group_codes(view.files, [(op.partition, op.file_id) for op in state.compactions])
    oldest = np.full(count, view.never + 1, np.int32)
    instant = np.full(count, _NONE, np.int32)
    for group, op in zip(groups, state.compactions, strict=True):
        base = view.code(op.base_instant)
        if group >= 0 and base < oldest[group]:
            oldest[group], instant[group] = base, pending.index(op.instant)
    in_plan[groups[groups >= 0]] = True
    if len(view):
        is_input = view.key >= oldest[view.group]
        needed[is_input] = instant[view.group][is_input]
    return needed, in_plan[view.group]


def _by_clustering(state: TableState, view: View, pending: list[str]) -> NDArray[np.int32]:
    """Slices named in a pending clustering plan are its input."""
    read = np.full(len(view), _NONE, np.int32)
    if not state.clusterings or not len(view):
        return read
    names = {name for given in state.clusterings for name in _names(given)}
    rows = _named(view.files, names)
    found = view.files.name.take(integers(rows)).to_pylist()
    paths = [view.files.partitions[code] for code in view.files.partition[rows]]
    here = dict(zip(zip(paths, found, strict=True), rows.tolist(), strict=True))
    for given in state.clusterings:
        for name in _names(given):
            row = here.get((given.partition, name))
            if row is not None:
                read[view.slice_of[row]] = pending.index(given.instant)
    return read


def _names(given: ClusteringInput) -> tuple[str, ...]:
    base = (given.base_file,) if given.base_file else ()
    return (*base, *given.log_files)
