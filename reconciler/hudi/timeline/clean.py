"""Read and write the payloads of a clean: HoodieCleanerPlan and HoodieCleanMetadata.

Paths inside a plan are absolute and may be of another machine, so only file names are used. Source:
CleanPlanV1/V2MigrationHandler, CleanMetadataV1/V2MigrationHandler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Self

from reconciler.hudi.codecs.avro_binary import require
from reconciler.hudi.codecs.avro_container import (
    decode_container,
    decoding_container,
    encode_container,
    parse_partition_path,
    read_file_names,
    read_strings,
    read_text_map,
)
from reconciler.hudi.files.names import make_file_path
from reconciler.lazy_dataclass import dataclass

_VERSION: Final = 2
_PLAN: Final = "HoodieCleanerPlan"
_PLAN_SCHEMA: Final = "HoodieCleanerPlan.avsc"
_METADATA: Final = "HoodieCleanMetadata"
_METADATA_SCHEMA: Final = "HoodieCleanMetadata.avsc"

Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerPlan:
    """The content of ``<time>.clean.requested``.

    ``files``: partition -> names of files of the table. ``bootstrap_files``: partition -> full
    paths of bootstrap sources, which lie outside the table. ``earliest_instant``: requested time of
    the earliest instant to retain, None under KEEP_LATEST_FILE_VERSIONS. ``earliest_action``: that
    instant's action.
    """

    policy: str
    earliest_instant: str | None
    earliest_action: str = "commit"
    last_completed_commit: str = ""
    files: Names = field(default_factory=dict)
    bootstrap_files: Names = field(default_factory=dict)
    delete_partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested or inflight file; raises FormatError naming ``path``."""
        with decoding_container(data, _PLAN, path, schema_file=_PLAN_SCHEMA) as record:
            earliest = record["earliestInstantToRetain"]
            files, sources = _read_files(record, path)
            return cls(
                policy=_require_text(record["policy"]),
                earliest_instant=_require_time(earliest["timestamp"]) if earliest else None,
                earliest_action=_require_text(earliest["action"]) if earliest else "commit",
                last_completed_commit=_require_text(record["lastCompletedCommitTimestamp"]),
                files=files,
                bootstrap_files=sources,
                delete_partitions=tuple(
                    parse_partition_path(partition, path)
                    for partition in read_strings(record["partitionsToBeDeleted"])
                ),
                extra=read_text_map(record["extraMetadata"]),
            )

    def encode(self, location: str) -> bytes:
        """Encode the plan as an Avro container, the same in table versions 6, 8 and 9.

        ``location`` is the table's location; Hudi wants absolute paths.
        """
        base = f"file:{location}" if location.startswith("/") else location
        earliest = self.earliest_instant
        record = {
            "earliestInstantToRetain": (
                _encode_earliest(earliest, self.earliest_action) if earliest else None
            ),
            "lastCompletedCommitTimestamp": self.last_completed_commit,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": {
                partition: [
                    {"filePath": path, "isBootstrapBaseFile": is_bootstrap}
                    for path, is_bootstrap in self._list_paths(base, partition)
                ]
                for partition in dict.fromkeys((*self.files, *self.bootstrap_files))
            },
            "partitionsToBeDeleted": list(self.delete_partitions),
            "extraMetadata": dict(self.extra),
        }
        return encode_container(_PLAN_SCHEMA, record)

    def _list_paths(self, base: str, partition: str) -> Iterator[tuple[str, bool]]:
        """Yield each path to delete of a partition, and whether it is of a bootstrap source."""
        for name in self.files.get(partition, ()):
            yield f"{base}/{make_file_path(partition, name)}", False
        for path in self.bootstrap_files.get(partition, ()):
            yield path, True


def replace_earliest_instant(data: bytes, path: str, earliest_instant: str, action: str) -> bytes:
    """Return the same plan with another earliest instant; its paths keep their spelling."""
    record = dict(decode_container(data, _PLAN, path, schema_file=_PLAN_SCHEMA))
    record["earliestInstantToRetain"] = _encode_earliest(earliest_instant, action)
    return encode_container(_PLAN_SCHEMA, record)


