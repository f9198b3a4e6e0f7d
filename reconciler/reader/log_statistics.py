"""Which slices with log files hold no row that matches, by what Hudi's column_stats say of them.

A row that a snapshot shows comes whole from the base file or from one log record, as long as the
table's records are not merged field by field (``MergeRules.refusal``), so a slice is left out where
its base file cannot match and no log file can. Deletions only take rows away.

Believed are bounds of whole numbers, days and truth values alone: of text Hudi compares log records
in Java's order, of floats it loses NaN, of times the unit is not always known, and it counts
nulls that are not there. Log files of table versions before 8 hold blocks of several writes.
Source: HoodieAppendHandle (collectColumnRangeMetadata), HoodieDeltaWriteStat.putRecordsStats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_integer_array, to_numpy_numbers, to_string_array
from reconciler.errors import ReconcilerError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS
from reconciler.index.may_match import may_match
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.reader.model import PATH, Scan
from reconciler.reader.skipping import add_partition_columns, list_file_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reconciler.storage.api import Storage

#: statistics, of a log file in a column each, that a read asks for; they are objects, one by one
MAX_STATISTICS: Final = 200_000
_NOT_USED: Final = "column_stats of log files are left aside"


def find_unmatched_logs(
    storage: Storage, scan: Scan, slices: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], str | None]:
    """Per slice, given by its row, whether no log file of it can match the scan's condition.

    And what kept the statistics from being read, None for nothing. Raises nothing else.
    """
    unknown = np.zeros(len(slices), np.bool_)
    condition = scan.condition
    if condition is None or not len(slices) or scan.rules.refusal:
        return unknown, None
    columns = [c for c in list_file_columns(scan, condition) if _is_trusted(c, scan.table_schema)]
    if not columns:
        return unknown, None
    logs = _LogFiles.from_slices(scan, slices)
    count = len(logs.slice) * len(columns)
    if count > MAX_STATISTICS:
        return (
            unknown,
            f"{_NOT_USED}: {count} of them would be asked for, more than {MAX_STATISTICS}",
        )
    try:
        found = _read_log_statistics(storage, logs, columns, scan.table_schema)
    except Exception as problem:  # noqa: BLE001 (statistics are no reason for a read to fail)
        named = "" if isinstance(problem, ReconcilerError) else f"{type(problem).__name__}: "
        return unknown, f"{_NOT_USED}: {named}{problem}"
    if found is None:
        return unknown, None
    index = add_partition_columns(found, scan, logs.partition)
    mask = may_match(condition.predicate, index, schema=scan.table_schema, zone=condition.zone)
    may = np.zeros(len(slices), np.bool_)
    may[logs.slice[mask]] = True
    return ~may, None


def _is_trusted(column: str, schema: pa.Schema) -> bool:
    """Whether Hudi's bounds of a column in log files are what its values are."""
    if column not in schema.names:  # fields of structs
        return False
    kind, types = schema.field(column).type, pa.types
    return bool(types.is_signed_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LogFiles:
    """The log files of some slices, by partition; arrays have an element a log file.

    ``slice``: the place of its slice among the asked ones; ``partition``: the row of its partition
    in the scan's. ``folders``: the partitions' paths, each with the names of its log files.
    """

    slice: NDArray[np.int64]
    partition: NDArray[np.int32]
    folders: tuple[tuple[str, list[str]], ...]

    @classmethod
    def from_slices(cls, scan: Scan, slices: NDArray[np.int64]) -> _LogFiles:
        taken = scan.slices.take(to_integer_array(slices))
        number = to_numpy_numbers(taken.column("partition").combine_chunks())
        lists = taken.column("logs").to_pylist()
        order = np.argsort(number, kind="stable")
        paths = scan.partitions.column(PATH)
        by_folder: dict[int, list[str]] = {}
        for place in order.tolist():
            names = [path.rpartition("/")[2] for path in lists[place]]
            by_folder.setdefault(int(number[place]), []).extend(names)
        counts = np.array([len(lists[place]) for place in order.tolist()], np.int64)
        return cls(
            slice=np.repeat(order, counts),
            partition=np.repeat(number[order], counts).astype(np.int32),
            folders=tuple((paths[at].as_py(), names) for at, names in by_folder.items()),
        )


def _read_log_statistics(
    storage: Storage, logs: _LogFiles, columns: Sequence[str], schema: pa.Schema
) -> FileIndex | None:
    """What the live column_stats say of log files, an element each; None where none are live."""
    from reconciler.hudi.metadata.column_stats import read_column_stats  # noqa: PLC0415 (few need it)
    from reconciler.hudi.metadata.table import open_metadata_table  # noqa: PLC0415

    properties = load_properties(storage)
    live = properties.metadata_partitions
    if COLUMN_STATS not in live or properties.table_version < LOGS_BY_COMPLETION:
        return None
    table = open_metadata_table(
        storage,
        version=properties.table_version,
        data=load_timeline(storage, properties),
        live_partitions=live,
    )
    count = len(logs.slice)
    low: list[list[Any]] = [[None] * count for _ in columns]
    high: list[list[Any]] = [[None] * count for _ in columns]
    for stats in read_column_stats(table, columns, logs.folders):
        for place, least, greatest in zip(stats.file, stats.least, stats.greatest, strict=True):
            low[stats.column][place] = least
            high[stats.column][place] = greatest
    names = [name for _, found in logs.folders for name in found]
    return FileIndex(
        partition=to_string_array([""] * count).dictionary_encode(),
        name=to_string_array(names),
        size=np.zeros(count, np.int64),
        rows=np.full(count, UNKNOWN, np.int64),
        columns={
            column: _make_column_stats(least, greatest, schema.field(column).type)
            for column, least, greatest in zip(columns, low, high, strict=True)
        },
    )


def _make_column_stats(low: list[Any], high: list[Any], kind: pa.DataType) -> ColumnStats:
    """Bounds that are both there and of the column's type; nothing is known of nulls."""
    is_told = [
        isinstance(least, int)
        and isinstance(greatest, int)
        and _is_valid_range(least, greatest, kind)
        for least, greatest in zip(low, high, strict=True)
    ]
    unknown = np.full(len(low), UNKNOWN, np.int64)
    none = np.zeros(len(low), np.bool_)
    return ColumnStats(
        least=_make_bounds(low, is_told, kind),
        greatest=_make_bounds(high, is_told, kind),
        nulls=unknown,
        values=unknown,
        is_exact_least=none,
        is_exact_greatest=none,
        is_nan_free=~none,
    )


def _is_valid_range(least: int, greatest: int, kind: pa.DataType) -> bool:
    """Whether both are values of a type, in their order: what is not says nothing."""
    if pa.types.is_boolean(kind):
        return 0 <= least <= greatest <= 1
    half: int = 1 << (kind.bit_width - 1)
    return -half <= least <= greatest < half


def _make_bounds(values: list[Any], is_told: list[bool], kind: pa.DataType) -> pa.Array:
    told = [value if is_so else None for value, is_so in zip(values, is_told, strict=True)]
    if pa.types.is_boolean(kind):
        return pa.array([None if value is None else bool(value) for value in told], kind)
    if pa.types.is_date32(kind):
        return pa.array(told, pa.int32()).cast(kind)
    return pa.array(told, kind)
