"""Compare records by event time, for whole columns of records.

Values compare as in Java: floats by their total order, text by its bytes (as Spark's UTF8String).
Null counts as 0 in an int column and is below all values of other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import UnsupportedError

_POSITIVE: Final = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def find_column(batch: Any, path: str) -> Any:
    """Return the column of a name or of a dotted path into structs, None if there is none."""
    first, *inner = path.split(".")
    at = batch.schema.get_field_index(first)  # names are a list that is made anew
    if at < 0:
        return None
    column = batch.column(at)
    for name in inner:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column


def find_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Return the type of a column name or of a dotted path into structs, None if it is unknown."""
    first, *inner = path.split(".")
    if first not in schema.names:
        return None
    kind = schema.field(first).type
    for name in inner:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


def to_comparable(column: Any, name: str) -> Any:
    """Return an array that Arrow compares as Java compares the column's values.

    Raises UnsupportedError for a type that has no order in Hudi.
    """
    kind, types = column.type, pa.types
    if kind == pa.int32():
        return column.fill_null(0)  # Hudi treats null as 0
    if types.is_floating(kind):
        return _to_total_order(column.cast(pa.float64()))
    if types.is_boolean(kind):
        return column.cast(pa.int8())
    if types.is_timestamp(kind):
        return column.view(pa.int64())
    compares = (types.is_integer, types.is_string, types.is_decimal, types.is_date32)
    if any(is_one(kind) for is_one in compares):
        return column
    raise UnsupportedError(f"records cannot be ordered by column {name} of type {kind}")


def to_comparable_columns(columns: Iterable[Any], names: Iterable[str]) -> tuple[Any, ...]:
    """Return ``to_comparable`` of columns with these names."""
    return tuple(to_comparable(column, name) for column, name in zip(columns, names, strict=True))


def _to_total_order(column: Any) -> Any:
    """Convert doubles to longs in the order of Double.compare: -0.0 before 0.0, NaN last."""
    values = column.fill_null(0.0)
    bits = np.frombuffer(values.buffers()[1] or b"", np.int64)
    bits = bits[values.offset : values.offset + len(values)].copy()
    bits[to_numpy(pc.is_nan(values))] = np.int64(0x7FF8_0000_0000_0000)
    bits = np.where(bits < 0, bits ^ _POSITIVE, bits)
    ordered = to_arrow(bits)
    return pc.if_else(column.is_null(), None, ordered) if column.null_count else ordered


def rank_rows(columns: Sequence[Any], count: int) -> Integers:
    """Return a number per row that compares as the rows do, most significant column first."""
    if len(columns) == 1:
        return _rank_column(columns[0])
    ranks = np.zeros(count, np.int64)
    for column in columns:
        rank = _rank_densely(column)
        width = int(rank.max()) + 1 if count else 1
        ranks = np.unique(ranks * width + rank, return_inverse=True)[1].astype(np.int64)
    return ranks


def _rank_column(column: Any) -> Integers:
    if pa.types.is_integer(column.type) and not column.null_count:
        return to_numpy(column).astype(np.int64)
    return _rank_densely(column)


def _rank_densely(column: Any) -> Integers:
    order = to_numpy(pc.array_sort_indices(column, null_placement="at_start")).astype(np.int64)
    ordered = column.take(to_arrow(order))
    steps = np.zeros(len(order), np.int64)
    if len(order) > 1:
        steps[1:] = compare_rows([ordered[:-1]], [ordered[1:]]) != 0
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks


def compare_rows(left: Sequence[Any], right: Sequence[Any]) -> NDArray[np.int8]:
    """Return -1, 0 or 1 per row: ``left`` is older than ``right``, equal or newer."""
    signs = np.zeros(len(left[0]) if left else 0, np.int8)
    for left_column, right_column in zip(left, right, strict=True):
        sign = _compare_values(left_column, right_column)
        signs = np.where(signs == 0, sign, signs)
    return signs


def _compare_values(left: Any, right: Any) -> NDArray[np.int8]:
    newer = to_numpy(pc.greater(left, right).fill_null(False)).astype(np.int8)
    older = to_numpy(pc.less(left, right).fill_null(False)).astype(np.int8)
    has_left = to_numpy(left.is_valid()).astype(np.int8)
    has_right = to_numpy(right.is_valid()).astype(np.int8)
    both = (has_left & has_right).astype(np.bool_)
    return np.where(both, newer - older, has_left - has_right).astype(np.int8)


def pick_last(codes: Integers, groups: int) -> Integers:
    """Return the last row of each group: the later write wins."""
    last = np.zeros(groups, np.int64)
    last[codes] = np.arange(len(codes))
    return last


def pick_newest(
    codes: Integers,
    groups: int,
    ordering: Sequence[Any],
    *,
    is_final: Mask,
    is_listed: Mask,
) -> Integers:
    """Return the winning row of each group by event time; of equal ones, the later row.

    ``codes``: the group of each row, one group per record key; rows are in written order.
    ``is_final``: deletions without event time. They remove everything before them; afterwards only
    a record counts, whatever its event time, not a deletion of a delete block (``is_listed``).
    Source: BufferedRecordMergerFactory.EventTimeRecordMerger, deltaMergeDeleteRecord.
    """
    winners = pick_last(codes, groups)
    repeated = np.flatnonzero(np.bincount(codes, minlength=groups)[codes] > 1)
    if not len(repeated):
        return winners
    codes, is_final, is_listed = codes[repeated], is_final[repeated], is_listed[repeated]
    candidates = np.flatnonzero(_find_candidates(codes, groups, is_final, is_listed))
    picked = to_arrow(repeated[candidates])
    rank = rank_rows([column.take(picked) for column in ordering], len(candidates))
    # lexsort is stable, so the later of equal rows stays last
    order = candidates[np.lexsort((rank, codes[candidates]))]
    is_last = np.append(np.diff(codes[order]) != 0, True)
    winners[codes[order[is_last]]] = repeated[order[is_last]]
    return winners


def _find_candidates(codes: Integers, groups: int, is_final: Mask, is_listed: Mask) -> Mask:
    """Return the rows that no final deletion removes."""
    final_rows = np.flatnonzero(is_final)
    if not len(final_rows):
        return np.ones(len(codes), np.bool_)
    row_numbers = np.arange(len(codes))
    last_final = np.full(groups, -1, np.int64)
    last_final[codes[final_rows]] = final_rows
    has_final = last_final[codes] >= 0
    first_record_after = np.full(groups, len(codes), np.int64)
    records_after = np.flatnonzero(has_final & (row_numbers > last_final[codes]) & ~is_listed)[::-1]
    first_record_after[codes[records_after]] = records_after
    has_no_record_after = first_record_after[codes] == len(codes)
    is_candidate: Mask = ~has_final | (row_numbers >= first_record_after[codes])
    is_candidate |= has_no_record_after & (row_numbers == last_final[codes])
    return is_candidate
