"""The plan of a clustering as its writer announces it: what any Hudi writer may execute.

Source: ClusteringUtils, ClusteringPlanStrategy (buildMetrics, getStrategyParams), 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from reconciler.hudi import avro
from reconciler.hudi.avro import partition_path, text_map
from reconciler.hudi.clustering import InputSlice, read_slice
from reconciler.hudi.schemaless import decoding, require

_RECORD: Final = "HoodieRequestedReplaceMetadata"
_SCHEMA: Final = f"{_RECORD}.avsc"
#: until version 8 a plan did not say which partitions it had no room for
_SCHEMA_6: Final = f"{_RECORD}.v6.avsc"
_EIGHT: Final = 8
_STRATEGY: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
)
SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """Slices that are rewritten together into about ``outputs`` files; log files newest first."""

    slices: tuple[InputSlice, ...]
    outputs: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan:
    """The content of a clustering's requested file.

    ``strategy``: options for the executor; Hudi writes the sort columns and nothing else.
    ``extra``: of the whole request. ``missing``: partitions that Hudi's incremental planner shall
    look at the next time; None where it is not told (always before version 8).
    """

    groups: tuple[PlannedGroup, ...]
    strategy: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """The plan in a requested file; raises FormatError naming ``path``, also for no plan."""
        record = avro.decode(data, _RECORD, path)
        with decoding(path, _RECORD):
            plan = record["clusteringPlan"]
            require(plan is not None, "it holds no clustering plan")
            strategy, missing = plan["strategy"], plan.get("missingSchedulePartitions")
            return cls(
                groups=tuple(_group(found, path) for found in plan["inputGroups"] or ()),
                strategy=text_map(strategy["strategyParams"]) if strategy else {},
                extra=text_map(record["extraMetadata"]),
                missing=None if missing is None else tuple(missing),
            )

    def encode(self, location: str, *, version: int) -> bytes:
        """The Avro container of a table version.

        ``location`` is the table's, for the absolute paths that Hudi wants.
        """
        base = f"file:{location}" if location.startswith("/") else location
        plan = {
            "inputGroups": [_group_record(group, base) for group in self.groups],
            "strategy": {
                "strategyClassName": _STRATEGY,
                "strategyParams": dict(self.strategy),
                "version": 1,
            },
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": True,
        }
        if version >= _EIGHT:
            plan["missingSchedulePartitions"] = None if self.missing is None else [*self.missing]
        record = {
            "operationType": "CLUSTER",
            "clusteringPlan": plan,
            "extraMetadata": dict(self.extra),
            "version": 1,
        }
        return avro.encode(_SCHEMA if version >= _EIGHT else _SCHEMA_6, record)


def metrics(bases: Iterable[int | None], logs: Iterable[int], target: int) -> dict[str, float]:
    """What Hudi says of a group: bytes of its slices' base files (None: none) and log files.

    ``target``: bytes of a new file, what a slice of logs alone counts as.

    >>> metrics([3 << 20, None], [1 << 20, 5], 4 << 20)["TOTAL_IO_MB"]
    11.0
    """
    bases, logs = list(bases), list(logs)
    read = float((sum(size or 0 for size in bases) + sum(logs)) // _MIB)
    write = float(sum(target if size is None else size for size in bases) // _MIB)
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": read + write,
        "TOTAL_IO_READ_MB": read,
        "TOTAL_LOG_FILES_SIZE": float(sum(logs)),
        "TOTAL_IO_WRITE_MB": write,
    }


def _group(found: Mapping[str, Any], path: str) -> PlannedGroup:
    slices = tuple(read_slice(one, path) for one in found["slices"] or ())
    for one in slices:
        partition_path(one.partition, path)
    return PlannedGroup(
        slices=slices,
        outputs=max(1, int(found["numOutputFileGroups"] or 1)),
        metrics={str(name): float(value) for name, value in (found["metrics"] or {}).items()},
    )


def _group_record(group: PlannedGroup, base: str) -> dict[str, Any]:
    return {
        "slices": [_slice_record(one, base) for one in group.slices],
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.outputs,
        "extraMetadata": None,
        "version": 1,
    }


def _slice_record(one: InputSlice, base: str) -> dict[str, Any]:
    folder = f"{base}/{one.partition}" if one.partition else base
    return {
        "dataFilePath": f"{folder}/{one.base_file}" if one.base_file else "",
        "deltaFilePaths": [f"{folder}/{name}" for name in one.log_files],
        "fileId": one.file_id,
        "partitionPath": one.partition,
        "bootstrapFilePath": "",
        "version": 1,
    }
