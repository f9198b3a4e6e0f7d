"""Add the newest writes of a table to its state, for the report on file sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.load import load_properties
from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.layout.sizing.record_size import can_fit_size
from reconciler.state.clustering_facts import ReadWarning, RecentWrites
from reconciler.state.footer_sample import sample_footers
from reconciler.state.model import TableState
from reconciler.state.write_history import read_newest_writes
from reconciler.storage.api import Storage

#: number of writes, as in a write's own estimate of record sizes
_NEWEST: Final = 20


def add_recent_writes(
    storage: Storage, state: TableState, *, with_footers: bool = False
) -> TableState:
    """Return the state with its newest writes, from the clustering facts or else from storage.

    ``with_footers``: also read footers if the writes do not show record sizes. Reads one small file
    per write. Files that are damaged or archived meanwhile make a warning. Raises StorageError.
    """
    found = _read_newest(storage, state)
    if with_footers and not can_fit_size(found.newest):
        found = replace(found, footers=sample_footers(storage, measure_groups(state.view)))
    return state.with_facts(recent_writes=found)


def _read_newest(storage: Storage, state: TableState) -> RecentWrites:
    if state.clustering_facts is not None:
        return RecentWrites(newest=state.clustering_facts.written)
    try:
        properties = load_properties(storage)
        return RecentWrites(
            newest=read_newest_writes(storage, properties, state.timeline, newest=_NEWEST)
        )
    except (FormatError, NotFoundError) as problem:
        because = f"recent writes and the size of a row are unknown: {problem}"
        return RecentWrites(warning=ReadWarning(rule="fileSizes", because=because))
