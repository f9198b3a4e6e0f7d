"""Build statistics of simulated files from all sampled rows, halves and quarters of them; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.index.model import ColumnStats, FileIndex, indexed_type
from reconciler.layout.curves.pseudo_random import pseudo_random_bits
from reconciler.lazy_dataclass import dataclass

QUARTERS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class _RankedColumn:
    """A column as ranks, -1 for null and NaN. ``row``: a row with each rank."""

    values: Any
    rank: Integers
    row: Integers
    is_null: Mask
    is_nan: Mask


@dataclass(frozen=True, slots=True, eq=False)
class SampleStatistics:
    """The columns of sampled rows that can have statistics, and the quarter of each row."""

    columns: Mapping[str, _RankedColumn]
    quarter: Integers

    @classmethod
    def build(cls, rows: Any, queries: Sequence[str]) -> SampleStatistics:
        columns = {}
        for name in rows.schema.names if queries else ():
            values = rows.column(name).combine_chunks()
            kept = indexed_type(values.type)
            if kept is not None:
                columns[name] = _rank_column(values.cast(kept))
        return cls(
            columns, (pseudo_random_bits(len(rows), 5) % np.uint64(QUARTERS)).astype(np.int64)
        )

    def build_index(self, file: Integers, count: int) -> tuple[FileIndex, Mask]:
        """Return the index of files for quarters, halves and all rows, and which have rows."""
        cell = self.quarter * count + file
        by = np.argsort(cell, kind="stable")
        sizes = _add_levels(np.bincount(cell, minlength=QUARTERS * count), count, np.add)
        columns = {
            name: _column_stats(column, cell, by, count, sizes)
            for name, column in self.columns.items()
        }
        total = len(sizes)
        index = FileIndex(
            partition=to_arrow([""] * total).dictionary_encode(),
            name=to_arrow([str(nth) for nth in range(total)]),
            size=sizes,
            rows=sizes,
            columns=columns,
        )
        return index, sizes > 0


def _rank_column(values: Any) -> _RankedColumn:
    is_null = to_numpy(values.is_null())
    is_nan = np.zeros(len(values), np.bool_)
    if pa.types.is_floating(values.type):
        is_nan = to_numpy(pc.is_nan(values).fill_null(False))
    ranks = to_numpy(pc.rank(values, tiebreaker="dense")).astype(np.int64) - 1
    row = np.zeros(int(ranks.max(initial=-1)) + 1, np.int64)
    row[ranks] = np.arange(len(ranks))
    return _RankedColumn(values, np.where(is_null | is_nan, -1, ranks), row, is_null, is_nan)


def _add_levels(quarters: NDArray[Any], count: int, together: np.ufunc) -> NDArray[Any]:
    """Append the values for halves and for all rows to those of quarters."""
    four = quarters.reshape(QUARTERS, count)
    two = together(four[::2], four[1::2])
    return np.concatenate([four, two, together(two[:1], two[1:])]).ravel()


def _column_stats(
    column: _RankedColumn,
    cell: Integers,
    by: Integers,
    count: int,
    sizes: Integers,
) -> ColumnStats:
    total, none = QUARTERS * count, len(column.row)
    some = by[column.rank[by] >= 0]
    starts = np.flatnonzero(np.diff(cell[some], prepend=-1))
    least, greatest = np.full(total, none), np.full(total, -1)
    if len(some):
        cells = cell[some[starts]]
        least[cells] = np.minimum.reduceat(column.rank[some], starts)
        greatest[cells] = np.maximum.reduceat(column.rank[some], starts)
    least = _add_levels(least, count, np.minimum)
    greatest = _add_levels(greatest, count, np.maximum)
    nulls = _add_levels(np.bincount(cell, column.is_null, total).astype(np.int64), count, np.add)
    nans = _add_levels(np.bincount(cell, column.is_nan, total).astype(np.int64), count, np.add)
    is_there = greatest >= 0
    return ColumnStats(
        least=_take_ranks(column, np.where(is_there, least, -1)),
        greatest=_take_ranks(column, greatest),
        nulls=nulls,
        values=sizes,
        is_exact_least=is_there,
        is_exact_greatest=is_there,
        is_nan_free=nans == 0,
    )


def _take_ranks(column: _RankedColumn, ranks: Integers) -> Any:
    """Return the values of ranks, null for -1."""
    if not len(column.row):
        return pa.nulls(len(ranks), column.values.type)
    is_there = to_arrow(ranks >= 0)
    values = column.values.take(to_arrow(column.row[np.maximum(ranks, 0)]))
    return pc.if_else(is_there, values, None)
