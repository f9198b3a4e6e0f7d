"""Read Hudi's column_stats of log files, as far as their bounds are exact.

Only bounds of integers, dates and booleans are used. Hudi compares text of log records in Java's
order, loses NaN of floats, does not always give the unit of times, and counts nulls wrongly. Log
files of table versions before 8 hold blocks of several writes.

Source: HoodieAppendHandle (collectColumnRangeMetadata), HoodieDeltaWriteStat.putRecordsStats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.storage.api import Storage

#: maximum number of statistics (one per log file and column) to load; each is a Python object
MAX_STATISTICS: Final = 200_000


def has_log_statistics(properties: TableProperties) -> bool:
    """Return whether the metadata table has live column_stats that tell about log files."""
    is_live = COLUMN_STATS in properties.metadata_partitions
    return is_live and properties.table_version >= LOGS_BY_COMPLETION


def is_trusted(column: str, schema: pa.Schema) -> bool:
    """Return whether Hudi's bounds of a column in log files are exact."""
    if column not in schema.names:  # fields of structs
        return False
    kind, types = schema.field(column).type, pa.types
    return bool(types.is_signed_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))


def read_log_statistics(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    folders: Sequence[tuple[str, list[str]]],
    columns: Sequence[str],
    schema: pa.Schema,
) -> FileIndex:
    """Read live column_stats of log files, an element each, unknown for files without an entry.

    ``folders``: partition paths, each with the names of its log files. ``columns``: trusted ones.
    Raises FormatError, UnsupportedError, StorageError.
    """
    from reconciler.hudi.metadata.column_stats import read_column_stats  # noqa: PLC0415 (few need it)
    from reconciler.hudi.metadata.table import open_live_metadata  # noqa: PLC0415

    table = open_live_metadata(storage, properties, timeline)
    names = [name for _, in_folder in folders for name in in_folder]
    count = len(names)
    minima: list[list[Any]] = [[None] * count for _ in columns]
    maxima: list[list[Any]] = [[None] * count for _ in columns]
    for stats in read_column_stats(table, columns, folders):
        for position, least, greatest in zip(stats.file, stats.least, stats.greatest, strict=True):
            minima[stats.column][position] = least
            maxima[stats.column][position] = greatest
    return FileIndex(
        partition=to_arrow([""] * count).dictionary_encode(),
        name=to_arrow(names),
        size=np.zeros(count, np.int64),
        rows=np.full(count, UNKNOWN, np.int64),
        columns={
            column: _make_column_stats(least, greatest, schema.field(column).type)
            for column, least, greatest in zip(columns, minima, maxima, strict=True)
        },
    )


def _make_column_stats(minima: list[Any], maxima: list[Any], kind: pa.DataType) -> ColumnStats:
    """Return the bounds that are valid for the column's type; null counts are unknown."""
    bounds = [
        pair if _is_valid_range(*pair, kind) else (None, None)
        for pair in zip(minima, maxima, strict=True)
    ]
    unknown = np.full(len(minima), UNKNOWN, np.int64)
    none = np.zeros(len(minima), np.bool_)
    return ColumnStats(
        least=_make_bounds([least for least, _ in bounds], kind),
        greatest=_make_bounds([greatest for _, greatest in bounds], kind),
        nulls=unknown,
        values=unknown,
        is_exact_least=none,
        is_exact_greatest=none,
        is_nan_free=~none,
    )


def _is_valid_range(least: Any, greatest: Any, kind: pa.DataType) -> bool:
    """True if both bounds are values of the type, in order."""
    if not isinstance(least, int) or not isinstance(greatest, int):
        return False
    if pa.types.is_boolean(kind):
        return 0 <= least <= greatest <= 1
    half: int = 1 << (kind.bit_width - 1)
    return -half <= least <= greatest < half


def _make_bounds(values: list[int | None], kind: pa.DataType) -> pa.Array:
    numbers = pa.array(values, pa.int64())
    return (numbers.cast(pa.int32()) if pa.types.is_date32(kind) else numbers).cast(kind)
