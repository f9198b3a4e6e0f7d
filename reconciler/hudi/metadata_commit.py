"""The deltacommit of the metadata table around its log files: names, stats, encodings per version.

Source: HoodieAppendHandle and CommitMetadataSerDe (0.15 to 1.2). The stats feed the metadata
table's own cleaning, compaction and rollback, so they are filled as Hudi fills them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.logfile import BlockType, HeaderKey, delete_content, encode_block
from reconciler.hudi.metadata_table import FileSlice, MetadataTable
from reconciler.hudi.metadata_timeline import EIGHT, ROOT
from reconciler.hudi.schemaless import encode_container
from reconciler.hudi.write_commit import COUNTS

#: stage, task and attempt of the write; ours has none of them
_WRITE_ID: Final = "0-0-0"
_SCHEMA: Final = "HoodieCommitMetadata.avsc"
_UNKNOWN: Final = (
    "path",
    "cdcStats",
    "tempPath",
    "partitionPath",
    "minEventTime",
    "maxEventTime",
    "runtimeStats",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A file to create; it must not exist yet. ``path`` is relative to the data table's root."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContent:
    """What a new log file of a file slice will hold; ``writes`` and ``deletes`` count records."""

    over: FileSlice
    data: bytes
    writes: int = 0
    deletes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseContent:
    """What a new file group of a metadata partition begins with; ``data`` is None without rows."""

    partition: str
    group: str
    data: bytes | None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deltacommit:
    """A deltacommit of the metadata table.

    ``completed``: its completion time, used from version 8 on; ``schema``: of the records, with
    Hudi's columns; ``cleaned``: paths of log files that count as gone.
    """

    table: MetadataTable
    instant: str
    completed: str
    schema: str
    cleaned: Collection[str]

    def files(self, logs: Sequence[LogContent]) -> tuple[Write, ...]:
        """Requested, inflight, one log file for each content, completed."""
        requested = Instant(self.instant, Action.DELTACOMMIT, State.REQUESTED)
        inflight = Instant(self.instant, Action.DELTACOMMIT, State.INFLIGHT)
        time = self.completed if self.table.version >= EIGHT else None
        done = Instant(self.instant, Action.DELTACOMMIT, State.COMPLETED, time)
        profile: dict[str, list[Any]] = {}
        stats: dict[str, list[Any]] = {}
        for log in logs:
            profile.setdefault(log.over.partition, []).append(self._profile(log))
            stats.setdefault(log.over.partition, []).append(self._written(log))
        return (
            self._on_timeline(requested, b""),
            self._on_timeline(inflight, self._body(profile, {})),
            *(Write(path=log.over.path(self._name(log.over)[0]), data=log.data) for log in logs),
            self._on_timeline(done, self._body(stats, {"schema": _bare(self.schema)})),
        )

    def first_files(
        self, groups: Sequence[BaseContent], extra: Mapping[str, str]
    ) -> tuple[Write, ...]:
        """The same where metadata partitions begin: their marks, file groups and base files.

        As initializeFileGroups and the bulk insert after it do (HoodieBackedTableMetadataWriter).
        ``extra``: more pairs for what the deltacommit says of itself, from its inflight file on.
        """
        requested = Instant(self.instant, Action.DELTACOMMIT, State.REQUESTED)
        inflight = Instant(self.instant, Action.DELTACOMMIT, State.INFLIGHT)
        time = self.completed if self.table.version >= EIGHT else None
        done = Instant(self.instant, Action.DELTACOMMIT, State.COMPLETED, time)
        stats: dict[str, list[Any]] = {}
        for group in groups:
            if group.data is not None:
                stats.setdefault(group.partition, []).append(self._inserted(group, group.data))
        schema = {"schema": _bare(self.schema)}
        kind = "BULK_INSERT_PREPPED" if self.table.version >= EIGHT else "BULK_INSERT"
        return (
            self._on_timeline(requested, b""),
            self._on_timeline(inflight, self._body({}, extra, kind)),
            *(self._mark(partition) for partition in dict.fromkeys(g.partition for g in groups)),
            *(self._group_begins(group) for group in groups),
            *(
                Write(path=f"{ROOT}/{group.partition}/{self._base(group)}", data=group.data)
                for group in groups
                if group.data is not None
            ),
            self._on_timeline(done, self._body(stats, {**schema, **extra}, kind)),
        )

    def _mark(self, partition: str) -> Write:
        """The file that says of a folder that it is a partition (HoodiePartitionMetadata)."""
        text = f"#partition metadata\ncommitTime={self.instant}\npartitionDepth=1\n"
        path = f"{ROOT}/{partition}/.hoodie_partition_metadata"
        return Write(path=path, data=text.encode())

    def _group_begins(self, group: BaseContent) -> Write:
        """A log file with a block that deletes nothing, so that the file group is there."""
        name = f".{group.group}_{self.instant}.log.1_{_WRITE_ID}"
        header = [(HeaderKey.INSTANT_TIME, self.instant)]
        data = encode_block(BlockType.DELETE, header, delete_content((), group.partition))
        return Write(path=f"{ROOT}/{group.partition}/{name}", data=data)

    def _base(self, group: BaseContent) -> str:
        return f"{group.group}_{_WRITE_ID}_{self.instant}.hfile"

    def _inserted(self, group: BaseContent, data: bytes) -> dict[str, Any]:
        """A HoodieWriteStat of a base file that was written."""
        return {
            **dict.fromkeys(COUNTS, 0),
            **dict.fromkeys(_UNKNOWN, None),
            "fileId": group.group,
            "path": f"{group.partition}/{self._base(group)}",
            "partitionPath": group.partition,
            "prevCommit": "null",
            "numWrites": group.rows,
            "numInserts": group.rows,
            "totalWriteBytes": len(data),
            "fileSizeInBytes": len(data),
            "runtimeStats": {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0},
        }

    def _name(self, over: FileSlice) -> tuple[str, int]:
        """Name and version of the new log file."""
        if self.table.version >= EIGHT:
            return f".{over.group}_{self.instant}.log.1_{_WRITE_ID}", 1
        version = over.next_version
        return f".{over.group}_{over.newest}.log.{version}_{_WRITE_ID}", version

    def _profile(self, log: LogContent) -> dict[str, Any]:
        """A HoodieWriteStat of what is about to be written."""
        own = self.table.version >= EIGHT
        return {
            **dict.fromkeys(COUNTS, 0),
            **dict.fromkeys(_UNKNOWN, None),
            "fileId": log.over.group,
            "prevCommit": self.instant if own else log.over.newest,
            "numUpdateWrites": log.writes + log.deletes,
        }

    def _written(self, log: LogContent) -> dict[str, Any]:
        """A HoodieWriteStat of what was written."""
        name, version = self._name(log.over)
        return self._profile(log) | {
            "path": f"{log.over.partition}/{name}",
            "partitionPath": log.over.partition,
            "numWrites": log.writes,
            "numUpdateWrites": log.writes,
            "numDeletes": log.deletes,
            "totalWriteBytes": len(log.data),
            "fileSizeInBytes": len(log.data),
            "runtimeStats": {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0},
            "logVersion": version,
            "logOffset": 0,
            **self._slice_before(log.over, name),
        }

    def _on_timeline(self, instant: Instant, data: bytes) -> Write:
        return Write(path=f"{self.table.timelines.folder}/{instant.file_name}", data=data)

    def _slice_before(self, over: FileSlice, name: str) -> dict[str, Any]:
        """Base and log files as the write found them: version 6 lists the whole slice."""
        if self.table.version >= EIGHT:
            return {"baseFile": "", "logFiles": [name]}
        logs = [log for log in over.logs if log.instant == over.newest]
        kept = [log.name for log in logs if over.path(log.name) not in self.cleaned]
        base = over.base[0] if over.base else ""
        has_base = base.endswith(f"_{over.newest}.hfile")
        return {"baseFile": base if has_base else "", "logFiles": [*reversed(kept), name]}

    def _body(
        self,
        stats: Mapping[str, Sequence[Any]],
        extra: Mapping[str, str],
        operation: str = "UPSERT_PREPPED",
    ) -> bytes:
        """HoodieCommitMetadata: JSON in version 6, an Avro container later."""
        record = {
            "partitionToWriteStats": dict(stats),
            "compacted": False,
            "extraMetadata": dict(extra),
            "operationType": operation,
        }
        if self.table.version < EIGHT:
            return json.dumps(record, indent=2, separators=(",", " : ")).encode()
        return encode_container(_SCHEMA, record | {"version": None})


def _bare(schema: str) -> str:
    """The schema without Hudi's own columns, as commits carry it."""
    document = json.loads(schema)
    fields = document["fields"]
    document["fields"] = [field for field in fields if not field["name"].startswith("_hoodie_")]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
