"""Rows of one key within a batch: which of them is written; pure, by column.

Source: BaseWriteHelper.deduplicateRecords (combineOnCondition). The greatest event time wins, of
equal ones the later row; without ordering columns the later row. On a table that merges by commit
time the versions differ: Hudi 0.x compares ordering columns here all the same, and before 1.1 no
marker of deletions is known then (OverwriteWithLatestAvroPayload).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_numpy_numbers
from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.deletion_marks import find_deletions
from reconciler.file_slices.merge.ordering import find_column, pick_last, pick_newest, to_comparable
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.table.properties import TableProperties

#: the version of tables whose Hudi knows markers of deletions under commit time, too
_MARKED_BY_COMMIT_TIME: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeRule:
    """``ordering``: the columns of event time, most significant first; empty: the later row wins.

    ``is_global``: a key is in one partition only, so that partitions do not tell rows apart.
    ``delete_marker``: a column and the text that makes a row a deletion.
    """

    ordering: tuple[str, ...] = ()
    is_global: bool = False
    delete_marker: tuple[str, str] | None = None

    @classmethod
    def from_properties(cls, properties: TableProperties, *, is_global: bool) -> Self:
        """The rule of a table, as the Hudi that made it follows it.

        Raises UnsupportedError for a table whose records merge in a way that is not known.
        """
        rules = MergeRules.from_properties(properties)
        if rules.refusal:
            raise UnsupportedError(rules.refusal)
        is_blind = rules.overwrites and properties.table_version < _MARKED_BY_COMMIT_TIME
        marker = None if is_blind else rules.delete_marker
        return cls(ordering=rules.ordering, is_global=is_global, delete_marker=marker)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DedupedRows:
    """``rows``: the numbers of the rows that are written, ascending, one a key.

    ``find_deletions``: of each of them, whether it removes its key instead of writing it.
    """

    rows: NDArray[np.int64]
    is_deletion: NDArray[np.bool_]


def choose_rows(batch: Any, keys: Any, paths: Any, rule: DedupeRule) -> DedupedRows:
    """The rows of a batch that are left when every key is there once.

    ``keys``: the record key of every row, strings without nulls. ``paths``: its partition path, a
    dictionary array without nulls. Raises RowsError naming the ordering column that rows lack or
    that is null in one, UnsupportedError for one of a type that has no order.
    """
    ordering = _read_ordering(batch, rule.ordering)
    codes, groups = _encode_keys(keys, None if rule.is_global else paths)
    if ordering:
        nothing = np.zeros(len(codes), np.bool_)
        found = pick_newest(codes, groups, ordering, is_final=nothing, is_listed=nothing)
    else:
        found = pick_last(codes, groups)
    rows = np.sort(found)
    return DedupedRows(rows=rows, is_deletion=find_deletions(batch, rule.delete_marker)[rows])


def _encode_keys(keys: Any, paths: Any) -> tuple[NDArray[np.int64], int]:
    """A number per row that rows of one key share, and how many numbers there are."""
    encoded = keys.dictionary_encode()
    codes = to_numpy_numbers(encoded.indices).astype(np.int64)
    if paths is None or len(paths.dictionary) <= 1:
        return codes, len(encoded.dictionary)
    both = codes * len(paths.dictionary) + to_numpy_numbers(paths.indices)
    again = pa.array(both).dictionary_encode()
    return to_numpy_numbers(again.indices).astype(np.int64), len(again.dictionary)


def _read_ordering(batch: Any, names: Sequence[str]) -> list[Any]:
    found = []
    for name in names:
        column = find_column(batch, name)
        if column is None:
            raise RowsError(f"the rows have no column {name}, by which the table orders them")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            row = pc.index(column.is_null(), pa.scalar(True)).as_py()
            raise RowsError(
                f"ordering column {name}: null in {column.null_count} of {len(batch)} rows, first "
                f"in row {row} (counted from 0); rows without an event time have no order"
            )
        found.append(to_comparable(column, name))
    return found
