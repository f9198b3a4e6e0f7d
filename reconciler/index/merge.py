"""Merge new statistics with those of the last version. No I/O.

Base files never change, so statistics stay true as long as the file exists. Footers are read only
for files and columns that no version knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers
from reconciler.index.file_keys import find_rows, sort_index
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex, FileKeys
from reconciler.index.parquet_kinds import INT64, ParquetKind, convert_bounds

_FLOAT: Final = ParquetKind(physical="FLOAT", logical="NONE")


def find_missing(index: FileIndex | None, files: FileKeys, wanted: Mapping[str, Any]) -> Integers:
    """Return the positions of the files whose footers must be read for the wanted columns.

    ``wanted``: the type of each column (``find_index_types``). ``index``: the last valid version. A
    file must be read if the version lacks it, or lacks one of its columns in a type that widens to
    the wanted one. Statistics that a footer lacked are recorded as unknown and not read again.
    """
    if index is None:
        return np.arange(len(files))
    row = find_rows(index, files)
    is_known = (row >= 0) & (index.rows[row] >= 0) if len(index) else np.zeros(len(row), np.bool_)
    for column, kind in wanted.items():
        stats = index.columns.get(column)
        if stats is None or not can_widen(stats.type, kind):
            return np.arange(len(files))
        is_known &= stats.values[row] >= 0 if len(index) else False
    return np.flatnonzero(~is_known)


def merge_versions(
    last: FileIndex | None, new: FileIndex, live: FileKeys, wanted: Mapping[str, Any]
) -> FileIndex:
    """Return the next version: the new statistics of each file, else those of the last version.

    ``live``: every base file that a reader can read, including time travel. Other files are
    skipped, and so are live files in neither version. Columns that are not wanted are dropped;
    columns of another type are widened, or become unknown if that is impossible.
    """
    parts = [new] if last is None else [last, new]
    rows = [find_rows(part, live) for part in parts]
    kept = np.flatnonzero(np.max(rows, axis=0) >= 0) if len(live) else np.zeros(0, np.int64)
    rows = [row[kept] for row in rows]
    keys = live.take(kept)
    merged = FileIndex(
        partition=keys.partition,
        name=keys.name,
        size=keys.size,
        rows=_choose_rows(parts, rows),
        columns={
            column: _choose_statistics(_part_statistics(parts, column, kind), rows, kind)
            for column, kind in wanted.items()
        },
    )
    return sort_index(merged)


def _choose_rows(parts: Sequence[FileIndex], rows: Sequence[Integers]) -> Integers:
    chosen = np.full(len(rows[0]), UNKNOWN, np.int64)
    for part, row in zip(parts, rows, strict=True):
        known = np.append(part.rows, UNKNOWN)[row]
        chosen = np.where(known >= 0, known, chosen)
    return chosen


def _part_statistics(parts: Sequence[FileIndex], column: str, kind: Any) -> list[ColumnStats]:
    """Return a column's statistics in each part, in the wanted type."""
    return [
        widen_statistics(part.columns[column], kind)
        if column in part.columns
        else ColumnStats.unknown(kind, len(part))
        for part in parts
    ]


def _choose_statistics(
    stats: Sequence[ColumnStats], rows: Sequence[Integers], kind: Any
) -> ColumnStats:
    """Choose, for each file, the statistics of the last part that knows it."""
    start, place = 0, np.full(len(rows[0]), sum(map(len, stats)), np.int64)
    for part, row in zip(stats, rows, strict=True):
        is_known = np.append(part.values >= 0, False)[row]
        place = np.where(is_known, start + row, place)
        start += len(part)
    return ColumnStats.concat([*stats, ColumnStats.unknown(kind, 1)]).take(place)


def can_widen(have: Any, wanted: Any) -> bool:
    """Return whether bounds of type ``have`` are usable for a column of type ``wanted``.

    >>> can_widen(pa.int32(), pa.int64()), can_widen(pa.int32(), pa.string())
    (True, False)
    """
    types = pa.types
    if have == wanted:
        return True
    if types.is_signed_integer(have):
        is_wider = types.is_signed_integer(wanted) and have.bit_width <= wanted.bit_width
        return bool(is_wider or types.is_float32(wanted) or types.is_float64(wanted))
    if types.is_decimal(have) and types.is_decimal(wanted):
        more = wanted.scale - have.scale
        return bool(more >= 0 and wanted.precision - have.precision >= more)
    is_text = types.is_string(have) and types.is_binary(wanted)
    return bool(is_text or (types.is_float32(have) and types.is_float64(wanted)))


def widen_statistics(stats: ColumnStats, wanted: Any) -> ColumnStats:
    """Return statistics in a changed type of the column; unknown if the order changed too."""
    if stats.type == wanted:
        return stats
    if not can_widen(stats.type, wanted):
        return ColumnStats.unknown(wanted, len(stats))
    if not pa.types.is_floating(wanted):
        return replace(stats, least=stats.least.cast(wanted), greatest=stats.greatest.cast(wanted))
    kind = _FLOAT if pa.types.is_floating(stats.type) else INT64
    bounds = convert_bounds(kind, wanted, stats.least, stats.greatest)
    return replace(
        stats,
        least=bounds.least,
        greatest=bounds.greatest,
        is_exact_least=stats.is_exact_least & bounds.is_exact_least,
        is_exact_greatest=stats.is_exact_greatest & bounds.is_exact_greatest,
    )
