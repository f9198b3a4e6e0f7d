"""Write a deltacommit of the metadata table: names, statistics and encodings per table version.

The metadata table's own cleaning, compaction and rollback use the statistics, so they are filled as
Hudi fills them. Source: HoodieAppendHandle and CommitMetadataSerDe (0.15 to 1.2).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block, encode_deletes
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.write_commit import COUNTS, NO_TIMES, encode_commit
from reconciler.lazy_dataclass import dataclass

#: Hudi's write token names the stage, task and attempt of a Spark task; this program has none
_WRITE_ID: Final = "0-0-0"
#: the values of a write statistic that has no others
_EMPTY_STAT: Final = {
    **dict.fromkeys(COUNTS, 0),
    **dict.fromkeys(("path", "cdcStats", "tempPath", "partitionPath"), None),
    **dict.fromkeys(("minEventTime", "maxEventTime", "runtimeStats"), None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToCreate:
    """A file that must not exist yet. ``path`` is relative to the data table's root."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSync:
    """One update: delete ``cleanup`` of an earlier attempt, then create ``writes`` in order.

    Both are empty when an earlier attempt did exactly this already.
    """

    cleanup: tuple[str, ...]
    writes: tuple[FileToCreate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLogFile:
    """The content of a new log file of a file slice; the counts are of records."""

    file_slice: MetadataSlice
    data: bytes
    write_count: int = 0
    delete_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFileGroup:
    """The base file that starts a file group; ``data`` is None without rows."""

    partition: str
    group: str
    data: bytes | None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deltacommit:
    """A deltacommit of the metadata table.

    ``completion_time`` is used from version 8 on. ``schema``: the records' schema with Hudi's
    columns. ``removed_paths``: log files that count as removed.
    """

    table: MetadataTable
    instant: str
    completion_time: str
    schema: str
    removed_paths: Collection[str] = ()

    def build_files(self, logs: Sequence[NewLogFile]) -> tuple[FileToCreate, ...]:
        """Return the requested and inflight file, one log file per content, the completed file."""
        profile: dict[str, list[Any]] = {}
        stats: dict[str, list[Any]] = {}
        for log in logs:
            profile.setdefault(log.file_slice.partition, []).append(self._build_planned_stat(log))
            stats.setdefault(log.file_slice.partition, []).append(self._build_log_stat(log))
        files = [
            FileToCreate(
                path=log.file_slice.file_path(self._name_log_file(log.file_slice)[0]), data=log.data
            )
            for log in logs
        ]
        return self._add_timeline_files(files, profile, stats)

    def build_first_files(
        self, groups: Sequence[NewFileGroup], extra: Mapping[str, str]
    ) -> tuple[FileToCreate, ...]:
        """Return the files that start metadata partitions: metafiles, log files and base files.

        They match initializeFileGroups and the bulk insert after it
        (HoodieBackedTableMetadataWriter). ``extra``: more extra metadata, in the inflight file
        already.
        """
        stats: dict[str, list[Any]] = {}
        bases: list[FileToCreate] = []
        for group in groups:
            if group.data is not None:
                name = f"{group.group}_{_WRITE_ID}_{self.instant}.hfile"
                stat = _build_base_stat(group, name, len(group.data))
                stats.setdefault(group.partition, []).append(stat)
                path = f"{ROOT}/{group.partition}/{name}"
                bases.append(FileToCreate(path=path, data=group.data))
        partitions = dict.fromkeys(group.partition for group in groups)
        files = [*map(self._build_metafile, partitions), *map(self._build_first_log, groups)]
        operation = "BULK_INSERT_PREPPED" if self.table.version >= VERSION_8 else "BULK_INSERT"
        return self._add_timeline_files([*files, *bases], {}, stats, extra, operation)

    def _add_timeline_files(
        self,
        files: Sequence[FileToCreate],
        profile: Mapping[str, Sequence[Any]],
        stats: Mapping[str, Sequence[Any]],
        extra: Mapping[str, str] = MappingProxyType({}),
        operation: str = "UPSERT_PREPPED",
    ) -> tuple[FileToCreate, ...]:
        """Return the requested and the inflight file, ``files``, and the completed file."""
        version = self.table.version
        planned = encode_commit(profile, operation, extra, version)
        schema = {"schema": _strip_meta_fields(self.schema)}
        written = encode_commit(stats, operation, {**schema, **extra}, version)
        return (
            self._build_timeline_file(State.REQUESTED, b""),
            self._build_timeline_file(State.INFLIGHT, planned),
            *files,
            self._build_timeline_file(State.COMPLETED, written),
        )

    def _build_metafile(self, partition: str) -> FileToCreate:
        """Build the file that marks a folder as a partition (HoodiePartitionMetadata)."""
        text = f"#partition metadata\ncommitTime={self.instant}\npartitionDepth=1\n"
        path = f"{ROOT}/{partition}/.hoodie_partition_metadata"
        return FileToCreate(path=path, data=text.encode())

    def _build_first_log(self, group: NewFileGroup) -> FileToCreate:
        """Build a log file whose block deletes nothing, so that the file group exists."""
        name = self._name_first_log(group.group)
        header = [(HeaderKey.INSTANT_TIME, self.instant)]
        data = encode_block(BlockType.DELETE, header, encode_deletes((), group.partition))
        return FileToCreate(path=f"{ROOT}/{group.partition}/{name}", data=data)

    def _name_first_log(self, file_group: str) -> str:
        return f".{file_group}_{self.instant}.log.1_{_WRITE_ID}"

    def _name_log_file(self, file_slice: MetadataSlice) -> tuple[str, int]:
        """Return name and version of the new log file."""
        group, version = file_slice.file_group, file_slice.next_log_version
        if self.table.version >= VERSION_8:
            return self._name_first_log(group), 1
        return f".{group}_{file_slice.newest_instant}.log.{version}_{_WRITE_ID}", version

    def _build_planned_stat(self, log: NewLogFile) -> dict[str, Any]:
        """Build the HoodieWriteStat of a log file that will be written."""
        is_named_by_write = self.table.version >= VERSION_8
        return {
            **_EMPTY_STAT,
            "fileId": log.file_slice.file_group,
            "prevCommit": self.instant if is_named_by_write else log.file_slice.newest_instant,
            "numUpdateWrites": log.write_count + log.delete_count,
        }

    def _build_log_stat(self, log: NewLogFile) -> dict[str, Any]:
        """Build the HoodieWriteStat of a written log file."""
        name, version = self._name_log_file(log.file_slice)
        return self._build_planned_stat(log) | {
            "path": f"{log.file_slice.partition}/{name}",
            "partitionPath": log.file_slice.partition,
            "numWrites": log.write_count,
            "numUpdateWrites": log.write_count,
            "numDeletes": log.delete_count,
            "totalWriteBytes": len(log.data),
            "fileSizeInBytes": len(log.data),
            "runtimeStats": NO_TIMES,
            "logVersion": version,
            "logOffset": 0,
            **self._list_slice_files(log.file_slice, name),
        }

    def _build_timeline_file(self, state: State, data: bytes) -> FileToCreate:
        is_timed = state is State.COMPLETED and self.table.version >= VERSION_8
        completed = self.completion_time if is_timed else None
        instant = Instant(self.instant, Action.DELTACOMMIT, state, completed)
        return FileToCreate(path=self.table.timeline_path(instant.file_name), data=data)

    def _list_slice_files(self, file_slice: MetadataSlice, name: str) -> dict[str, Any]:
        """Return ``baseFile`` and ``logFiles`` of a write stat; version 6 lists the slice."""
        if self.table.version >= VERSION_8:
            return {"baseFile": "", "logFiles": [name]}
        logs = [log for log in file_slice.logs if log.instant == file_slice.newest_instant]
        log_names = [
            log.name for log in logs if file_slice.file_path(log.name) not in self.removed_paths
        ]
        base = file_slice.base[0] if file_slice.base else ""
        has_base = base.endswith(f"_{file_slice.newest_instant}.hfile")
        return {"baseFile": base if has_base else "", "logFiles": [*reversed(log_names), name]}


def _build_base_stat(group: NewFileGroup, name: str, size: int) -> dict[str, Any]:
    """Build the HoodieWriteStat of a written base file of ``size`` bytes."""
    return {
        **_EMPTY_STAT,
        "fileId": group.group,
        "path": f"{group.partition}/{name}",
        "partitionPath": group.partition,
        "prevCommit": "null",
        "numWrites": group.rows,
        "numInserts": group.rows,
        "totalWriteBytes": size,
        "fileSizeInBytes": size,
        "runtimeStats": NO_TIMES,
    }


def _strip_meta_fields(schema: str) -> str:
    """Return the schema without Hudi's own columns, as commits store it."""
    document = json.loads(schema)
    fields = document["fields"]
    document["fields"] = [field for field in fields if not field["name"].startswith("_hoodie_")]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
