"""Which slices of a scan a read leaves out, and why it reads the others; pure.

A slice is left out only where it is proven that no row of it makes the condition true. What is not
understood, not indexed or not known keeps it: Spark filters the rows anyway.

Statistics are those of whole files, which never change, so they hold for time travel, after a
rollback, and in a table that was copied: slices are found in an index by (partition, name, size).
A CHAR column is text here, as it is in the frames of this reader, which pad nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.hudi.arrow import flags, integers, numbers
from reconciler.index.footers import index_of_groups, wanted_types
from reconciler.index.keys import places
from reconciler.index.may_match import asked_columns, may_match
from reconciler.index.model import ColumnStats, FileIndex, kept_type
from reconciler.index.named import named_columns
from reconciler.index.temporal import Zone
from reconciler.predicates.parse import parse
from reconciler.reader.model import PATH, Condition, Scan

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Decision(StrEnum):
    """What became of a slice, and why."""

    PARTITION = "partition"
    INDEX = "index"
    LOG_STATISTICS = "logStatistics"
    MATCHES = "matches"
    NOT_INDEXED = "notIndexed"
    NO_STATISTICS = "noStatistics"
    LOGS = "logs"
    NO_COLUMN = "noColumn"
    NOT_UNDERSTOOD = "notUnderstood"
    NO_INDEX = "noIndex"
    SWITCHED_OFF = "switchedOff"
    NO_CONDITION = "noCondition"


#: what people are told
BECAUSE: Final = {
    Decision.PARTITION: "the partition holds no row that can match",
    Decision.INDEX: "by the index no row can match",
    Decision.LOG_STATISTICS: "neither the base file nor a log file can match, by the index and by "
    "Hudi's column_stats",
    Decision.MATCHES: "by the index a row may match",
    Decision.NOT_INDEXED: "the base file is not in the index",
    Decision.NO_STATISTICS: "the index knows nothing of this file in the condition's columns",
    Decision.LOGS: "log files may hold rows that match",
    Decision.NO_COLUMN: "the index has no column that the condition speaks of",
    Decision.NOT_UNDERSTOOD: "the condition says nothing that an index could decide",
    Decision.NO_INDEX: "the table has no index that can be read",
    Decision.SWITCHED_OFF: "skipping is switched off",
    Decision.NO_CONDITION: "no condition is given",
}
#: slices that are not read
LEFT_OUT: Final = (Decision.PARTITION, Decision.INDEX, Decision.LOG_STATISTICS)
_ORDER: Final = tuple(Decision)
_CODE: Final = {decision: code for code, decision in enumerate(_ORDER)}
#: session settings by which Spark reads a condition in another way than it does by itself
_SETTINGS: Final = (
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.ansi.",
    "spark.sql.timestampType",
    "spark.sql.collation",
    "spark.sql.session.collation",
    "spark.sql.decimalOperations.",
)
#: those among them that change nothing about a condition
_HARMLESS: Final = (
    "spark.sql.ansi.enabled",
    "spark.sql.legacy.parquet.",
    "spark.sql.legacy.avro.",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.createHiveTableByDefault",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs",
)


def code_of(decision: Decision) -> int:
    """Its number in an array of decisions."""
    return _CODE[decision]


def all_of(decision: Decision, slices: int) -> NDArray[np.int8]:
    """So many slices of one fate."""
    return np.full(slices, _CODE[decision], np.int8)


def is_read(decisions: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Per slice whether it is read."""
    left_out = [_CODE[decision] for decision in LEFT_OUT]
    found: NDArray[np.bool_] = ~np.isin(decisions, left_out)
    return found


def odd_keys(keys: list[str]) -> list[str]:
    """Those among the names of a session's settings that may make Spark read a condition otherwise.

    >>> odd_keys(["spark.sql.legacy.timeParserPolicy", "spark.sql.timestampType", "x"])
    ['spark.sql.timestampType']
    """
    return [key for key in keys if key.startswith(_SETTINGS) and not key.startswith(_HARMLESS)]


