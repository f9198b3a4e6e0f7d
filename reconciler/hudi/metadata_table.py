"""Hudi's metadata table: its place, its timeline, its file slices and what a reader may see.

``.hoodie/metadata`` is a merge-on-read Hudi table of HFiles. It is written before the data table's
instant completes, so a log block counts only once its instant is completed on the data table.
Source: HoodieBackedTableMetadata, HoodieTableMetadataUtil.getValidInstantTimestamps (0.15 to 1.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.logfile import Block, BlockType, HeaderKey, read_blocks
from reconciler.hudi.schemaless import decoding, require
from reconciler.hudi.timeline import Timeline, TimelineFile

ROOT: Final = ".hoodie/metadata"
FILES: Final = "files"
#: the first table version with layout 2 of the timeline
EIGHT: Final = 8
KNOWN_VERSIONS: Final = (6, 8, 9)

_BASE: Final = re.compile(r"(?P<group>[^_.][^_]*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d+)\.hfile")
_LOG: Final = re.compile(
    r"\.(?P<group>[^_]+)_(?P<instant>\d+)\.log\.(?P<version>\d+)_(?P<token>\d+-\d+-\d+)"
)
#: how instants of the metadata table's own making begin: it was born with them
_SOLO: Final = "00000000000000"
#: version 6: length of an instant of the data table, and of one with an operation's suffix
_SUFFIXED: Final = 20


class Listed(Protocol):
    """One thing in a folder, as a storage lists it."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_ms(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...


