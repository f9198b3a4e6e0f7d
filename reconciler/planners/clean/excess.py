"""Measure how far the file slices of a table exceed its retention; pure."""

from __future__ import annotations

import numpy as np

from reconciler.planners.clean.planner import CleanDecision
from reconciler.planners.drift import ExcessSlices


def find_excess(decision: CleanDecision, cutoff: str | None) -> ExcessSlices | None:
    """Return the slices past retention that neither savepoints nor pending plans keep."""
    view = decision.view
    rows = decision.is_removed | (
        decision.is_kept & ~decision.protection.is_protected[view.row_slice]
    )
    if not rows.any():
        return None
    beyond = np.zeros(len(view), np.bool_)
    beyond[view.row_slice[rows]] = True
    return ExcessSlices(
        slices=int(beyond.sum()),
        files=int(rows.sum()),
        oldest=view.times[int(view.key[beyond].min())],
        versions=int(view.rank[view.is_visible & view.is_live].max(initial=-1)) + 1,
        cutoff=cutoff,
    )
