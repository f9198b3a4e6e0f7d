"""Write the commit file of a write, while it runs and when it is complete.

Source: CommitMetadataSerDeV1 (JSON, layout 1) and V2 (Avro, layout 2), CommitUtils.buildMetadata,
BaseSparkCommitActionExecutor.saveWorkloadProfileMetadataToInflight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.lazy_dataclass import dataclass

_COMMIT: Final = "HoodieCommitMetadata.avsc"
_REQUEST: Final = "HoodieRequestedReplaceMetadata.avsc"
_REPLACE: Final = "HoodieReplaceCommitMetadata.avsc"
#: the first table version whose commits are Avro
_AVRO_FROM: Final = 8
#: fields that JSON commits write even when they are null
_NULLS: Final = ("cdcStats", "tempPath", "minEventTime", "maxEventTime")
NO_TIMES: Final = {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0}
#: counts that only Avro commits have
_ZEROS_OF_AVRO: Final = ("totalLogReadTimeMs", "numUpdates")
_ONLY_AVRO: Final = "prevBaseFile"
#: fields of log files' statistics; JSON commits also tell that they hold no column ranges
_LOG_VERSION: Final = "logVersion"
_RANGES: Final = "recordsStats"
#: the counts of every write statistic
COUNTS: Final = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteBytes",
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)

WriteStat = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCommit:
    """The content of a completed write.

    ``stats_by_partition``: write statistics by Hudi's field names (``base_file.write_stat``).
    ``operation``: Hudi's name, such as UPSERT. ``replaced``: partition -> ids of the replaced file
    groups, None for a write that replaces none.
    """

    stats_by_partition: Mapping[str, Sequence[WriteStat]]
    operation: str
    replaced: Mapping[str, Sequence[str]] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    is_compaction: bool = False

    def encode(self, *, version: int) -> bytes:
        """Encode for a table version: JSON before version 8, an Avro container from then on."""
        to_stat = _to_avro_stat if version >= _AVRO_FROM else _to_json_stat
        stats = {
            path: [to_stat(stat) for stat in partition_stats]
            for path, partition_stats in self.stats_by_partition.items()
        }
        return encode_commit(
            stats,
            self.operation,
            self.extra,
            version,
            self.replaced,
            is_compaction=self.is_compaction,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadProfile:
    """The content of a write's inflight file, written before the first data file.

    ``inserts``: partition -> number of new records. ``updates``: partition -> file id -> instant of
    the group's base file and number of records that go to it.
    """

    operation: str
    inserts: Mapping[str, int]
    updates: Mapping[str, Mapping[str, tuple[str, int]]] = field(default_factory=dict)

    def encode(self, *, version: int) -> bytes:
        """Encode the inflight file of a table version."""
        stats = {}
        for path in sorted({*self.inserts, *self.updates}):
            counts = {"numInserts": self.inserts.get(path, 0)}
            planned = [_planned_stat({"fileId": "", "prevCommit": "null", **counts}, version)]
            for file_id, (instant, count) in sorted(self.updates.get(path, {}).items()):
                stat = {"fileId": file_id, "prevCommit": instant, "numUpdateWrites": count}
                planned.append(_planned_stat(stat, version))
            stats[path] = planned
        return encode_commit(stats, self.operation, {}, version)


def encode_replace_request(
    operation: str | None = None, extra: Mapping[str, str] | None = None
) -> bytes:
    """Encode the requested file of a write that replaces file groups without a plan.

    Hudi names the operation where a write deletes partitions (DeletePartitionCommitActionExecutor).
    """
    given = None if extra is None else dict(extra)
    record = {"operationType": operation, "clusteringPlan": None, "extraMetadata": given}
    return encode_container(_REQUEST, {**record, "version": 1})


def encode_commit(
    stats: Mapping[str, Sequence[WriteStat]],
    operation: str,
    extra: Mapping[str, str],
    version: int,
    replaced: Mapping[str, Sequence[str]] | None = None,
    *,
    is_compaction: bool = False,
) -> bytes:
    """Encode a commit of a table version: JSON before version 8, an Avro container from then on."""
    record: dict[str, Any] = {
        "partitionToWriteStats": dict(stats),
        "compacted": is_compaction,
        "extraMetadata": dict(extra),
        "operationType": operation,
    }
    if replaced is not None:
        record["partitionToReplaceFileIds"] = {path: [*ids] for path, ids in replaced.items()}
    if version >= _AVRO_FROM:
        return encode_container(
            _COMMIT if replaced is None else _REPLACE, record | {"version": None}
        )
    return json.dumps(record, indent=2, separators=(",", " : ")).encode()


def _to_json_stat(stat: WriteStat) -> dict[str, Any]:
    values = {name: value for name, value in stat.items() if name != _ONLY_AVRO}
    if _LOG_VERSION in values:
        values |= {_RANGES: {"val": None}}
    return {**dict.fromkeys(_NULLS), **values, "runtimeStats": NO_TIMES}


def _to_avro_stat(stat: WriteStat) -> dict[str, Any]:
    return {**dict.fromkeys(_ZEROS_OF_AVRO, 0), **stat, "runtimeStats": NO_TIMES}


def _planned_stat(stat: WriteStat, version: int) -> dict[str, Any]:
    if version >= _AVRO_FROM:
        return {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(_ZEROS_OF_AVRO, 0), **stat}
    nulls = dict.fromkeys((*_NULLS, "path", "partitionPath", "runtimeStats"))
    return {**nulls, **dict.fromkeys(COUNTS, 0), **stat}
