"""Read the statistics of base files for the columns of Hudi's own index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reconciler.arrays import Integers
from reconciler.executor.session import ApplySession
from reconciler.index.build import BuiltIndex, IndexRequest, ThreadedIndexBuilder
from reconciler.index.file_keys import find_rows, join_indexes, take_files
from reconciler.index.model import FileKeys
from reconciler.planners.index.column_stats import list_indexed_columns
from reconciler.state.index_state_reader import build_file_keys
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.index.model import FileIndex

__all__ = ["FooterStatistics", "list_built_columns"]


def list_built_columns(state: TableState) -> dict[str, Any]:
    """Return the columns that the index is built of, with their Arrow types."""
    known = state.index_state
    assert known is not None, "a spec with an index block has one"
    return list_indexed_columns(known.schema, state.table_version, known.hudi_defined)


class FooterStatistics:
    """Statistics of base files of newest slices; each footer is read once.

    ``columns``: type by column.
    """

    def __init__(self, session: ApplySession) -> None:
        self.columns: dict[str, Any] = {}
        self.count = self.unread = 0
        self.problems: list[str] = []
        self._session = session
        self._index: FileIndex | None = None

    def read_statistics(self, state: TableState) -> FileIndex:
        """Return the statistics of every base file that a reader sees now."""
        known = state.index_state
        assert known is not None, "a spec with an index block has one"
        columns = list_built_columns(state)
        if columns != self.columns:
            self.columns, self._index = columns, None
        files = build_file_keys(state, known.files)
        rows = self._find_places(files)
        lacking = np.flatnonzero(rows < 0)
        if len(lacking) or self._index is None:
            built = self._read(state, build_file_keys(state, known.files[lacking]))
            self._index = join_indexes(
                [built.index] if self._index is None else [self._index, built.index]
            )
            rows = self._find_places(files)
        return take_files(self._index, np.sort(rows))

    def _find_places(self, files: FileKeys) -> Integers:
        if self._index is None:
            return np.full(len(files), -1, np.int64)
        return find_rows(self._index, files)

    def _read(self, state: TableState, files: FileKeys) -> BuiltIndex:
        known = state.index_state
        assert known is not None, "a spec with an index block has one"
        names = state.partition_fields
        request = IndexRequest(
            columns=tuple(self.columns),
            schema=known.schema,
            supplied=frozenset(c for c in self.columns if c.split(".")[0] in names),
        )
        context = self._session.context
        builder = context.builder or ThreadedIndexBuilder(context.open_storage)
        with self._session.phase("index", len(files)) as advance:
            built = builder.build(self._session.storage.ref, request, files, progress=advance)
        self.count += len(files)
        self.unread += built.unread_count
        self.problems += built.problems
        return built
