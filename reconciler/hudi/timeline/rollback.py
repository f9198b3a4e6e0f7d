"""Read and write the plan and the record of a rollback, the same in table versions 6, 8 and 9.

Source: BaseRollbackPlanActionExecutor, MarkerBasedRollbackStrategy and TimelineMetadataUtils
(0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Self

from reconciler.hudi.codecs.avro_binary import require
from reconciler.hudi.codecs.avro_container import (
    decoding_container,
    encode_container,
    parse_file_name,
    parse_partition_path,
    read_file_names,
)
from reconciler.hudi.files.names import make_file_path
from reconciler.lazy_dataclass import dataclass

_PLAN: Final = "HoodieRollbackPlan"
_PLAN_SCHEMA: Final = f"{_PLAN}.avsc"
_METADATA_SCHEMA: Final = "HoodieRollbackMetadata.avsc"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """The part of a rollback in one file group: files to delete, or log files to cancel blocks of.

    ``files``: names. ``log_blocks``: name of a log file with blocks of the write -> its size. They
    are cancelled by a command block in a new log file of the slice of ``base_instant``.
    """

    partition: str
    file_id: str
    base_instant: str
    files: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """The content of a rollback's requested file: the write that it undoes, and how."""

    target: str
    action: str
    requests: tuple[RollbackRequest, ...]

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a requested file; raises FormatError naming ``path``."""
        with decoding_container(data, _PLAN, path) as record:
            target = record["instantToRollback"]
            require(target is not None, "it names no instant")
            time = str(target["commitTime"])
            require(time.isascii() and time.isdigit(), f"{time!r} is not an instant time")
            return cls(
                target=time,
                action=str(target["action"]),
                requests=tuple(
                    _parse_request(request, path) for request in record["RollbackRequests"] or ()
                ),
            )

    def encode(self, location: str) -> bytes:
        """Encode as an Avro container. ``location``: the table's; Hudi wants absolute paths."""
        record = {
            "instantToRollback": {"commitTime": self.target, "action": self.action},
            "RollbackRequests": [
                {
                    "partitionPath": request.partition,
                    "fileId": request.file_id,
                    "latestBaseInstant": request.base_instant,
                    "filesToBeDeleted": [
                        f"{location}/{make_file_path(request.partition, name)}"
                        for name in request.files
                    ],
                    "logBlocksToBeDeleted": dict(request.log_blocks),
                }
                for request in self.requests
            ],
            "version": _VERSION,
        }
        return encode_container(_PLAN_SCHEMA, record)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackPartition:
    """What a rollback did in one partition, by file names.

    ``command_logs``: new log files with command blocks -> size. ``failed_logs``: log files with
    blocks of the undone write -> size.
    """

    deleted: tuple[str, ...] = ()
    command_logs: Mapping[str, int] = field(default_factory=dict)
    failed_logs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackMetadata:
    """The content of a completed rollback. ``started``: its requested time."""

    started: str
    duration_ms: int
    target: str
    action: str
    partitions: Mapping[str, RolledBackPartition]

    def encode(self, location: str) -> bytes:
        """Encode as an Avro container; ``location`` is the table's."""
        record = {
            "startRollbackTime": self.started,
            "timeTakenInMillis": self.duration_ms,
            "totalFilesDeleted": sum(len(part.deleted) for part in self.partitions.values()),
            "commitsRollback": [self.target],
            "partitionMetadata": {
                path: _encode_partition(path, part, location)
                for path, part in sorted(self.partitions.items())
            },
            "version": _VERSION,
            "instantsRollback": [{"commitTime": self.target, "action": self.action}],
        }
        return encode_container(_METADATA_SCHEMA, record)


def _encode_partition(path: str, part: RolledBackPartition, location: str) -> dict[str, Any]:
    folder = f"{location}/{path}" if path else location
    with_scheme = f"file:{folder}" if folder.startswith("/") else folder
    return {
        "partitionPath": path,
        "successDeleteFiles": [f"{folder}/{name}" for name in part.deleted],
        "failedDeleteFiles": [],
        "rollbackLogFiles": {
            f"{with_scheme}/{name}": size for name, size in part.command_logs.items()
        },
        "logFilesFromFailedCommit": dict(part.failed_logs),
    }


def _parse_request(record: Mapping[str, Any], path: str) -> RollbackRequest:
    partition = record["partitionPath"]
    require(isinstance(partition, str), "a request has no partition")
    blocks = record["logBlocksToBeDeleted"] or {}
    return RollbackRequest(
        partition=parse_partition_path(partition, path),
        file_id=str(record["fileId"] or ""),
        base_instant=str(record["latestBaseInstant"] or ""),
        files=read_file_names(record["filesToBeDeleted"], path),
        # Hudi's listing names the folder alone where it knows no log file
        log_blocks={
            parse_file_name(name, path): int(size)
            for name, size in blocks.items()
            if name[-1:] != "/"
        },
    )
