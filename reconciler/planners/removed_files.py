"""Find the files of a table that its plan removes; pure."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Mask, to_numpy
from reconciler.plans.columns import rank_values
from reconciler.plans.model import TablePlan, removal_steps
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.state.model import TableState


def find_removed_files(state: TableState, plan: TablePlan) -> Mask:
    """Return per file of the table whether a step that is applied removes it."""
    files = state.files
    codes = {path: code for code, path in enumerate(files.partitions)}
    is_removed = np.zeros(len(files), np.bool_)
    for step in removal_steps(list_applied_steps(plan)):
        paths, row = rank_values(step.files.partition)
        for number, path in enumerate(paths):
            if (code := codes.get(path)) is None:
                continue  # a resumed clean may name folders that are gone
            low, high = np.searchsorted(files.partition, [code, code + 1]).tolist()
            start, end = np.searchsorted(row, [number, number + 1]).tolist()
            named = step.files.name.slice(start, end - start)
            is_in = pc.is_in(files.name.slice(low, high - low), value_set=named)
            is_removed[low:high] |= to_numpy(is_in)
    return is_removed
