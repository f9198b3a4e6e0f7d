"""Statistics of files as entries of Hudi's column_stats that lose no rows, whatever is not proven.

A file without an entry of a column loses its rows where it has one of another column of the filter,
or where others of its partition have one; an entry without bounds says that all is null. So every
file gets an entry of every column, and where a bound is not proven one that no value is beyond.
Source: ColumnStatsIndexSupport.transpose, PartitionStatsIndexSupport.prunePartitions (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.hudi.metadata_build import FileRanges
from reconciler.hudi.metadata_records import Bound, ColumnRange

if TYPE_CHECKING:
    from reconciler.hudi.metadata_keeping import Keeping
    from reconciler.index.model import ColumnStats, FileIndex

#: files whose statistics are Python's at once
_TOGETHER: Final = 4096
_SOME: Final = 2


def ranges_of(index: FileIndex, keepings: Mapping[str, Keeping]) -> Iterator[FileRanges]:
    """Every file of an index with its range in each of the columns, in the order of ``keepings``.

    A column that the index has not is unknown everywhere.
    """
    partitions = index.partition.dictionary.to_pylist()
    for start in range(0, len(index), _TOGETHER):
        end = min(start + _TOGETHER, len(index))
        rows = index.rows[start:end].tolist()
        columns = [
            _column(index.columns.get(name), name, keeping, rows, start)
            for name, keeping in keepings.items()
        ]
        names = index.name.slice(start, end - start).to_pylist()
        codes = index.partition.indices.slice(start, end - start).to_pylist()
        for code, name, *ranges in zip(codes, names, *columns, strict=True):
            yield FileRanges(partition=partitions[code], name=name, ranges=ranges)


def unknown_ranges(partition: str, name: str, keepings: Mapping[str, Keeping]) -> FileRanges:
    """Of a file of which nothing is known, as of a log file."""
    ranges = [_unknown(column, keeping, 0) for column, keeping in keepings.items()]
    return FileRanges(partition=partition, name=name, ranges=ranges)


def _column(
    stats: ColumnStats | None, column: str, keeping: Keeping, rows: Sequence[int], start: int
) -> list[ColumnRange]:
    if stats is None:
        return [_unknown(column, keeping, count) for count in rows]
    end = start + len(rows)
    told = zip(
        _plain(stats.least.slice(start, len(rows))),
        _plain(stats.greatest.slice(start, len(rows))),
        stats.nulls[start:end].tolist(),
        stats.values[start:end].tolist(),
        stats.is_nan_free[start:end].tolist(),
        rows,
        strict=True,
    )
    found = []
    for least, greatest, nulls, values, is_nan_free, count in told:
        if values >= 0 and nulls == values:
            found.append(_range(column, (None, None), values, nulls))
        elif count < 0 or values < 0:
            found.append(_unknown(column, keeping, count))
        else:
            low = keeping.least if least is None else least
            high = keeping.greatest if greatest is None or not is_nan_free else greatest
            is_known = nulls >= 0
            found.append(
                _range(
                    column,
                    (low, high),
                    values if is_known else max(values, _SOME),
                    nulls if is_known else 1,
                )
            )
    return found


def _unknown(column: str, keeping: Keeping, rows: int) -> ColumnRange:
    """It may have nulls, and it may have values."""
    return _range(column, (keeping.least, keeping.greatest), max(rows, _SOME), 1)


def _range(
    column: str, bounds: tuple[Bound | None, Bound | None], values: int, nulls: int
) -> ColumnRange:
    return ColumnRange(
        column=column,
        least=bounds[0],
        greatest=bounds[1],
        values=values,
        nulls=nulls,
        size=0,
        plain_size=0,
    )


def _plain(bounds: Any) -> list[Any]:
    """As the index keeps them: days and microseconds as numbers."""
    if pa.types.is_timestamp(bounds.type):
        bounds = bounds.view(pa.int64())
    elif pa.types.is_date32(bounds.type):
        bounds = bounds.view(pa.int32())
    found: list[Any] = bounds.to_pylist()
    return found
