"""Find the files that queries read because their statistics do not exclude them; pure.

Files are given as an index of column statistics, real or simulated. Values in partition paths count
as statistics too, so queries on partition columns skip whole partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.index.may_match import may_match
from reconciler.index.model import ColumnStats, FileIndex, indexed_type
from reconciler.index.predicates.parse import parse
from reconciler.lazy_dataclass import dataclass

#: the schema of a table without known columns
_EMPTY_SCHEMA: Final = pa.schema([])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileReads:
    """``kept``: bool, queries by files, what each reads. ``files``, ``bytes``: int64 sums."""

    kept: Mask
    files: Integers
    bytes: Integers


def find_reads(
    queries: Sequence[str],
    index: FileIndex,
    sizes: Integers,
    *,
    schema: Any = _EMPTY_SCHEMA,
    zone: str = "UTC",
) -> FileReads:
    """Return which files of an index each predicate reads; ``sizes``: bytes of the files.

    ``schema`` and ``zone`` are those of ``may_match``. An unsupported predicate reads all files.
    """
    kept = np.zeros((len(queries), len(index)), np.bool_)
    read = np.zeros(len(queries), np.int64)
    for nth, where in enumerate(queries):
        kept[nth] = may_match(parse(where), index, schema=schema, zone=zone)
        read[nth] = sizes[kept[nth]].sum()
    return FileReads(kept=kept, files=kept.sum(axis=1), bytes=read)


def add_partition_values(index: FileIndex, values: Mapping[str, Any]) -> FileIndex:
    """Return the index with columns that have one value per file, from partition paths.

    ``values``: per column an Arrow array with one element per file; columns of types without an
    order are skipped. They replace the files' own statistics, because readers use the path.
    """
    columns = {name: stats for name, stats in index.columns.items() if name not in values}
    for name, column in values.items():
        stats = _constant_stats(column, index.rows)
        if stats is not None:
            columns[name] = stats
    return replace(index, columns=columns)


def _constant_stats(column: Any, rows: Integers) -> ColumnStats | None:
    kept = indexed_type(column.type)
    if kept is None:
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(kept)
    is_null, values = to_numpy(column.is_null()), np.maximum(rows, 1)
    free = np.ones(len(column), np.bool_)
    if pa.types.is_floating(kept):
        free = ~to_numpy(pc.is_nan(column).fill_null(False))
        column = pc.if_else(to_arrow(free), column, None)
    return ColumnStats(
        least=column,
        greatest=column,
        nulls=np.where(is_null, values, 0),
        values=values,
        is_exact_least=~is_null,
        is_exact_greatest=~is_null,
        is_nan_free=free,
    )