class Source(Protocol):
    """Where bytes come from; paths are relative to the data table's root. A storage is one.

    ``list`` raises NotFoundError when the folder is not there.
    """

    def list(self, folder: str) -> Sequence[Listed]: ...
    def read(self, path: str) -> bytes: ...
    def read_range(self, path: str, start: int, length: int) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log file. ``instant``: the base instant in version 6, the writing deltacommit later."""

    name: str
    instant: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """The newest slice of a file group in a metadata partition.

    ``base``: name and size of the newest committed base file, None without one. ``logs``: what is
    to be merged over it, in merge order. ``newest``: the instant of the newest slice, also when a
    pending compaction made it: version 6 names log files after it. ``next_version``: the log
    version after all logs of that slice (version 6).
    """

    partition: str
    group: str
    base: tuple[str, int] | None
    logs: tuple[LogFile, ...]
    newest: str
    next_version: int

    def path(self, name: str) -> str:
        return f"{ROOT}/{self.partition}/{name}"


@dataclass(frozen=True)
class MetadataTable:
    """An open metadata table: ``timeline`` is its own, ``data`` the data table's active one."""

    source: Source
    version: int
    timeline: Timeline
    data: Timeline

    @property
    def timeline_folder(self) -> str:
        return _timeline_folder(f"{ROOT}/.hoodie", self.version)

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of every file group of a metadata partition, by group name.

        Raises FormatError when the folder is not there or has no file group.
        """
        folder = f"{ROOT}/{partition}"
        try:
            entries = self.source.list(folder)
        except NotFoundError:
            entries = ()
        found = _slices(self, partition, entries)
        if not found:
            raise FormatError(
                folder,
                "the properties list this metadata partition, but it holds no file group",
                "rebuild the metadata table",
            )
        return found

    def log_paths(self) -> list[str]:
        """Every log file of every metadata partition, listed or not, complete or not."""
        paths = []
        for entry in self.source.list(ROOT):
            if entry.is_folder and entry.name != ".hoodie":
                folder = f"{ROOT}/{entry.name}"
                names = sorted(child.name for child in self.source.list(folder))
                paths += [f"{folder}/{name}" for name in names if _LOG.fullmatch(name)]
        return paths

    def blocks(self, file_slice: FileSlice) -> list[Block]:
        """The log blocks of a slice that a reader may see, in merge order; FormatError if damaged.

        Corrupt blocks are ignored, as Hudi does; a rollback drops the earlier blocks of its target.
        """
        kept: list[Block] = []
        compacted: set[str] = set()
        for log in file_slice.logs:
            path = file_slice.path(log.name)
            for block in read_blocks(self.source.read(path), path):
                if block.type is BlockType.CORRUPT:
                    continue
                if block.type is BlockType.COMMAND:
                    target = block.header.get(HeaderKey.TARGET_INSTANT_TIME)
                    kept = [earlier for earlier in kept if earlier.instant != target]
                elif self._is_visible(block):
                    times = block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
                    compacted.update(filter(None, times.split(",")))
                    kept.append(block)
        return [block for block in kept if block.instant not in compacted]

    def _is_visible(self, block: Block) -> bool:
        instant = block.instant
        if instant is None:
            raise FormatError(block.path, f"the log block at byte {block.start} has no instant")
        if self.version < EIGHT and not self.is_written(instant):
            return False
        if instant in self._valid:
            return True
        return instant not in self._unfinished and instant in self._undone

    def is_written(self, instant: str) -> bool:
        """Whether it is completed on the metadata table's own timeline, or archived there."""
        start = min(self.completed, default="")
        return instant in self.completed or (instant < start and instant not in self._pending)

    @cached_property
    def completed(self) -> Mapping[str, str]:
        """Completion times of the metadata table's completed commits, by requested time."""
        return {i.requested: i.completed or i.requested for i in self.timeline.commits}

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.timeline.instants if not i.is_completed)

    @cached_property
    def _unfinished(self) -> frozenset[str]:
        """The data table's pending instants."""
        return frozenset(i.requested for i in self.data.instants if not i.is_completed)

    @cached_property
    def _valid(self) -> frozenset[str]:
        """Instants whose blocks count: getValidInstantTimestamps without what was rolled back."""
        valid = {i.requested for i in self.data.instants if i.is_completed}
        for instant in self.timeline.completed({Action.DELTACOMMIT}):
            time = instant.requested
            own = len(time) == _SUFFIXED if self.version < EIGHT else time not in self._unfinished
            if own or time.startswith(_SOLO):
                valid.add(time)
        undoing = self.timeline.completed({Action.ROLLBACK, Action.RESTORE})
        return frozenset(valid | {i.requested for i in undoing})

    @cached_property
    def _undone(self) -> frozenset[str]:
        """What completed rollbacks and restores of the data table undid; read when first asked for.

        Their blocks count: the blocks of the rollback itself take back what they said.
        """
        folder = _timeline_folder(".hoodie", self.version)
        undone: set[str] = set()
        for file in self.data.entries:
            if file.instant.is_completed and file.instant.action in _UNDOING:
                path = f"{folder}/{file.name}"
                data = self.source.read(path)
                if not data:  # Hudi 0.x can leave it empty; the plan says the same
                    plan = replace(file.instant, state=State.REQUESTED, completed=None)
                    path = f"{folder}/{plan.file_name}"
                    data = self.source.read(path)
                undone.update(_rolled_back(container_record(data, path), path))
        return frozenset(undone)

    @cached_property
    def _compacting(self) -> Mapping[tuple[str, str], str]:
        """The newest pending compaction of a (metadata partition, file group)."""
        found: dict[tuple[str, str], str] = {}
        for instant in self.timeline.pending({Action.COMPACTION}):
            plan = replace(instant, state=State.REQUESTED)
            path = f"{self.timeline_folder}/{plan.file_name}"
            record = container_record(self.source.read(path), path)
            with decoding(path, "the compaction plan"):
                for operation in record["operations"] or ():
                    found[operation["partitionPath"], operation["fileId"]] = instant.requested
        return found

    def compaction_of(self, partition: str, group: str) -> str:
        """The instant of the pending compaction that opened a slice of the group, else ``""``."""
        return self._compacting.get((partition, group), "")


_UNDOING: Final = frozenset({Action.ROLLBACK, Action.RESTORE})


def open_metadata(source: Source, *, version: int, data: Timeline) -> MetadataTable:
    """The metadata table of a data table of this version, whose active timeline is ``data``.

    Raises UnsupportedError for a table version we have not proven; FormatError when the metadata
    table that the properties promise is not there.
    """
    if version not in KNOWN_VERSIONS:
        raise UnsupportedError(
            f"{ROOT}: the metadata table of table version {version} is unknown to this version of "
            f"reconciler; it knows {', '.join(map(str, KNOWN_VERSIONS))}"
        )
    folder = _timeline_folder(f"{ROOT}/.hoodie", version)
    try:
        entries = source.list(folder)
    except NotFoundError:
        raise FormatError(
            folder,
            f"a table of version {version} with a metadata table must have its timeline here",
            "let a Hudi writer rebuild the metadata table",
        ) from None
    return MetadataTable(source=source, version=version, timeline=_timeline(entries), data=data)


