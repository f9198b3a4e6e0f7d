"""Choose one row per key within a batch; pure, by column.

The greatest event time wins, for equal ones the later row; without ordering columns the later row.
Versions differ for tables that merge by commit time: Hudi 0.x still compares ordering columns here,
and before 1.1 deletion markers are then unknown (OverwriteWithLatestAvroPayload). Source:
BaseWriteHelper.deduplicateRecords (combineOnCondition).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_numpy
from reconciler.errors import RowsError, UnsupportedError
from reconciler.file_slices.merge.ordering import find_column, pick_last, pick_newest, to_comparable
from reconciler.file_slices.merge.record_keys import find_deletions
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.table.properties import TableProperties
from reconciler.lazy_dataclass import dataclass

#: from this table version on, Hudi knows deletion markers under commit time, too
_MARKED_BY_COMMIT_TIME: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeRule:
    """The rule by which one row per key is chosen.

    ``ordering``: columns of event time, most significant first; empty: the later row wins.
    ``is_global``: a key is in one partition only, so partitions do not distinguish rows.
    ``delete_marker``: a column and the text that makes a row a deletion.
    """

    ordering: tuple[str, ...] = ()
    is_global: bool = False
    delete_marker: tuple[str, str] | None = None

    @classmethod
    def from_properties(cls, properties: TableProperties, *, is_global: bool) -> Self:
        """Return the rule of a table, as the Hudi that created it applies it.

        Raises UnsupportedError for a table that merges records in an unknown way.
        """
        rules = MergeRules.from_properties(properties)
        if rules.refusal:
            raise UnsupportedError(rules.refusal)
        ignores_marker = rules.overwrites and properties.table_version < _MARKED_BY_COMMIT_TIME
        marker = None if ignores_marker else rules.delete_marker
        return cls(ordering=rules.ordering, is_global=is_global, delete_marker=marker)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DedupedRows:
    """``rows``: numbers of the rows to write, ascending, one per key.

    ``is_deletion``: whether each of them deletes its key.
    """

    rows: Integers
    is_deletion: Mask


def choose_rows(batch: Any, keys: Any, paths: Any, rule: DedupeRule) -> DedupedRows:
    """Return the rows of a batch that remain when every key occurs once.

    ``keys``: the record key of every row, strings without nulls. ``paths``: its partition path, a
    dictionary array without nulls. Raises RowsError naming a missing or null ordering column,
    UnsupportedError for one whose type has no order.
    """
    ordering = _read_ordering(batch, rule.ordering)
    codes, groups = _encode_keys(keys, None if rule.is_global else paths)
    if ordering:
        none = np.zeros(len(codes), np.bool_)
        chosen = pick_newest(codes, groups, ordering, is_final=none, is_listed=none)
    else:
        chosen = pick_last(codes, groups)
    rows = np.sort(chosen)
    return DedupedRows(rows=rows, is_deletion=find_deletions(batch, rule.delete_marker)[rows])


def _encode_keys(keys: Any, paths: Any) -> tuple[Integers, int]:
    """Return a number per row, equal for equal keys, and how many numbers there are."""
    encoded = keys.dictionary_encode()
    codes = to_numpy(encoded.indices).astype(np.int64)
    if paths is None or len(paths.dictionary) <= 1:
        return codes, len(encoded.dictionary)
    combined = codes * len(paths.dictionary) + to_numpy(paths.indices)
    encoded_pairs = pa.array(combined).dictionary_encode()
    return to_numpy(encoded_pairs.indices).astype(np.int64), len(encoded_pairs.dictionary)


def _read_ordering(batch: Any, names: Sequence[str]) -> list[Any]:
    columns = []
    for name in names:
        column = find_column(batch, name)
        if column is None:
            raise RowsError(f"the rows lack column {name}, the table's ordering column")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            row = pc.index(column.is_null(), pa.scalar(True)).as_py()
            raise RowsError(
                f"ordering column {name}: null in {column.null_count} of {len(batch)} rows, first "
                f"in row {row} (counted from 0); every row needs an event time"
            )
        columns.append(to_comparable(column, name))
    return columns
