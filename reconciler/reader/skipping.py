"""Decide which slices of a scan a read skips, and why it reads the others; pure.

A slice is skipped only if it is proven that none of its rows makes the condition true. A part
that is not understood, not indexed or unknown keeps the slice: Spark filters the rows anyway.

Statistics describe whole files, which never change. So they hold for time travel, after a rollback
and in a copied table; slices are found in an index by (partition, name, size). CHAR columns are
text here, as in the frames of this reader, which pad nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.index.file_keys import find_rows
from reconciler.index.footers import find_index_types, index_row_groups
from reconciler.index.may_match import find_used_columns, may_match
from reconciler.index.model import ColumnStats, FileIndex, FileKeys, indexed_type
from reconciler.index.predicate_columns import find_predicate_columns
from reconciler.index.predicates.parse import parse
from reconciler.index.temporal import SessionZone
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import PATH, CodedReason, ReadCondition, Scan


class SkipDecision(CodedReason):
    """The decision about a slice, and its reason."""

    PARTITION = "partition", "the partition holds no row that can match"
    INDEX = "index", "by the index no row can match"
    LOG_STATISTICS = (
        "logStatistics",
        "no row of base and log files can match, by the index and Hudi's column_stats",
    )
    MATCHES = "matches", "by the index a row may match"
    NOT_INDEXED = "notIndexed", "the base file is not in the index"
    NO_STATISTICS = (
        "noStatistics",
        "the index knows nothing of this file in the condition's columns",
    )
    LOGS = "logs", "log files may hold rows that match"
    NO_COLUMN = "noColumn", "the index has no column that the condition speaks of"
    NOT_UNDERSTOOD = "notUnderstood", "the condition says nothing that an index could decide"
    NO_INDEX = "noIndex", "the table has no index that can be read"
    SWITCHED_OFF = "switchedOff", "skipping is switched off"
    NO_CONDITION = "noCondition", "no condition is given"

    @property
    def is_read(self) -> bool:
        """True if slices with this decision are read."""
        return self > SkipDecision.LOG_STATISTICS


#: prefixes of session settings that can change what a condition means
_SETTINGS: Final = (
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.ansi.",
    "spark.sql.timestampType",
    "spark.sql.collation",
    "spark.sql.session.collation",
    "spark.sql.decimalOperations.",
)
#: settings with such a prefix that do not change it
_HARMLESS_SETTINGS: Final = (
    "spark.sql.ansi.enabled",
    "spark.sql.legacy.parquet.",
    "spark.sql.legacy.avro.",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.createHiveTableByDefault",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs",
)


def repeat_decision(decision: SkipDecision, slices: int) -> NDArray[np.int8]:
    """Return an array with the same decision for a number of slices."""
    return np.full(slices, decision, np.int8)


def mark_read_slices(decisions: NDArray[np.int8]) -> Mask:
    """Return a mask of the slices that are read."""
    return decisions > SkipDecision.LOG_STATISTICS


def find_unusual_keys(keys: list[str]) -> list[str]:
    """Return the names of settings that may change what a condition means.

    >>> find_unusual_keys(["spark.sql.legacy.timeParserPolicy", "spark.sql.timestampType", "x"])
    ['spark.sql.timestampType']
    """
    return [
        key for key in keys if key.startswith(_SETTINGS) and not key.startswith(_HARMLESS_SETTINGS)
    ]


def parse_condition(where: str, zone: SessionZone) -> ReadCondition:
    """Parse a ``where``; ``zone``: the session's time zone."""
    return ReadCondition(predicate=parse(where), zone=zone)


def uses_time_columns(scan: Scan, condition: ReadCondition) -> bool:
    """True if the condition names a date or time column, so that the zone matters."""
    named = find_predicate_columns(condition.predicate, scan.table_schema)
    kinds = find_index_types(named, scan.table_schema).values()
    return any(pa.types.is_temporal(kind) for kind in kinds)


def list_file_columns(scan: Scan, condition: ReadCondition) -> tuple[str, ...]:
    """Return the columns of the condition that files hold; their statistics are needed."""
    restored = scan.partition_schema.names
    named = find_predicate_columns(condition.predicate, scan.table_schema)
    return tuple(name for name in named if name not in restored)


