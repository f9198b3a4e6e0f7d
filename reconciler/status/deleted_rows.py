"""Count the rows of the partitions that a plan deletes, from the footers of their files."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from reconciler.planners.expiry.planner import choose_counted_files
from reconciler.spec.model import TableSpec
from reconciler.state.footers import read_footers
from reconciler.state.model import TableState
from reconciler.storage.api import Storage

#: footers that are read at most, a request each
_MOST_FOOTERS: Final = 1000


def count_deleted_rows(
    storage: Storage, spec: TableSpec, state: TableState, now: datetime
) -> TableState:
    """Return the state with the rows of the partitions that a plan deletes at a time.

    The rows of a partition with a damaged or missing file are unknown. Raises StorageError.
    """
    files = choose_counted_files(state, _MOST_FOOTERS, spec=spec, now=now)
    footers = iter(read_footers(storage, [file for paths in files.values() for file in paths], ()))
    rows = {}
    for partition, paths in files.items():
        read = [next(footers) for _ in paths]
        if all(footer.problem is None for footer in read):
            rows[partition] = sum(footer.rows for footer in read)
    return state.with_facts(partition_rows=rows)
