"""What queries read of a table: the files that statistics do not rule out, and their bytes; pure.

Files are given as an index of column statistics, real or simulated. What a partition's path says of
its rows counts as a statistic too, so queries on partition columns leave out whole partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_boolean_array, to_numpy_bools
from reconciler.index.may_match import may_match
from reconciler.index.model import ColumnStats, FileIndex, indexed_type
from reconciler.index.predicates.parse import parse

#: of a table whose schema nobody knows: every name is one of no column
_EMPTY_SCHEMA: Final = pa.schema([])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileReads:
    """``kept``: bool, queries by files: what each reads. ``files``, ``bytes``: int64, the sums."""

    kept: NDArray[np.bool_]
    files: NDArray[np.int64]
    bytes: NDArray[np.int64]


def find_reads(
    queries: Sequence[str],
    index: FileIndex,
    sizes: NDArray[np.int64],
    *,
    schema: Any = _EMPTY_SCHEMA,
    zone: str = "UTC",
) -> FileReads:
    """What each of the predicates reads of the files of an index, whose bytes are ``sizes``.

    ``schema`` and ``zone`` as ``may_match`` has them. A predicate that is not understood reads all.
    """
    kept = np.zeros((len(queries), len(index)), np.bool_)
    read = np.zeros(len(queries), np.int64)
    for nth, where in enumerate(queries):
        kept[nth] = may_match(parse(where), index, schema=schema, zone=zone)
        read[nth] = sizes[kept[nth]].sum()
    return FileReads(kept=kept, files=kept.sum(axis=1), bytes=read)


def add_partition_values(index: FileIndex, values: Mapping[str, Any]) -> FileIndex:
    """The index with columns that have one value a file, such as its partition's path says.

    ``values``: by column an Arrow array with an element a file; those of a type that has no bounds
    are left out. What the files themselves hold in such a column is not what is read.
    """
    columns = {name: stats for name, stats in index.columns.items() if name not in values}
    for name, column in values.items():
        stats = _constant_stats(column, index.rows)
        if stats is not None:
            columns[name] = stats
    return replace(index, columns=columns)


def _constant_stats(column: Any, rows: NDArray[np.int64]) -> ColumnStats | None:
    kept = indexed_type(column.type)
    if kept is None:
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(kept)
    is_null, values = to_numpy_bools(column.is_null()), np.maximum(rows, 1)
    free = np.ones(len(column), np.bool_)
    if pa.types.is_floating(kept):
        free = ~to_numpy_bools(pc.is_nan(column).fill_null(False))
        column = pc.if_else(to_boolean_array(free), column, None)
    return ColumnStats(
        least=column,
        greatest=column,
        nulls=np.where(is_null, values, 0),
        values=values,
        is_exact_least=~is_null,
        is_exact_greatest=~is_null,
        is_nan_free=free,
    )


def concatenate_indexes(parts: Sequence[FileIndex]) -> FileIndex:
    """The files of several indexes in this order; a column that one has not is left out."""
    names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    return FileIndex(
        partition=pa.concat_arrays([part.partition.cast(pa.string()) for part in parts]),
        name=pa.concat_arrays([part.name for part in parts]),
        size=np.concatenate([part.size for part in parts]),
        rows=np.concatenate([part.rows for part in parts]),
        columns={
            name: ColumnStats.concat([part.columns[name] for part in parts]) for name in names
        },
    )
