"""Read the plans of table services (clustering, compaction, rollback), and write a clustering's.

A clustering is requested by a HoodieRequestedReplaceMetadata, which any Hudi writer may execute.
Source: ClusteringUtils, ClusteringPlanStrategy (buildMetrics, getStrategyParams), 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final, Self

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import require
from reconciler.hudi.codecs.avro_container import (
    decoding_container,
    parse_file_name,
    parse_partition_path,
    read_file_names,
    read_text_map,
)
from reconciler.lazy_dataclass import dataclass

_RECORD: Final = "HoodieRequestedReplaceMetadata"
_SCHEMA: Final = f"{_RECORD}.avsc"
#: plans before version 8 do not name unscheduled partitions
_SCHEMA_6: Final = f"{_RECORD}.v6.avsc"
_V8: Final = 8
_STRATEGIES: Final = "org.apache.hudi.client.clustering.run.strategy."
#: what executes most clusterings: rows of a group are sorted and written to new files
SORT_AND_SIZE: Final = f"{_STRATEGIES}SparkSortAndSizeExecutionStrategy"
JAVA_SORT_AND_SIZE: Final = f"{_STRATEGIES}JavaSortAndSizeExecutionStrategy"
SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
_MIB: Final = 1024 * 1024


def split_sort_columns(strategy: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sort columns in the parameters of a plan's strategy.

    >>> split_sort_columns({SORT_COLUMNS: "x, y,"})
    ('x', 'y')
    """
    named = (name.strip() for name in strategy.get(SORT_COLUMNS, "").split(","))
    return tuple(name for name in named if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSlice:
    """One slice to rewrite, as file names. ``base_file`` is None for a log-only slice."""

    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOperation(InputSlice):
    """One slice to compact; its log files are in merge order.

    ``base_instant``: the time that its log files are named after. ``is_bootstrap``: the rows of its
    base file are in a file outside of the table.
    """

    base_instant: str
    is_bootstrap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedReplace:
    """The content of a requested replacecommit or clustering.

    ``is_clustering`` is False for an insert_overwrite or delete_partition, whose request names no
    slices. ``strategy``: the plan's strategy parameters by Hudi's option names. Hudi writes only
    the sort columns there; curve and target size are options of the executor. ``extra``: the
    request's extra metadata.
    """

    operation: str | None
    is_clustering: bool
    slices: tuple[InputSlice, ...]
    strategy: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns that a clustering of Hudi sorts by."""
        return split_sort_columns(self.strategy)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested file; raises FormatError naming ``path``."""
        with decoding_container(data, _RECORD, path) as record:
            plan = record["clusteringPlan"]
            operation = record["operationType"]
            groups = (plan["inputGroups"] or ()) if plan else ()
            return cls(
                operation=operation,
                is_clustering=operation == "CLUSTER" and plan is not None,
                slices=tuple(
                    _parse_slice(input_slice, path)
                    for group in groups
                    for input_slice in group["slices"] or ()
                ),
                strategy=_read_strategy(plan),
                extra=read_text_map(record.get("extraMetadata")),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlanGroup:
    """Slices rewritten together into about ``output_count`` files.

    Log files are listed newest first.
    """

    slices: tuple[InputSlice, ...]
    output_count: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan:
    """The content of a clustering's requested file.

    ``strategy``: options for the executor; Hudi writes only the sort columns. ``extra``: extra
    metadata of the whole request. ``unscheduled_partitions``: partitions that Hudi's incremental
    planner visits next time; None if the plan does not say, as always before version 8.
    ``executor_class``: what its planner wants it to be executed by. ``plan_extra``: extra metadata
    of the plan. ``keeps_commit_times``: whether rows keep the commit that wrote them.
    """

    groups: tuple[ClusteringPlanGroup, ...]
    strategy: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    unscheduled_partitions: tuple[str, ...] | None = None
    executor_class: str = SORT_AND_SIZE
    plan_extra: Mapping[str, str] = field(default_factory=dict)
    keeps_commit_times: bool = True

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns that rows are sorted by."""
        return split_sort_columns(self.strategy)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested file; raises FormatError naming ``path``, also without a plan."""
        with decoding_container(data, _RECORD, path) as record:
            plan = record["clusteringPlan"]
            require(plan is not None, "it has no clustering plan")
            strategy, missing = plan["strategy"], plan.get("missingSchedulePartitions")
            return cls(
                groups=tuple(_parse_group(group, path) for group in plan["inputGroups"] or ()),
                strategy=read_text_map(strategy["strategyParams"]) if strategy else {},
                extra=read_text_map(record["extraMetadata"]),
                unscheduled_partitions=None if missing is None else tuple(missing),
                executor_class=str((strategy or {}).get("strategyClassName") or SORT_AND_SIZE),
                plan_extra=read_text_map(plan.get("extraMetadata")),
                keeps_commit_times=plan.get("preserveHoodieMetadata") is not False,
            )

    def encode(self, location: str, *, version: int) -> bytes:
        """Encode the plan as the Avro container of a table version.

        ``location`` is the table's location; Hudi wants absolute paths.
        """
        base = f"file:{location}" if location.startswith("/") else location
        plan = {
            "inputGroups": [_encode_group(group, base) for group in self.groups],
            "strategy": {
                "strategyClassName": self.executor_class,
                "strategyParams": dict(self.strategy),
                "version": 1,
            },
            "extraMetadata": dict(self.plan_extra),
            "version": 1,
            "preserveHoodieMetadata": self.keeps_commit_times,
        }
        if version >= _V8:
            plan["missingSchedulePartitions"] = (
                None if self.unscheduled_partitions is None else [*self.unscheduled_partitions]
            )
        record = {
            "operationType": "CLUSTER",
            "clusteringPlan": plan,
            "extraMetadata": dict(self.extra),
            "version": 1,
        }
        return avro_container.encode_container(_SCHEMA if version >= _V8 else _SCHEMA_6, record)


def compute_group_metrics(
    bases: Iterable[int | None], logs: Iterable[int], target_bytes: int
) -> dict[str, float]:
    """Return Hudi's metrics of a group from the bytes of its base files and log files.

    A base size of None is a log-only slice, which counts as ``target_bytes``, the size of a new
    file.

    >>> compute_group_metrics([3 << 20, None], [1 << 20, 5], 4 << 20)["TOTAL_IO_MB"]
    11.0
    """
    bases, logs = list(bases), list(logs)
    read = float((sum(size or 0 for size in bases) + sum(logs)) // _MIB)
    write = float(sum(target_bytes if size is None else size for size in bases) // _MIB)
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": read + write,
        "TOTAL_IO_READ_MB": read,
        "TOTAL_LOG_FILES_SIZE": float(sum(logs)),
        "TOTAL_IO_WRITE_MB": write,
    }


def parse_compaction(data: bytes, path: str) -> tuple[CompactionOperation, ...]:
    """Decode the requested file of a compaction or log compaction.

    Raises FormatError naming ``path``.
    """
    return parse_compaction_plan(data, path)[0]


def parse_compaction_plan(
    data: bytes, path: str
) -> tuple[tuple[CompactionOperation, ...], dict[str, str]]:
    """Return the operations of a compaction and its extra metadata; as ``parse_compaction``."""
    with decoding_container(data, "HoodieCompactionPlan", path) as record:
        operations = tuple(_parse_operation(part, path) for part in record["operations"] or ())
        return operations, read_text_map(record.get("extraMetadata"))


def parse_rolled_back_time(data: bytes, path: str) -> str:
    """Return the requested time of the instant that a planned rollback undoes.

    Raises FormatError naming ``path``.

    >>> target = {"commitTime": "20260101000000000", "action": "commit"}
    >>> plan = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
    >>> data = avro_container.encode_container("HoodieRollbackPlan.avsc", plan)
    >>> parse_rolled_back_time(data, "x.rollback.requested")
    '20260101000000000'
    """
    with decoding_container(data, "HoodieRollbackPlan", path) as plan:
        return str(plan["instantToRollback"]["commitTime"])


def _read_strategy(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    strategy = plan.get("strategy") if plan else None  # optional: planners do not need it
    return read_text_map(strategy.get("strategyParams")) if strategy else {}


def _parse_operation(record: Mapping[str, Any], path: str) -> CompactionOperation:
    instant = record["baseInstantTime"]
    require(isinstance(instant, str), "an operation has no base instant")
    parts = _read_slice(record, path)
    parse_partition_path(parts["partition"], path)
    require("/" not in parts["file_id"], f"{parts['file_id']!r} is no file id")
    return CompactionOperation(
        **parts,
        base_instant=instant,
        is_bootstrap=bool(record.get("bootstrapFilePath")),
    )


def _parse_slice(record: Mapping[str, Any], path: str) -> InputSlice:
    return InputSlice(**_read_slice(record, path))


def _read_slice(record: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the fields of a slice of a plan."""
    partition, file_id, base = record["partitionPath"], record["fileId"], record["dataFilePath"]
    require(isinstance(partition, str), "a slice has no partition")
    require(isinstance(file_id, str) and bool(file_id), "a slice has no file id")
    return {
        "partition": partition,
        "file_id": file_id,
        "base_file": parse_file_name(base, path) if base else None,
        "log_files": read_file_names(record["deltaFilePaths"], path),
    }


def _parse_group(group: Mapping[str, Any], path: str) -> ClusteringPlanGroup:
    slices = tuple(_parse_slice(input_slice, path) for input_slice in group["slices"] or ())
    for input_slice in slices:
        parse_partition_path(input_slice.partition, path)
    return ClusteringPlanGroup(
        slices=slices,
        output_count=max(1, int(group["numOutputFileGroups"] or 1)),
        metrics={str(name): float(value) for name, value in (group["metrics"] or {}).items()},
    )


def _encode_group(group: ClusteringPlanGroup, base: str) -> dict[str, Any]:
    return {
        "slices": [_encode_slice(input_slice, base) for input_slice in group.slices],
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.output_count,
        "extraMetadata": None,
        "version": 1,
    }


def _encode_slice(input_slice: InputSlice, base: str) -> dict[str, Any]:
    folder = f"{base}/{input_slice.partition}" if input_slice.partition else base
    return {
        "dataFilePath": f"{folder}/{input_slice.base_file}" if input_slice.base_file else "",
        "deltaFilePaths": [f"{folder}/{name}" for name in input_slice.log_files],
        "fileId": input_slice.file_id,
        "partitionPath": input_slice.partition,
        "bootstrapFilePath": "",
        "version": 1,
    }
