"""Measure what each savepoint alone keeps from a clean by the declared retention; pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from reconciler.arrays import Mask
from reconciler.planners.clean.boundary import find_cutoff
from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.protection import find_saved_slices
from reconciler.planners.reader_window import ReaderWindow
from reconciler.plans.savepoint_step import SavepointReport
from reconciler.spec.model import TableSpec
from reconciler.state.model import Savepoint, TableState


def report_others(
    spec: TableSpec, state: TableState, now: datetime, window: ReaderWindow | None
) -> tuple[SavepointReport, ...] | None:
    """Return a report on each savepoint of other tools and people.

    None if there are none, or the spec has no savepoints block.
    """
    if spec.savepoints is None or all(one.declared is not None for one in state.savepoints):
        return None
    costs = find_costs(spec, state, now, window)
    return tuple(
        _report(state, one, rows)
        for one, rows in zip(state.savepoints, costs, strict=True)
        if one.declared is None
    )


def find_costs(
    spec: TableSpec, state: TableState, now: datetime, window: ReaderWindow | None
) -> tuple[Mask, ...]:
    """Return per savepoint which rows of the table's files only it keeps.

    Those are the files that a clean would remove if nothing but this savepoint were gone. The spec
    has a known time zone if its retention needs one. Without a retention nothing is removed.
    """
    saved = [find_saved_slices(state.view, one) for one in state.savepoints]
    if spec.retention is None or not saved:
        return tuple(np.zeros(len(state.files), np.bool_) for _ in saved)
    cutoff = find_cutoff(spec, state, now)
    free = plan_clean(spec.retention, state.with_savepoints(()), cutoff=cutoff, window=window)
    return tuple(free.is_removed & rows for rows in _find_kept_alone(state, saved))


def _find_kept_alone(state: TableState, saved: list[Mask]) -> Iterator[Mask]:
    """Yield per savepoint the rows of slices that it protects and no other savepoint does."""
    view = state.view
    count = np.sum(saved, axis=0, dtype=np.int32)
    row_slices = [view.row_slice]
    if view.row_slice_1x is not None:
        row_slices.append(view.row_slice_1x)
    for mask in saved:
        others = count - mask
        is_kept = np.any([mask[of_row] for of_row in row_slices], axis=0)
        yield is_kept & np.all([others[of_row] == 0 for of_row in row_slices], axis=0)


def _report(state: TableState, savepoint: Savepoint, rows: Mask) -> SavepointReport:
    return SavepointReport(
        instant=savepoint.instant,
        is_completed=savepoint.completed,
        made_by=savepoint.made_by or None,
        comment=savepoint.comment or None,
        made_ms=savepoint.made_ms,
        files=int(rows.sum()),
        bytes=int(state.files.size[rows].sum()),
    )
