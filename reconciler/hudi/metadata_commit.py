"""The deltacommit of the metadata table around one log file: names, stats, encodings per version.

Source: HoodieAppendHandle and CommitMetadataSerDe (0.15 to 1.2). The stats feed the metadata
table's own cleaning, compaction and rollback, so they are filled as Hudi fills them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.metadata_table import FILES, FileSlice, MetadataTable
from reconciler.hudi.metadata_timeline import EIGHT
from reconciler.hudi.schemaless import encode_container

#: stage, task and attempt of the write; ours has none of them
_WRITE_ID: Final = "0-0-0"
_SCHEMA: Final = "HoodieCommitMetadata.v8_v9.avsc"


_COUNTS: Final = (
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


@dataclass(frozen=True, slots=True)
class Deltacommit:
    """The deltacommit around one log file of the ``files`` partition."""

    table: MetadataTable
    instant: str
    completed: str
    schema: str
    deleted: Collection[str]

    def writes(self, newest: FileSlice, log: bytes, records: int) -> tuple[Write, ...]:
        """Requested, inflight, the log file, completed."""
        requested = Instant(self.instant, Action.DELTACOMMIT, State.REQUESTED)
        inflight = Instant(self.instant, Action.DELTACOMMIT, State.INFLIGHT)
        time = self.completed if self.table.version >= EIGHT else None
        done = Instant(self.instant, Action.DELTACOMMIT, State.COMPLETED, time)
        if self.table.version >= EIGHT:
            stem, version = f".{newest.group}_{self.instant}", 1
        else:
            stem, version = f".{newest.group}_{newest.newest}", newest.next_version
        name = f"{stem}.log.{version}_{_WRITE_ID}"
        written = self._stat(newest) | {
            "path": f"{FILES}/{name}",
            "partitionPath": FILES,
            "numWrites": records,
            "numUpdateWrites": records,
            "totalWriteBytes": len(log),
            "fileSizeInBytes": len(log),
            "runtimeStats": {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0},
            "logVersion": version,
            "logOffset": 0,
            **self._slice_before(newest, name),
        }
        profile = self._stat(newest) | {"numUpdateWrites": records}
        return (
            self._on_timeline(requested, b""),
            self._on_timeline(inflight, self._body([profile], {})),
            Write(path=newest.path(name), data=log),
            self._on_timeline(done, self._body([written], {"schema": _bare(self.schema)})),
        )

    def _on_timeline(self, instant: Instant, data: bytes) -> Write:
        return Write(path=f"{self.table.timelines.folder}/{instant.file_name}", data=data)

    def _stat(self, newest: FileSlice) -> dict[str, Any]:
        """A HoodieWriteStat of the file group with nothing counted yet."""
        own = self.table.version >= EIGHT
        stat = dict.fromkeys(_COUNTS, 0) | dict.fromkeys(_UNKNOWN, None)
        return stat | {
            "fileId": newest.group,
            "prevCommit": self.instant if own else newest.newest,
        }

    def _slice_before(self, newest: FileSlice, name: str) -> dict[str, Any]:
        """Base and log files as the write found them: version 6 lists the whole slice."""
        if self.table.version >= EIGHT:
            return {"baseFile": "", "logFiles": [name]}
        logs = [log for log in newest.logs if log.instant == newest.newest]
        kept = [log.name for log in logs if newest.path(log.name) not in self.deleted]
        base = newest.base[0] if newest.base else ""
        has_base = base.endswith(f"_{newest.newest}.hfile")
        return {"baseFile": base if has_base else "", "logFiles": [*reversed(kept), name]}

    def _body(self, stats: Sequence[Mapping[str, Any]], extra: Mapping[str, str]) -> bytes:
        """HoodieCommitMetadata: JSON in version 6, an Avro container later."""
        record = {
            "partitionToWriteStats": {FILES: list(stats)},
            "compacted": False,
            "extraMetadata": dict(extra),
            "operationType": "UPSERT_PREPPED",
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
