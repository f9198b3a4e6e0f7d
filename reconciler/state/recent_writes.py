"""The newest writes of a table, for whoever looks at how big its files are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.load import load_properties
from reconciler.layout.sizing.file_group_sizes import measure_groups, newest_base_names
from reconciler.layout.sizing.record_size import can_fit_size
from reconciler.state.clustering_facts import ReadWarning, RecentWrites
from reconciler.state.footer_sample import sample_footers
from reconciler.state.model import TableState
from reconciler.state.slice_view import build_table_view
from reconciler.state.write_history import read_newest_writes
from reconciler.storage.api import Storage

#: as many as a write's own estimate of a row looks at
_NEWEST: Final = 20


def add_recent_writes(
    storage: Storage, state: TableState, *, with_footers: bool = False
) -> TableState:
    """The state with its newest writes: those that a clustering is judged by, else they are read.

    ``with_footers``: with what a writer knows of how big rows are. Reads one small file each. What is
    damaged, or was archived meanwhile, is a doubt and stops no plan. Raises StorageError.
    """
    found = _read_newest(storage, state)
    if with_footers and not can_fit_size(found.newest):
        view = build_table_view(state)
        found = replace(
            found, footers=sample_footers(storage, measure_groups(view), newest_base_names(view))
        )
    return replace(state, recent_writes=found)


def _read_newest(storage: Storage, state: TableState) -> RecentWrites:
    if state.clustering_facts is not None:
        return RecentWrites(newest=state.clustering_facts.written)
    try:
        properties = load_properties(storage)
        return RecentWrites(
            newest=read_newest_writes(storage, properties, state.timeline, newest=_NEWEST)
        )
    except (FormatError, NotFoundError) as problem:
        said = f"what wrote the files is not known, nor how big a row is: {problem}"
        return RecentWrites(warning=ReadWarning(rule="fileSizes", because=said))
