"""Find log files that were cut off after their commit, before a rewrite makes the loss final.

A reader skips a block that is not whole, as Hudi does, because a writer that dies leaves such. So
the rows of a committed log file that was cut off later are not read. Once its slice is rewritten
nobody can find that out.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_arrow, to_numpy
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.table.properties import TableProperties
from reconciler.plans.groups import group_of_slices
from reconciler.plans.model import Rewrites
from reconciler.state.log_sizes import read_log_sizes
from reconciler.state.model import TableState
from reconciler.storage.api import Storage


def find_cut_logs(
    storage: Storage, properties: TableProperties, state: TableState, groups: Rewrites
) -> dict[tuple[str, str], str]:
    """Return a sentence for every such log file of the groups, by partition and name.

    Reads the completed writes of the active timeline that may have written one of them. Log files
    whose writes are archived are not checked. Raises FormatError, and NotFoundError where the
    timeline has changed.
    """
    there = _get_log_sizes(groups, state)
    if not there:
        return {}
    found: dict[tuple[str, str], str] = {}
    for key, least in read_log_sizes(storage, properties, state.timeline, there).items():
        if there[key] < least:
            found[key] = (
                f"its log file {key[1]} has {there[key]} bytes, and its writer says {least}: it is "
                "damaged, restore it from a copy"
            )
    return found


def _get_log_sizes(groups: Rewrites, state: TableState) -> dict[tuple[str, str], int]:
    """Return the bytes of the log files that are there, by partition and name."""
    counts = to_numpy(pc.list_value_length(groups.logs)).astype(np.int64)
    names = groups.logs.flatten()
    if not len(names):
        return {}
    folders = groups.partition.take(
        to_arrow(np.repeat(group_of_slices(groups), counts))
    ).to_pylist()
    keys = list(zip(folders, names.to_pylist(), strict=True))
    wanted = to_arrow([f"{folder}/{name}" for folder, name in keys])
    rows = to_numpy(pc.index_in(wanted, value_set=make_present_keys(state.files)).fill_null(-1))
    sizes = state.files.size
    return {key: int(sizes[row]) for key, row in zip(keys, rows.tolist(), strict=True) if row >= 0}