def _timeline_folder(hoodie: str, version: int) -> str:
    return f"{hoodie}/timeline" if version >= EIGHT else hoodie


def _timeline(entries: Iterable[Listed]) -> Timeline:
    files = []
    for entry in entries:
        instant = None if entry.is_folder else Instant.parse(entry.name)
        if instant is not None:
            files.append(TimelineFile(instant, entry.name, entry.size, entry.modified_ms))
    return Timeline.of(files)


def container_record(data: bytes, path: str) -> Any:
    """The one record of an Avro container; raises FormatError naming ``path``."""
    import io

    import fastavro

    with decoding(path, "the Avro container"):
        records = list(fastavro.reader(io.BytesIO(data)))
        require(len(records) == 1, f"{len(records)} records where one must be")
        return records[0]


def _rolled_back(record: Any, path: str) -> list[str]:
    """The commits that a rollback (its metadata or plan) or restore undid; raises FormatError."""
    with decoding(path, "what it rolled back"):
        if "instantToRollback" in record:
            return [str(record["instantToRollback"]["commitTime"])]
        nested = record.get("hoodieRestoreMetadata") or {}
        parts = [record, *(one for many in nested.values() for one in many)]
        return [str(time) for part in parts for time in part.get("commitsRollback") or ()]


def _slices(
    table: MetadataTable, partition: str, entries: Iterable[Listed]
) -> tuple[FileSlice, ...]:
    bases: dict[str, dict[str, tuple[str, int]]] = {}
    logs: dict[str, list[tuple[tuple[str, int, tuple[int, ...]], LogFile]]] = {}
    for entry in entries:
        if found := _BASE.fullmatch(entry.name):
            bases.setdefault(found["group"], {})[found["instant"]] = (entry.name, entry.size)
        elif found := _LOG.fullmatch(entry.name):
            version = int(found["version"])
            token = tuple(map(int, found["token"].split("-")))
            log = LogFile(name=entry.name, instant=found["instant"], version=version)
            order = (log.instant, version, token)
            logs.setdefault(found["group"], []).append((order, log))
    return tuple(
        _newest_slice(
            table,
            (partition, group),
            bases.get(group, {}),
            [log for _order, log in sorted(logs.get(group, []), key=lambda pair: pair[0])],
        )
        for group in sorted(bases.keys() | logs.keys())
    )


def _newest_slice(
    table: MetadataTable,
    where: tuple[str, str],
    bases: Mapping[str, tuple[str, int]],
    logs: Sequence[LogFile],
) -> FileSlice:
    """The slice a reader merges: the newest committed base file and every log since.

    Logs of a slice that a pending compaction opened belong to it too
    (getLatestMergedFileSliceBeforeOrOn).
    """
    committed = [instant for instant in bases if table.is_written(instant)]
    start = max(committed, default="")
    since = [log for log in logs if _since(table, log, start)]
    times = [*committed, table.compaction_of(*where)]
    if table.version < EIGHT:
        times += [log.instant for log in logs]
    newest = max(times, default="")
    same = [log.version for log in logs if log.instant == newest]
    return FileSlice(
        partition=where[0],
        group=where[1],
        base=bases[start] if start else None,
        logs=tuple(since),
        newest=newest,
        next_version=max(same, default=0) + 1,
    )


def _since(table: MetadataTable, log: LogFile, start: str) -> bool:
    """Whether a log belongs to the slice of base instant ``start`` or to a later one.

    Version 6 names logs after their slice; later versions go by completion time, and a log of an
    instant that is not completed is no part of any slice.
    """
    if table.version < EIGHT:
        return log.instant >= start
    completed = table.completed.get(log.instant)
    if completed is None and table.is_written(log.instant):
        completed = log.instant  # archived: all that is left of it is its requested time
    return completed is not None and completed >= start
