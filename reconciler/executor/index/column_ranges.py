"""Turn file statistics into entries of Hudi's column_stats that never hide rows.

Readers skip a file without an entry of a column if it has one of another column of the filter, or
if others of its partition have one. An entry without bounds means that all values are null. So
every file gets an entry of every column, and a bound that is not proven is the widest there is.
Source: ColumnStatsIndexSupport.transpose, PartitionStatsIndexSupport.prunePartitions (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.hudi.metadata.index_build import DataFileRanges
from reconciler.hudi.metadata.record_encoder import Bound, ColumnRange

if TYPE_CHECKING:
    from reconciler.hudi.metadata.bound_encoding import BoundEncoding
    from reconciler.index.model import ColumnStats, FileIndex

#: files whose statistics are Python's at once
_FILES_AT_ONCE: Final = 4096
_UNKNOWN_VALUES: Final = 2


def make_file_ranges(
    index: FileIndex, keepings: Mapping[str, BoundEncoding]
) -> Iterator[DataFileRanges]:
    """Yield every file of an index with its range in each column, in the order of ``keepings``.

    A column that the index does not have is unknown in every file.
    """
    partitions = index.partition.dictionary.to_pylist()
    for start in range(0, len(index), _FILES_AT_ONCE):
        end = min(start + _FILES_AT_ONCE, len(index))
        rows = index.rows[start:end].tolist()
        columns = [
            _make_column_ranges(index.columns.get(name), name, keeping, rows, start)
            for name, keeping in keepings.items()
        ]
        names = index.name.slice(start, end - start).to_pylist()
        codes = index.partition.indices.slice(start, end - start).to_pylist()
        for code, name, *ranges in zip(codes, names, *columns, strict=True):
            yield DataFileRanges(partition=partitions[code], name=name, ranges=ranges)


def make_unknown_ranges(
    partition: str, name: str, keepings: Mapping[str, BoundEncoding]
) -> DataFileRanges:
    """Return unknown ranges for a file without statistics, such as a log file."""
    ranges = [_make_unknown_range(column, keeping, 0) for column, keeping in keepings.items()]
    return DataFileRanges(partition=partition, name=name, ranges=ranges)


def _make_column_ranges(
    stats: ColumnStats | None, column: str, keeping: BoundEncoding, rows: Sequence[int], start: int
) -> list[ColumnRange]:
    if stats is None:
        return [_make_unknown_range(column, keeping, count) for count in rows]
    end = start + len(rows)
    statistics = zip(
        _to_plain_values(stats.least.slice(start, len(rows))),
        _to_plain_values(stats.greatest.slice(start, len(rows))),
        stats.nulls[start:end].tolist(),
        stats.values[start:end].tolist(),
        stats.is_nan_free[start:end].tolist(),
        rows,
        strict=True,
    )
    ranges = []
    for least, greatest, nulls, values, is_nan_free, count in statistics:
        if values >= 0 and nulls == values:
            ranges.append(_make_range(column, (None, None), values, nulls))
        elif count < 0 or values < 0:
            ranges.append(_make_unknown_range(column, keeping, count))
        else:
            low = keeping.least if least is None else least
            high = keeping.greatest if greatest is None or not is_nan_free else greatest
            is_known = nulls >= 0
            ranges.append(
                _make_range(
                    column,
                    (low, high),
                    values if is_known else max(values, _UNKNOWN_VALUES),
                    nulls if is_known else 1,
                )
            )
    return ranges


def _make_unknown_range(column: str, keeping: BoundEncoding, rows: int) -> ColumnRange:
    """Return a range that allows nulls and any value."""
    return _make_range(column, (keeping.least, keeping.greatest), max(rows, _UNKNOWN_VALUES), 1)


def _make_range(
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


def _to_plain_values(bounds: Any) -> list[Any]:
    """Return bounds as the index keeps them: days and microseconds as numbers."""
    if pa.types.is_timestamp(bounds.type):
        bounds = bounds.view(pa.int64())
    elif pa.types.is_date32(bounds.type):
        bounds = bounds.view(pa.int32())
    values: list[Any] = bounds.to_pylist()
    return values
