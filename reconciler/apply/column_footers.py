"""What base files' footers say of the columns that Hudi's own index is built of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.apply.table import Table
from reconciler.index.build import Asked, Built, Threads
from reconciler.index.keys import joined, places, take
from reconciler.index.merge import Keys
from reconciler.planners.column_stats import columns_of
from reconciler.state.known_index import keys_of
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reconciler.index.model import FileIndex

__all__ = ["Footers", "built_columns"]


def built_columns(state: TableState) -> dict[str, Any]:
    """The columns that the index is built of, by name their Arrow type."""
    known = state.index
    assert known is not None, "a spec with an index block has one"
    return columns_of(known.schema, state.table_version, known.hudi_defined)


class Footers:
    """Footers of base files of newest slices, each read once however often the table is looked at.

    ``columns``: by column its type.
    """

    def __init__(self, table: Table) -> None:
        self.columns: dict[str, Any] = {}
        self.count = self.unread = 0
        self.said: list[str] = []
        self._table = table
        self._index: FileIndex | None = None

    def of(self, state: TableState) -> FileIndex:
        """The statistics of every base file that a read of now sees."""
        known = state.index
        assert known is not None, "a spec with an index block has one"
        columns = built_columns(state)
        if columns != self.columns:
            self.columns, self._index = columns, None
        files = keys_of(state, known.files)
        rows = self._places(files)
        lacking = np.flatnonzero(rows < 0)
        if len(lacking) or self._index is None:
            built = self._read(state, keys_of(state, known.files[lacking]))
            self._index = joined(
                [built.index] if self._index is None else [self._index, built.index]
            )
            rows = self._places(files)
        return take(self._index, np.sort(rows))

    def _places(self, files: Keys) -> NDArray[np.int64]:
        if self._index is None:
            return np.full(len(files), -1, np.int64)
        return places(self._index, files.partition, files.name, files.size)

    def _read(self, state: TableState, files: Keys) -> Built:
        known = state.index
        assert known is not None, "a spec with an index block has one"
        names = state.partition_fields
        asked = Asked(
            columns=tuple(self.columns),
            schema=known.schema,
            supplied=frozenset(c for c in self.columns if c.split(".")[0] in names),
        )
        tools = self._table.tools
        builder = tools.builder or Threads(tools.open_storage)
        with self._table.phase("index", len(files)) as advance:
            built = builder.build(self._table.storage.ref, asked, files, progress=advance)
        self.count += len(files)
        self.unread += built.unread
        self.said += built.said
        return built
