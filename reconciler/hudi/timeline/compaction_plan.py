"""Write the plan of a compaction as Hudi's scheduler does, so that any writer may execute it.

Source: HoodieCompactionPlanGenerator, CompactionUtils.buildHoodieCompactionOperation,
FileSliceMetricUtils, 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.timeline.plans import CompactionOperation, compute_group_metrics
from reconciler.lazy_dataclass import dataclass

_SCHEMA: Final = "HoodieCompactionPlan.avsc"
#: plans before version 8 do not name unscheduled partitions
_SCHEMA_6: Final = "HoodieCompactionPlan.v6.avsc"
_V8: Final = 8
#: of the plan's content, in every version of tables (LATEST_COMPACTION_METADATA_VERSION)
_PLAN_VERSION: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperation:
    """One slice to compact, with its sizes.

    ``base_bytes``: None for a slice without a base file. ``log_bytes``: bytes of each log file.
    """

    operation: CompactionOperation
    base_bytes: int | None
    log_bytes: tuple[int, ...]

    def encode(self, target_bytes: int) -> dict[str, Any]:
        """Return the operation as Avro data; ``target_bytes``: the size of a new base file."""
        operation = self.operation
        metrics = compute_group_metrics([self.base_bytes], self.log_bytes, target_bytes)
        return {
            "baseInstantTime": operation.base_instant,
            "deltaFilePaths": [*operation.log_files],
            "dataFilePath": operation.base_file,
            "fileId": operation.file_id,
            "partitionPath": operation.partition,
            "metrics": metrics,
            "bootstrapFilePath": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The content of a compaction's requested file.

    ``unscheduled_partitions``: those with log files that the plan leaves. Where Hudi plans
    compactions incrementally it looks there next time, and at what was written since.
    ``extra``: extra metadata.
    """

    operations: tuple[PlannedOperation, ...]
    unscheduled_partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    def encode(self, *, version: int, target_bytes: int) -> bytes:
        """Encode the plan as the Avro container of a table version."""
        record: dict[str, Any] = {
            "operations": [operation.encode(target_bytes) for operation in self.operations],
            "extraMetadata": dict(self.extra),
            "version": _PLAN_VERSION,
            "strategy": None,
            "preserveHoodieMetadata": False,
        }
        if version < _V8:
            return avro_container.encode_container(_SCHEMA_6, record)
        record["missingSchedulePartitions"] = [*self.unscheduled_partitions]
        return avro_container.encode_container(_SCHEMA, record)