def decide_by_index(
    scan: Scan, condition: ReadCondition, index: FileIndex | None
) -> NDArray[np.int8]:
    """Return per slice the code of its decision, as if there were no log files.

    A slice is INDEX if its base file cannot match or if it has none, so call
    ``decide_by_logs`` next. ``index``: has those of ``list_file_columns`` that are indexed; None:
    there is no index.
    """
    count = len(scan.slices)
    columns = list_file_columns(scan, condition)
    if not columns:
        return repeat_decision(SkipDecision.NOT_UNDERSTOOD, count)
    if index is None:
        return repeat_decision(SkipDecision.NO_INDEX, count)
    if not any(column in index.columns for column in columns):
        return repeat_decision(SkipDecision.NO_COLUMN, count)
    has_base = to_numpy(scan.slices.column("base").combine_chunks().is_valid())
    rows = np.flatnonzero(has_base)
    index_rows = _find_in_index(scan, index, rows)
    known_rows = rows[index_rows >= 0]
    stats = _select_files(index, index_rows[index_rows >= 0])
    stats = add_partition_columns(stats, scan, scan.get_numbers("partition")[known_rows])
    predicate, schema, zone = condition.predicate, scan.table_schema, condition.zone
    used_columns = find_used_columns(predicate, stats, schema=schema, zone=zone)
    mask = may_match(predicate, stats, schema=schema, zone=zone)
    if not used_columns - set(scan.partition_schema.names) and mask.all():
        return repeat_decision(SkipDecision.NOT_UNDERSTOOD, count)
    decisions = repeat_decision(SkipDecision.NOT_INDEXED, count)
    has_statistics = _has_statistics(
        [stats.columns[name] for name in used_columns if name in index.columns], len(known_rows)
    )
    decisions[known_rows] = np.where(
        has_statistics, SkipDecision.MATCHES, SkipDecision.NO_STATISTICS
    )
    decisions[known_rows[~mask]] = SkipDecision.INDEX
    decisions[~has_base] = SkipDecision.INDEX
    return decisions


def find_slices_with_undecided_logs(scan: Scan, decisions: NDArray[np.int8]) -> Integers:
    """Return the slices that are read only if one of their log files can match."""
    return np.flatnonzero(scan.has_logs & (decisions == SkipDecision.INDEX))


def decide_by_logs(
    scan: Scan, decisions: NDArray[np.int8], is_unmatched: Mask | None = None
) -> NDArray[np.int8]:
    """Return the decisions with those about slices that have log files.

    ``is_unmatched``: per slice of ``find_slices_with_undecided_logs`` whether no log file of it can
    match; None: unknown for all.
    """
    decided = decisions.copy()
    slices = find_slices_with_undecided_logs(scan, decisions)
    decided[scan.has_logs & (decisions == SkipDecision.MATCHES)] = SkipDecision.LOGS
    decided[slices] = SkipDecision.LOGS
    if is_unmatched is not None:
        decided[slices[is_unmatched]] = SkipDecision.LOG_STATISTICS
    return decided


def _find_in_index(scan: Scan, index: FileIndex, rows: Integers) -> Integers:
    """Return the rows of base files in the index, -1 for none."""
    slices = scan.slices if len(rows) == len(scan.slices) else scan.slices.take(to_arrow(rows))
    partition_rows = slices.column("partition").combine_chunks()
    paths = scan.partitions.column(PATH).combine_chunks()
    partition = pa.DictionaryArray.from_arrays(partition_rows, paths)
    names = _last_path_parts(slices.column("base").combine_chunks())
    sizes = to_numpy(slices.column("base_size").combine_chunks())
    return find_rows(index, FileKeys(partition=partition, name=names, size=sizes))


def _last_path_parts(paths: Any) -> Any:
    """Return the file names of paths."""
    if not len(paths) or "/" not in paths[0].as_py():
        return pc.replace_substring_regex(paths, "^.*/", "")
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    if not pc.all(pc.equal(pc.list_value_length(parts), 2)).as_py():
        return pc.replace_substring_regex(paths, "^.*/", "")
    return pc.list_element(parts, 1)


def _select_files(index: FileIndex, rows: Integers) -> FileIndex:
    """Return the statistics of some files, without their names, which are not needed any more."""
    if len(rows) == len(index) and (rows == np.arange(len(rows))).all():
        return index
    return replace(
        index,
        size=index.size[rows],
        rows=index.rows[rows],
        columns={name: stats.take(rows) for name, stats in index.columns.items()},
    )


