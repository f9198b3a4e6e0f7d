"""Count the rows of the partitions that a plan deletes, from the footers of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reconciler.state.footers import read_footers
from reconciler.state.model import TableState
from reconciler.storage.api import Storage

#: footers that are read at most, a request each
MOST_FOOTERS: Final = 1000


#: returns path and size of the base files of some partitions, at most so many
FileChooser = Callable[[TableState, int], Mapping[str, Sequence[tuple[str, int]]]]


def add_partition_rows(
    storage: Storage, state: TableState, choose_files: FileChooser
) -> TableState:
    """Return the state with the rows of the chosen partitions.

    The rows of a partition with a damaged or missing file are unknown. Raises StorageError.
    """
    files = choose_files(state, MOST_FOOTERS)
    listed = [file for paths in files.values() for file in paths]
    footers = iter(read_footers(storage, listed, ()))
    rows = {}
    for partition, paths in files.items():
        read = [next(footers) for _ in paths]
        if all(footer.problem is None for footer in read):
            rows[partition] = sum(footer.rows for footer in read)
    return state.with_facts(partition_rows=rows)
