"""Find slices whose log files hold no matching row, by Hudi's column_stats.

A snapshot takes a row whole from the base file or from one log record, unless the table merges
records field by field (``MergeRules.refusal``). So a slice is skipped if neither its base file
nor any log file can match. Deletions only remove rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.index.may_match import may_match
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import PATH, Scan
from reconciler.reader.skipping import add_partition_columns, list_file_columns
from reconciler.state.log_statistics import (
    MAX_STATISTICS,
    has_log_statistics,
    is_trusted,
    read_log_statistics,
)
from reconciler.storage.api import Storage

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
        if is_trusted(column, scan.table_schema)
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
        properties = load_properties(storage)
        if not has_log_statistics(properties):
            return unknown, None
        timeline = load_timeline(storage, properties)
        statistics = read_log_statistics(
            storage, properties, timeline, logs.folders, columns, scan.table_schema
        )
    except Exception as problem:  # noqa: BLE001 (statistics are no reason for a read to fail)
        named = "" if isinstance(problem, ReconcilerError) else f"{type(problem).__name__}: "
        return unknown, f"{_NOT_USED}: {named}{problem}"
    index = add_partition_columns(statistics, scan, logs.partition)
    mask = may_match(condition.predicate, index, schema=scan.table_schema, zone=condition.zone)
    may = np.zeros(len(slices), np.bool_)
    may[logs.slice[mask]] = True
    return ~may, None


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
