"""List the files that a savepoint of an instant pins; pure. Source: SavepointActionExecutor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reconciler.arrays import Mask, to_arrow
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.planners.protection import find_slices_as_of
from reconciler.state.model import TableState


def find_pinned_rows(state: TableState, instant: str) -> Mask:
    """Return per file of a table whether a savepoint of an instant names it.

    It names whole slices, also log files that were written after the instant, as Hudi does.
    """
    rows: Mask = find_slices_as_of(state.view, instant)[state.view.row_slice]
    if state.table_version < LOGS_BY_COMPLETION:
        return rows
    start = state.timeline.start or ""
    known = (time < start or time in state.completions for time in state.files.instants)
    is_completed = np.fromiter(known, np.bool_, len(state.files.instants))
    pinned: Mask = rows & is_completed[state.files.instant]
    return pinned


def group_by_partition(state: TableState, rows: Mask) -> Mapping[str, tuple[str, ...]]:
    """Return the names of some files of a table, for every partition, as Hudi lists them."""
    named: dict[str, tuple[str, ...]] = dict.fromkeys(state.partitions, ())
    files = state.files
    found = np.flatnonzero(rows)
    for code in np.unique(files.partition[found]).tolist():
        inside = found[files.partition[found] == code]
        named[files.partitions[code]] = tuple(files.name.take(to_arrow(inside)).to_pylist())
    return named
