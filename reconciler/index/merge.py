"""New statistics and those of the last version together; pure.

What a version knows of a file stays true as long as the file is there, because base files are never
changed. So footers are read of files and columns that no version knows, and of no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_integer_array
from reconciler.index.file_keys import find_rows, sort_index
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.index.parquet_kinds import INT64, ParquetKind, convert_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOAT: Final = ParquetKind(physical="FLOAT", logical="NONE")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileKeys:
    """Files by what an index knows them by, in any order; as in FileIndex, an element a file."""

    partition: Any
    name: Any
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.size)


def find_missing(
    index: FileIndex | None, files: FileKeys, wanted: Mapping[str, Any]
) -> NDArray[np.int64]:
    """The places of the files whose footers must be read for an index of the wanted columns.

    ``wanted``: by column its type (``find_index_types``); ``index``: the last valid version. A file
    must be read that it has not, or of which it does not know a column in a type that widens to
    the wanted one. What a footer did not tell is known to be unknown, and not asked again.
    """
    if index is None:
        return np.arange(len(files))
    row = find_rows(index, files.partition, files.name, files.size)
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
    """The next version: of each file the new statistics, else those of the last valid version.

    ``live``: every base file that somebody can read, by time travel too; others are left out, and
    so are those that neither knows. A column of the last version that is not wanted is dropped; one
    of another type is widened, or unknown where it cannot be.
    """
    parts = [new] if last is None else [last, new]
    rows = [find_rows(part, live.partition, live.name, live.size) for part in parts]
    kept = np.flatnonzero(np.max(rows, axis=0) >= 0) if len(live) else np.zeros(0, np.int64)
    rows = [row[kept] for row in rows]
    at = to_integer_array(kept)
    return sort_index(
        partition=live.partition.take(at),
        name=live.name.take(at),
        size=live.size[kept],
        rows=_choose_rows(parts, rows),
        columns={
            column: _choose_statistics(_part_statistics(parts, column, kind), rows, kind)
            for column, kind in wanted.items()
        },
    )


def _choose_rows(
    parts: Sequence[FileIndex], rows: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    found = np.full(len(rows[0]), UNKNOWN, np.int64)
    for part, row in zip(parts, rows, strict=True):
        told = np.append(part.rows, UNKNOWN)[row]
        found = np.where(told >= 0, told, found)
    return found


def _part_statistics(parts: Sequence[FileIndex], column: str, kind: Any) -> list[ColumnStats]:
    """Of a column in each part, as the wanted type."""
    return [
        widen_statistics(part.columns[column], kind)
        if column in part.columns
        else ColumnStats.unknown(kind, len(part))
        for part in parts
    ]


def _choose_statistics(
    stats: Sequence[ColumnStats], rows: Sequence[NDArray[np.int64]], kind: Any
) -> ColumnStats:
    """Per file the statistics of the last part that knows it."""
    start, place = 0, np.full(len(rows[0]), sum(map(len, stats)), np.int64)
    for part, row in zip(stats, rows, strict=True):
        is_told = np.append(part.values >= 0, False)[row]
        place = np.where(is_told, start + row, place)
        start += len(part)
    return ColumnStats.concat([*stats, ColumnStats.unknown(kind, 1)]).take(place)


def can_widen(have: Any, wanted: Any) -> bool:
    """Whether bounds of one type say something of a column of the other.

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
    """The statistics of a column whose type has changed; unknown where its order has too."""
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
