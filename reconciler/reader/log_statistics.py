"""Find slices whose log files hold no matching row, by Hudi's column_stats.

A snapshot takes a row whole from the base file or from one log record, unless the table merges
records field by field (``MergeRules.refusal``). So a slice is skipped if neither its base file
nor any log file can match. Deletions only remove rows.

Only bounds of integers, dates and booleans are used. Hudi compares text of log records in Java's
order, loses NaN of floats, does not always give the unit of times, and counts nulls wrongly. Log
files of table versions before 8 hold blocks of several writes.

Source: HoodieAppendHandle (collectColumnRangeMetadata), HoodieDeltaWriteStat.putRecordsStats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.index.may_match import may_match
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.reader.model import PATH, Scan
from reconciler.reader.skipping import add_partition_columns, list_file_columns
from reconciler.storage.api import Storage

#: maximum number of statistics (one per log file and column) to load; each is a Python object
MAX_STATISTICS: Final = 200_000
_NOT_USED: Final = "column_stats of log files are not used"


def find_unmatched_logs(storage: Storage, scan: Scan, slices: Integers) -> tuple[Mask, str | None]:
    """Return a mask of the given slices: whether no log file of it can match the condition.

    The second value says why statistics were not read, None for no problem. Raises nothing.
    """
    unknown = np.zeros(len(slices), np.bool_)
    condition = scan.condition
    if condition is None or not len(slices) or scan.rules.refusal:
        return unknown, None
    columns = [
        column
        for column in list_file_columns(scan, condition)
        if _is_trusted(column, scan.table_schema)
    ]
    if not columns:
        return unknown, None
    logs = _LogFiles.from_slices(scan, slices)
    count = len(logs.slice) * len(columns)
    if count > MAX_STATISTICS:
        return (
            unknown,
            f"{_NOT_USED}: {count} are needed, at most {MAX_STATISTICS} are read",
        )
    try:
        statistics = _read_log_statistics(storage, logs, columns, scan.table_schema)
    except Exception as problem:  # noqa: BLE001 (statistics are no reason for a read to fail)
        named = "" if isinstance(problem, ReconcilerError) else f"{type(problem).__name__}: "
        return unknown, f"{_NOT_USED}: {named}{problem}"
    if statistics is None:
        return unknown, None
    index = add_partition_columns(statistics, scan, logs.partition)
    mask = may_match(condition.predicate, index, schema=scan.table_schema, zone=condition.zone)
    may = np.zeros(len(slices), np.bool_)
    may[logs.slice[mask]] = True
    return ~may, None


def _is_trusted(column: str, schema: pa.Schema) -> bool:
    """True if Hudi's bounds of a column in log files are exact."""
    if column not in schema.names:  # fields of structs
        return False
    kind, types = schema.field(column).type, pa.types
    return bool(types.is_signed_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LogFiles:
    """The log files of some slices, by partition; arrays have an element per log file.

    ``slice``: position of its slice in the given ones; ``partition``: row of its partition in the
    scan's partitions. ``folders``: the partitions' paths, each with the names of its log files.
    """

    slice: Integers
    partition: Codes
    folders: tuple[tuple[str, list[str]], ...]

    @classmethod
    def from_slices(cls, scan: Scan, slices: Integers) -> _LogFiles:
        selected = scan.slices.take(to_arrow(slices))
        number = to_numpy(selected.column("partition").combine_chunks())
        lists = selected.column("logs").to_pylist()
        order = np.argsort(number, kind="stable")
        paths = scan.partitions.column(PATH)
        by_folder: dict[int, list[str]] = {}
        for position in order.tolist():
            names = [path.rpartition("/")[2] for path in lists[position]]
            by_folder.setdefault(int(number[position]), []).extend(names)
        counts = np.array([len(lists[position]) for position in order.tolist()], np.int64)
        return cls(
            slice=np.repeat(order, counts),
            partition=np.repeat(number[order], counts).astype(np.int32),
            folders=tuple((paths[at].as_py(), names) for at, names in by_folder.items()),
        )


def _read_log_statistics(
    storage: Storage, logs: _LogFiles, columns: Sequence[str], schema: pa.Schema
) -> FileIndex | None:
    """Read live column_stats of log files, an element each; None if none are live."""
    from reconciler.hudi.metadata.column_stats import read_column_stats  # noqa: PLC0415 (few need it)
    from reconciler.hudi.metadata.table import open_live_metadata  # noqa: PLC0415

    properties = load_properties(storage)
    live = properties.metadata_partitions
    if COLUMN_STATS not in live or properties.table_version < LOGS_BY_COMPLETION:
        return None
    table = open_live_metadata(storage, properties, load_timeline(storage, properties))
    count = len(logs.slice)
    minima: list[list[Any]] = [[None] * count for _ in columns]
    maxima: list[list[Any]] = [[None] * count for _ in columns]
    for stats in read_column_stats(table, columns, logs.folders):
        for position, least, greatest in zip(stats.file, stats.least, stats.greatest, strict=True):
            minima[stats.column][position] = least
            maxima[stats.column][position] = greatest
    names = [name for _, in_folder in logs.folders for name in in_folder]
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
