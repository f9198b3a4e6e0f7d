"""Reduce the statistics of column chunks to statistics of their files. Vectorised, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import sum_by_code, to_arrow, to_numpy
from reconciler.index.model import UNKNOWN, ColumnStats

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduce_to_files(chunks: ColumnStats, file: NDArray[np.int64], files: int) -> ColumnStats:
    """Return the statistics of ``files`` files; ``file``: the file of each chunk, ascending.

    A file without chunks is unknown. A bound is known if each chunk has it or holds only nulls.
    """
    if len(file) == files and (file == np.arange(files)).all():
        return chunks
    count = np.bincount(file, minlength=files)
    low, is_low = _outermost_bounds(chunks, file, files, is_least=True)
    high, is_high = _outermost_bounds(chunks, file, files, is_least=False)
    free = np.bincount(file, chunks.is_nan_free, files) == count
    is_float = pa.types.is_floating(chunks.type)
    return ColumnStats(
        least=low,
        greatest=high,
        nulls=_sum_counts(chunks.nulls, file, count),
        values=_sum_counts(chunks.values, file, count),
        is_exact_least=is_low,
        is_exact_greatest=is_high,
        is_nan_free=free & (count > 0) if is_float else np.ones(files, np.bool_),
    )


def _sum_counts(
    values: NDArray[np.int64], file: NDArray[np.int64], count: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sum counts per file; unknown if any chunk's count is unknown or the file has no chunk."""
    sums = sum_by_code(file, values, len(count))
    is_known = np.bincount(file, values >= 0, len(count)) == count
    return np.where(is_known & (count > 0), sums, UNKNOWN)


def _outermost_bounds(
    chunks: ColumnStats, file: NDArray[np.int64], files: int, *, is_least: bool
) -> tuple[Any, NDArray[np.bool_]]:
    """Return the outermost bound of each file's chunks, and whether it is a value of the file."""
    values = chunks.least if is_least else chunks.greatest
    exact = chunks.is_exact_least if is_least else chunks.is_exact_greatest
    is_known = to_numpy(values.is_valid())
    is_complete = np.bincount(file, is_known | chunks.is_all_null, files) == np.bincount(
        file, minlength=files
    )
    some = np.flatnonzero(is_known & is_complete[file])
    rows = pa.table(
        {
            "file": to_arrow(file[some]),
            "value": values.take(to_arrow(some)),
            "exact": to_arrow((~exact[some]).astype(np.int8)),
        }
    )
    keys = [
        ("file", "ascending"),
        ("value", "ascending" if is_least else "descending"),
        ("exact", "ascending"),
    ]
    some = some[to_numpy(pc.sort_indices(rows, sort_keys=keys)).astype(np.int64)]
    is_first = np.ones(len(some), np.bool_)
    is_first[1:] = file[some[1:]] != file[some[:-1]]
    firsts = some[is_first]
    place = np.full(files, UNKNOWN, np.int64)
    place[file[firsts]] = firsts
    is_there = place >= 0
    bits = to_arrow(is_there).buffers()[1]
    at = pa.Array.from_buffers(pa.int64(), files, [bits, to_arrow(place).buffers()[1]])
    found = values.take(at) if len(values) else pa.nulls(files, values.type)
    return found, is_there & exact[np.where(is_there, place, 0)] if len(exact) else is_there
