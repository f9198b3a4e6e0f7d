"""Merge new records into the rows of a base file: what an upsert writes of a file group.

A replaced row keeps its position, so a file keeps the order that clustering gave it; new records
come last. Source: HoodieMergeHandle.write, HoodieRecordMerger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.file_slices.merge.log_records import (
    LogRecords,
    find_ordering_fields,
    find_winners,
)
from reconciler.file_slices.merge.record_keys import find_keys
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.lazy_dataclass import dataclass

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
        self._fields = {} if rules.overwrites else find_ordering_fields(rules, schema)
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
        self.counts = replace(self.counts, inserts=len(rows))
        is_all = len(rows) == len(self._rows)
        new = self._rows if is_all else self._rows.take(to_arrow(rows))
        for start in range(0, len(new), _BATCH_ROWS):
            yield new.slice(start, _BATCH_ROWS)

    def _merge_batch(self, rows: Any, deciding: Any, path: str) -> Any:
        if not len(self._records):
            return rows
        positions, records = find_keys(deciding, self._records.keys, self._rules, path)
        if not len(positions):
            return rows
        self._is_met[records] = True
        wins = find_winners(self._records, (positions, records), deciding, self._fields, path)
        row = self._records.row[records]
        is_update, is_delete = wins & (row >= 0), wins & (row < 0)
        self.counts = replace(
            self.counts,
            updates=self.counts.updates + int(is_update.sum()),
            deletes=self.counts.deletes + int(is_delete.sum()),
        )
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


def _to_batch(table: Any, schema: pa.Schema) -> Any:
    batches = table.cast(schema).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)
