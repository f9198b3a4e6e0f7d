"""Merge new records into the rows of a base file: what an upsert writes of a file group.

A replaced row keeps its position, so a file keeps the order that clustering gave it; new records
come last. Source: HoodieMergeHandle.write, HoodieRecordMerger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.file_slices.merge.log_records import (
    LogRecords,
    find_ordering_fields,
    read_ordering_values,
)
from reconciler.file_slices.merge.ordering import compare_rows, to_comparable
from reconciler.file_slices.merge.record_keys import read_record_keys
from reconciler.file_slices.merge.rules import MergeRules

#: rows per batch
_BATCH_ROWS: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Rows of a new base file that are new, that replaced others, and that were deleted."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


class BaseFileMerge:
    """Merges new records into the rows of a file group.

    ``records``: one per key, in one chunk; their rows have the columns of ``schema``. ``counts`` is
    complete when both iterators have ended.
    """

    def __init__(self, records: LogRecords, rules: MergeRules, schema: pa.Schema) -> None:
        self._records, self._rules, self._schema = records, rules, schema
        self._rows = _to_batch(records.table.select(schema.names), schema)
        self._fields = find_ordering_fields(rules, schema)
        self._is_met = np.zeros(len(records), np.bool_)
        self.counts = FileCounts()

    def merge(self, batches: Iterable[Any], path: str) -> Iterator[Any]:
        """Yield the changed rows of the base file at ``path``, batch by batch.

        Every row of a key is replaced or removed, even if there are several. Raises FormatError and
        UnsupportedError naming ``path`` for rows whose keys or event times cannot be read.
        """
        for batch in batches:
            changed = self._merge_batch(batch.select(self._schema.names), batch, path)
            if len(changed):
                yield changed

    def remaining(self) -> Iterator[Any]:
        """Yield the records whose keys the base file lacks; call it after ``merge`` has ended."""
        is_new = ~self._is_met & (self._records.row >= 0)
        rows = np.sort(self._records.row[is_new])
        self._add_counts(inserts=len(rows))
        found = self._rows if len(rows) == len(self._rows) else self._rows.take(to_arrow(rows))
        for start in range(0, len(found), _BATCH_ROWS):
            yield found.slice(start, _BATCH_ROWS)

    def _merge_batch(self, rows: Any, deciding: Any, path: str) -> Any:
        positions, records = self._find_matches(deciding, path)
        if not len(positions):
            return rows
        self._is_met[records] = True
        wins = self._find_winners(deciding, positions, records, path)
        row = self._records.row[records]
        is_update, is_delete = wins & (row >= 0), wins & (row < 0)
        self._add_counts(updates=int(is_update.sum()), deletes=int(is_delete.sum()))
        order = np.arange(len(rows))
        if is_update.any():
            order[positions[is_update]] = len(rows) + np.arange(is_update.sum())
            new = self._rows.take(to_arrow(row[is_update]))
            rows = pa.concat_batches([rows, new]).take(to_arrow(order))
        if is_delete.any():
            stays = np.ones(len(order), np.bool_)
            stays[positions[is_delete]] = False
            rows = rows.filter(to_arrow(stays))
        return rows

    def _find_matches(self, batch: Any, path: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the batch that have a new record, and the records."""
        if not len(self._records):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = read_record_keys(batch, self._rules, path)
        found = pc.index_in(keys, value_set=self._records.keys)
        positions = np.flatnonzero(to_numpy(found.is_valid()))
        return positions, to_numpy(found.drop_null()).astype(np.int64)

    def _find_winners(
        self, batch: Any, positions: NDArray[np.int64], records: NDArray[np.int64], path: str
    ) -> NDArray[np.bool_]:
        """Return a mask of matches where the new record wins: always, or by event time."""
        if self._rules.overwrites or not self._fields:
            return np.ones(len(positions), np.bool_)
        old = read_ordering_values(batch.take(to_arrow(positions)), self._fields, path)
        theirs = [
            to_comparable(column, name) for column, name in zip(old, self._fields, strict=True)
        ]
        ours = [column.take(to_arrow(records)) for column in self._records.ordering]
        return (compare_rows(ours, theirs) >= 0) | self._records.is_final[records]

    def _add_counts(self, *, inserts: int = 0, updates: int = 0, deletes: int = 0) -> None:
        before = self.counts
        self.counts = FileCounts(
            inserts=before.inserts + inserts,
            updates=before.updates + updates,
            deletes=before.deletes + deletes,
        )


def _to_batch(table: Any, schema: pa.Schema) -> Any:
    found = table.cast(schema).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=schema)