def condition_of(where: str, zone: Zone) -> Condition:
    """What is understood of a ``where``; ``zone``: of the session."""
    return Condition(predicate=parse(where), zone=zone)


def speaks_of_time(scan: Scan, condition: Condition) -> bool:
    """Whether what it means hangs on what clocks show: it names a column of days or times."""
    named = named_columns(condition.predicate, scan.table_schema)
    kinds = wanted_types(named, scan.table_schema).values()
    return any(pa.types.is_temporal(kind) for kind in kinds)


def indexed_columns(scan: Scan, condition: Condition) -> tuple[str, ...]:
    """The columns whose statistics are wanted: those of the condition that files hold."""
    restored = scan.partition_schema.names
    named = named_columns(condition.predicate, scan.table_schema)
    return tuple(name for name in named if name not in restored)


def decided(scan: Scan, condition: Condition, index: FileIndex | None) -> NDArray[np.int8]:
    """Per slice the number of its decision, as if there were no log files.

    So a slice is INDEX where its base file cannot match, or it has none; ``with_logs`` must follow.
    ``index``: of the columns of ``indexed_columns``, those that there are; None: there is none.
    """
    count = len(scan.slices)
    wanted = indexed_columns(scan, condition)
    if not wanted:
        return all_of(Decision.NOT_UNDERSTOOD, count)
    if index is None:
        return all_of(Decision.NO_INDEX, count)
    if not any(column in index.columns for column in wanted):
        return all_of(Decision.NO_COLUMN, count)
    has_base = flags(scan.slices.column("base").combine_chunks().is_valid())
    rows = np.flatnonzero(has_base)
    at = _places(scan, index, rows)
    known = rows[at >= 0]
    number = numbers(scan.slices.column("partition").combine_chunks())[known]
    stats = with_partitions(_columns_at(index, at[at >= 0]), scan, number)
    asked = asked_columns(condition.predicate, stats, schema=scan.table_schema, zone=condition.zone)
    mask = may_match(condition.predicate, stats, schema=scan.table_schema, zone=condition.zone)
    if not asked - set(scan.partition_schema.names) and mask.all():
        return all_of(Decision.NOT_UNDERSTOOD, count)
    found = all_of(Decision.NOT_INDEXED, count)
    told = _is_told([stats.columns[name] for name in asked if name in index.columns], len(known))
    found[known] = np.where(told, _CODE[Decision.MATCHES], _CODE[Decision.NO_STATISTICS])
    found[known[~mask]] = _CODE[Decision.INDEX]
    found[~has_base] = _CODE[Decision.INDEX]
    return found


def waiting(scan: Scan, decisions: NDArray[np.int8]) -> NDArray[np.int64]:
    """The slices of whose log files it hangs whether they are read, as ``decided`` gives them."""
    return np.flatnonzero(has_logs(scan) & (decisions == _CODE[Decision.INDEX]))


def with_logs(
    scan: Scan, decisions: NDArray[np.int8], cannot: NDArray[np.bool_] | None = None
) -> NDArray[np.int8]:
    """The decisions with those about slices that have log files.

    ``cannot``: per slice of ``waiting`` whether it is proven that no log file of it holds a row
    that matches; None: nothing is known of any.
    """
    found = decisions.copy()
    has, slices = has_logs(scan), waiting(scan, decisions)
    found[has & (decisions == _CODE[Decision.MATCHES])] = _CODE[Decision.LOGS]
    found[slices] = _CODE[Decision.LOGS]
    if cannot is not None:
        found[slices[cannot]] = _CODE[Decision.LOG_STATISTICS]
    return found


def has_logs(scan: Scan) -> NDArray[np.bool_]:
    """Per slice whether it has log files."""
    counts = pc.list_value_length(scan.slices.column("logs")).combine_chunks()
    found: NDArray[np.bool_] = numbers(counts) > 0
    return found


