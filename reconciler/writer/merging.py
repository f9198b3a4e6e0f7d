"""New records into the rows of a base file: what an upsert writes of a file group.

A row that is replaced stays where it was, so that a file keeps the order that it was clustered in.
Source: HoodieMergeHandle.write, HoodieRecordMerger; records that are new come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import booleans, flags, integers, numbers
from reconciler.merge.keys import keys_of
from reconciler.merge.logs import LogRecords, ordering_fields, ordering_of
from reconciler.merge.ordering import comparable, compared
from reconciler.merge.rules import MergeRules

#: rows of a batch
_TOGETHER: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows of a new base file that no older one had, that replaced others, and that are gone."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


class Merging:
    """New records and the rows that a file group has, as the rows that it is going to have.

    ``records``: one a key, in one chunk; their rows have the columns of ``schema``. ``counts`` is
    whole once both iterators are at their ends.
    """

    def __init__(self, records: LogRecords, rules: MergeRules, schema: pa.Schema) -> None:
        self._records, self._rules, self._schema = records, rules, schema
        self._rows = _one_batch(records.table.select(schema.names), schema)
        self._fields = ordering_fields(rules, schema)
        self._is_met = np.zeros(len(records), np.bool_)
        self.counts = Counts()

    def over(self, batches: Iterable[Any], path: str) -> Iterator[Any]:
        """The rows of the base file at ``path``, changed; batches in, batches out.

        Every row of a key is replaced or goes, should there be several. Raises FormatError and
        UnsupportedError naming ``path`` for rows whose keys or event times cannot be told.
        """
        for batch in batches:
            changed = self._changed(batch.select(self._schema.names), batch, path)
            if len(changed):
                yield changed

    def rest(self) -> Iterator[Any]:
        """The records whose keys the base file does not have; only after ``over`` has ended."""
        is_new = ~self._is_met & (self._records.row >= 0)
        rows = np.sort(self._records.row[is_new])
        self._count(inserts=len(rows))
        found = self._rows if len(rows) == len(self._rows) else self._rows.take(integers(rows))
        for start in range(0, len(found), _TOGETHER):
            yield found.slice(start, _TOGETHER)

    def _changed(self, rows: Any, deciding: Any, path: str) -> Any:
        at, which = self._hits(deciding, path)
        if not len(at):
            return rows
        self._is_met[which] = True
        wins = self._wins(deciding, at, which, path)
        row = self._records.row[which]
        is_update, is_delete = wins & (row >= 0), wins & (row < 0)
        self._count(updates=int(is_update.sum()), deletes=int(is_delete.sum()))
        place = np.arange(len(rows))
        if is_update.any():
            place[at[is_update]] = len(rows) + np.arange(is_update.sum())
            new = self._rows.take(integers(row[is_update]))
            rows = pa.concat_batches([rows, new]).take(integers(place))
        if is_delete.any():
            stays = np.ones(len(place), np.bool_)
            stays[at[is_delete]] = False
            rows = rows.filter(booleans(stays))
        return rows

    def _hits(self, batch: Any, path: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of the batch that have a new record, and which."""
        if not len(self._records):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = keys_of(batch, self._rules, path)
        found = pc.index_in(keys, value_set=self._records.keys)
        at = np.flatnonzero(flags(found.is_valid()))
        return at, numbers(found.drop_null()).astype(np.int64)

    def _wins(
        self, batch: Any, at: NDArray[np.int64], which: NDArray[np.int64], path: str
    ) -> NDArray[np.bool_]:
        """Whether the new record is what becomes of a row: always, or by event time."""
        if self._rules.overwrites or not self._fields:
            return np.ones(len(at), np.bool_)
        old = ordering_of(batch.take(integers(at)), self._fields, path)
        theirs = [comparable(column, name) for column, name in zip(old, self._fields, strict=True)]
        ours = [column.take(integers(which)) for column in self._records.ordering]
        return (compared(ours, theirs) >= 0) | self._records.is_final[which]

    def _count(self, *, inserts: int = 0, updates: int = 0, deletes: int = 0) -> None:
        before = self.counts
        self.counts = Counts(
            inserts=before.inserts + inserts,
            updates=before.updates + updates,
            deletes=before.deletes + deletes,
        )


def _one_batch(table: Any, schema: pa.Schema) -> Any:
    found = table.cast(schema).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=schema)