def _encode_earliest(instant: str, action: str) -> dict[str, str]:
    return {"timestamp": instant, "action": action, "state": "COMPLETED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedPartition:
    """The files that a clean planned, deleted and failed to delete in one partition."""

    policy: str
    planned: tuple[str, ...]
    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_folder_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanMetadata:
    """The content of a completed clean; ``earliest_instant`` is ``""`` when there is none."""

    started: str
    duration_ms: int
    earliest_instant: str
    last_completed_commit: str
    partitions: Mapping[str, CleanedPartition]
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a completed file; raises FormatError naming ``path``."""
        with decoding_container(data, _METADATA, path, schema_file=_METADATA_SCHEMA) as record:
            return cls(
                started=_require_time(record["startCleanTime"]),
                duration_ms=int(record["timeTakenInMillis"]),
                earliest_instant=_require_time(record["earliestCommitToRetain"]),
                last_completed_commit=_require_text(record["lastCompletedCommitTimestamp"]),
                partitions={
                    str(partition): _read_partition(cleaned, path)
                    for partition, cleaned in record["partitionMetadata"].items()
                },
                extra=read_text_map(record["extraMetadata"]),
            )

    def encode(self) -> bytes:
        """Encode as an Avro container, the same in table versions 6, 8 and 9."""
        record = {
            "startCleanTime": self.started,
            "timeTakenInMillis": self.duration_ms,
            "totalFilesDeleted": sum(len(p.deleted) for p in self.partitions.values()),
            "earliestCommitToRetain": self.earliest_instant,
            "lastCompletedCommitTimestamp": self.last_completed_commit,
            "partitionMetadata": {
                path: {
                    "partitionPath": path,
                    "policy": cleaned.policy,
                    "deletePathPatterns": list(cleaned.planned),
                    "successDeleteFiles": list(cleaned.deleted),
                    "failedDeleteFiles": list(cleaned.failed),
                    "isPartitionDeleted": cleaned.is_folder_deleted,
                }
                for path, cleaned in self.partitions.items()
            },
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(self.extra),
        }
        return encode_container(_METADATA_SCHEMA, record)


def _read_files(record: Mapping[str, Any], path: str) -> tuple[Names, Names]:
    """Return names and bootstrap sources by partition, from either version of a plan."""
    files: dict[str, tuple[str, ...]] = {}
    sources: dict[str, tuple[str, ...]] = {}
    for partition, names in (record["filesToBeDeletedPerPartition"] or {}).items():
        files[parse_partition_path(partition, path)] = read_file_names(names, path)
    for partition, infos in (record["filePathsToBeDeletedPerPartition"] or {}).items():
        inside: list[str] = []
        outside: list[str] = []
        for info in infos:
            target = outside if info["isBootstrapBaseFile"] else inside
            target.append(_require_text(info["filePath"]))
        earlier = files.get(parse_partition_path(partition, path), ())
        files[partition] = earlier + read_file_names(inside, path)
        if outside:
            sources[partition] = tuple(outside)
    return files, sources


def _read_partition(record: Mapping[str, Any], path: str) -> CleanedPartition:
    return CleanedPartition(
        policy=_require_text(record["policy"]),
        planned=read_file_names(record["deletePathPatterns"], path),
        deleted=read_file_names(record["successDeleteFiles"], path),
        failed=read_file_names(record["failedDeleteFiles"], path),
        is_folder_deleted=bool(record["isPartitionDeleted"]),
    )


def _require_text(value: Any) -> str:
    require(isinstance(value, str), f"{value!r} is not a text")
    return str(value)


def _require_time(value: Any) -> str:
    text = _require_text(value).strip()
    require(not text or (text.isascii() and text.isdigit()), f"{text!r} is not an instant time")
    return text