def _places(scan: Scan, index: FileIndex, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the base files of some slices are in the index, -1 for nowhere."""
    slices = scan.slices if len(rows) == len(scan.slices) else scan.slices.take(integers(rows))
    number = slices.column("partition").combine_chunks()
    paths = scan.partitions.column(PATH).combine_chunks()
    partition = pa.DictionaryArray.from_arrays(number, paths)
    names = _names(slices.column("base").combine_chunks())
    sizes = numbers(slices.column("base_size").combine_chunks())
    return places(index, partition, names, sizes)


def _names(paths: Any) -> Any:
    """The last parts of paths."""
    if not len(paths) or "/" not in paths[0].as_py():
        return pc.replace_substring_regex(paths, "^.*/", "")
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    if not pc.all(pc.equal(pc.list_value_length(parts), 2)).as_py():
        return pc.replace_substring_regex(paths, "^.*/", "")
    return pc.list_element(parts, 1)


def _columns_at(index: FileIndex, rows: NDArray[np.int64]) -> FileIndex:
    """The statistics of some files; their names stay behind, which nothing asks for any more."""
    if len(rows) == len(index) and (rows == np.arange(len(rows))).all():
        return index
    return replace(
        index,
        size=index.size[rows],
        rows=index.rows[rows],
        columns={name: stats.take(rows) for name, stats in index.columns.items()},
    )


def _is_told(columns: list[ColumnStats], files: int) -> NDArray[np.bool_]:
    """Per file whether anything is known of it in any of the columns."""
    found = np.zeros(files, np.bool_)
    for stats in columns:
        found |= flags(stats.least.is_valid()) | flags(stats.greatest.is_valid())
        found |= stats.nulls >= 0
    return found if columns else ~found


def with_partitions(index: FileIndex, scan: Scan, number: NDArray[np.int32]) -> FileIndex:
    """The index with the columns that folders say: all rows of a file hold one value of each.

    ``number``: per file its partition's row in ``scan.partitions``. What the files themselves hold
    in such a column is not what is read.
    """
    columns = dict(index.columns)
    for name in scan.partition_schema.names:
        columns.pop(name, None)
        values = scan.partitions.column(name).combine_chunks()
        if kept_type(values.type) == values.type and not pa.types.is_floating(values.type):
            columns[name] = _constant(values.take(integers(number)))
    return replace(index, columns=columns)


def _constant(values: Any) -> ColumnStats:
    """The statistics of files of one value each."""
    is_some = flags(values.is_valid())
    return ColumnStats(
        least=values,
        greatest=values,
        nulls=(~is_some).astype(np.int64),
        values=np.ones(len(values), np.int64),
        is_exact_least=is_some,
        is_exact_greatest=is_some,
        is_nan_free=np.ones(len(values), np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTest:
    """Which row groups of a base file without log files may match; the same for a scan, picklable.

    ``columns``: whose statistics are asked for. ``restored``: what folders say instead of files.
    """

    condition: Condition
    schema: pa.Schema
    columns: tuple[str, ...]
    restored: pa.Schema

    @classmethod
    def of(cls, scan: Scan) -> GroupTest | None:
        """The test of a scan; None where it would leave nothing out."""
        if scan.condition is None:
            return None
        columns = indexed_columns(scan, scan.condition)
        if not columns:
            return None
        return cls(
            condition=scan.condition,
            schema=scan.table_schema,
            columns=columns,
            restored=scan.partition_schema,
        )

    def may_match(self, path: str, footer: Any, values: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Per row group whether a row of it may match.

        ``footer``: pyarrow's FileMetaData, or the file's end from the footer's first byte on;
        ``values``: of the partition's columns, as Arrow scalars or Python values.
        """
        name = path.rpartition("/")[2]
        index = index_of_groups(
            name, footer, self.columns, self.schema, supplied=self.restored.names
        )
        columns = dict(index.columns)
        for field in self.restored:
            if kept_type(field.type) == field.type and not pa.types.is_floating(field.type):
                value = values[field.name]
                value = value.as_py() if isinstance(value, pa.Scalar) else value
                columns[field.name] = _constant(pa.array([value] * len(index), field.type))
        return may_match(
            self.condition.predicate,
            replace(index, columns=columns),
            schema=self.schema,
            zone=self.condition.zone,
        )