def _has_statistics(columns: list[ColumnStats], files: int) -> Mask:
    """Return a mask of the files that have statistics in any of the columns."""
    has_any = np.zeros(files, np.bool_)
    for stats in columns:
        has_any |= to_numpy(stats.least.is_valid()) | to_numpy(stats.greatest.is_valid())
        has_any |= stats.nulls >= 0
    return has_any if columns else ~has_any


def add_partition_columns(index: FileIndex, scan: Scan, partition_rows: Codes) -> FileIndex:
    """Add the columns that folder names hold; they are constant in a file.

    ``partition_rows``: per file the row of its partition in ``Scan.partitions``. Values that files
    themselves hold in such a column are ignored, as readers do.
    """
    rows = to_arrow(partition_rows)
    partitions = scan.partitions.select(scan.partition_schema.names)
    return _add_constants(
        index,
        {
            name: column.combine_chunks().take(rows)
            for name, column in zip(partitions.column_names, partitions.columns, strict=True)
        },
    )


def mark_matching_partitions(scan: Scan, condition: ReadCondition) -> Mask:
    """Return a mask of the partitions that may hold a matching row, by their own columns alone."""
    count = len(scan.partitions)
    nothing = FileIndex(
        partition=scan.partitions.column(PATH).combine_chunks().dictionary_encode(),
        name=pa.nulls(count, pa.string()),
        size=np.zeros(count, np.int64),
        rows=np.full(count, -1),
        columns={},
    )
    stats = add_partition_columns(nothing, scan, np.arange(count, dtype=np.int32))
    return may_match(condition.predicate, stats, schema=scan.table_schema, zone=condition.zone)


def _add_constants(index: FileIndex, values: Mapping[str, Any]) -> FileIndex:
    """Add columns with one value per file, in place of what the files hold in them."""
    columns = {name: stats for name, stats in index.columns.items() if name not in values}
    for name, column in values.items():
        if indexed_type(column.type) == column.type and not pa.types.is_floating(column.type):
            columns[name] = _make_constant_stats(column)
    return replace(index, columns=columns)


def _make_constant_stats(values: Any) -> ColumnStats:
    """Return the statistics of files with one value each."""
    is_valid = to_numpy(values.is_valid())
    return ColumnStats(
        least=values,
        greatest=values,
        nulls=(~is_valid).astype(np.int64),
        values=np.ones(len(values), np.int64),
        is_exact_least=is_valid,
        is_exact_greatest=is_valid,
        is_nan_free=np.ones(len(values), np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowGroupTest:
    """Tests which row groups of a base file without log files may match; picklable.

    ``columns``: whose statistics are needed. ``restored``: columns that folder names hold.
    """

    condition: ReadCondition
    schema: pa.Schema
    columns: tuple[str, ...]
    restored: pa.Schema

    @classmethod
    def from_scan(cls, scan: Scan) -> RowGroupTest | None:
        """Return the test of a scan; None if it would skip nothing."""
        if scan.condition is None:
            return None
        columns = list_file_columns(scan, scan.condition)
        if not columns:
            return None
        return cls(
            condition=scan.condition,
            schema=scan.table_schema,
            columns=columns,
            restored=scan.partition_schema,
        )

    def may_match(self, path: str, footer: Any, values: Mapping[str, Any]) -> Mask:
        """Return a mask of the row groups in which a row may match.

        ``footer``: pyarrow's FileMetaData, or the file's bytes from the footer on; ``values``: of
        the partition's columns, as Arrow scalars or Python values.
        """
        name = path.rpartition("/")[2]
        index = index_row_groups(
            name, footer, self.columns, self.schema, supplied=self.restored.names
        )
        constants = {
            field.name: repeat_value(values[field.name], field.type, len(index))
            for field in self.restored
        }
        return may_match(
            self.condition.predicate,
            _add_constants(index, constants),
            schema=self.schema,
            zone=self.condition.zone,
        )


def repeat_value(value: Any, kind: pa.DataType, count: int) -> Any:
    """Return an array of the same value; ``value``: an Arrow scalar or a Python value."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    return pa.repeat(scalar, count)
