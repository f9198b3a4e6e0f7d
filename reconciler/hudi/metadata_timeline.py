"""The metadata table's own timeline, and which instants' log blocks a reader may see.

``.hoodie/metadata`` is a merge-on-read Hudi table of HFiles. It is written before the data table's
instant completes, so a log block counts only once its instant is completed on the data table.
Source: HoodieTableMetadataUtil.getValidInstantTimestamps, AbstractHoodieLogRecordReader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi import avro
from reconciler.hudi.compaction import CompactionPlan
from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.schemaless import decoding
from reconciler.hudi.timeline import Timeline, TimelineFile

ROOT: Final = ".hoodie/metadata"
#: the first table version with layout 2 of the timeline
EIGHT: Final = 8
KNOWN_VERSIONS: Final = (6, 8, 9)

#: how the instants begin that made the metadata table
_SOLO: Final = "00000000000000"
#: version 6: digits of an instant with an operation's suffix, three more than the data table's
_SUFFIXED: Final = 20
_UNDOING: Final = frozenset({Action.ROLLBACK, Action.RESTORE})


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


@dataclass(frozen=True)
class MetadataTimeline:
    """``own``: the metadata table's active timeline; ``data``: the data table's."""

    source: Source
    version: int
    own: Timeline
    data: Timeline

    @property
    def folder(self) -> str:
        return _folder(f"{ROOT}/.hoodie", self.version)

    @cached_property
    def completed(self) -> Mapping[str, str]:
        """Completion times of its completed commits, by requested time (itself in version 6)."""
        return {i.requested: i.completed or i.requested for i in self.own.commits}

    def is_written(self, instant: str) -> bool:
        """Whether it is completed on the metadata table's own timeline, or archived there."""
        start = min(self.completed, default="")
        return instant in self.completed or (instant < start and instant not in self._pending)

    def is_visible(self, instant: str) -> bool:
        """Whether a reader may see the log blocks of an instant."""
        if self.version < EIGHT and not self.is_written(instant):
            return False
        if instant in self._valid:
            return True
        return instant not in self._unfinished and instant in self._undone

    def compaction_of(self, partition: str, group: str) -> str:
        """The pending compaction that opened a slice of the file group, ``""`` without one."""
        return self._compacting.get((partition, group), "")

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.own.instants if not i.is_completed)

    @cached_property
    def _unfinished(self) -> frozenset[str]:
        """The data table's pending instants."""
        return frozenset(i.requested for i in self.data.instants if not i.is_completed)

    @cached_property
    def _valid(self) -> frozenset[str]:
        """Instants whose blocks count: getValidInstantTimestamps without what was rolled back."""
        valid = {i.requested for i in self.data.instants if i.is_completed}
        for instant in self.own.completed({Action.DELTACOMMIT}):
            time = instant.requested
            own = len(time) == _SUFFIXED if self.version < EIGHT else time not in self._unfinished
            if own or time.startswith(_SOLO):
                valid.add(time)
        return frozenset(valid | {i.requested for i in self.own.completed(_UNDOING)})

    @cached_property
    def _undone(self) -> frozenset[str]:
        """What completed rollbacks and restores of the data table undid; read when first asked for.

        Their blocks count: the blocks of the rollback itself take back what they said.
        """
        folder = _folder(".hoodie", self.version)
        undone: set[str] = set()
        for instant in self.data.completed(_UNDOING):
            path = f"{folder}/{instant.file_name}"
            data = self.source.read(path)
            if data:
                undone.update(_rolled_back(data, instant.action, path))
            else:  # a crash can leave it empty; the plan says the same
                plan = replace(instant, state=State.REQUESTED, completed=None)
                path = f"{folder}/{plan.file_name}"
                undone.add(_to_roll_back(self.source.read(path), path))
        return frozenset(undone)

    @cached_property
    def _compacting(self) -> Mapping[tuple[str, str], str]:
        """The newest pending compaction of a (metadata partition, file group)."""
        found: dict[tuple[str, str], str] = {}
        for instant in self.own.pending({Action.COMPACTION}):
            plan = replace(instant, state=State.REQUESTED)
            path = f"{self.folder}/{plan.file_name}"
            for operation in CompactionPlan.parse(self.source.read(path), path).operations:
                found[operation.partition, operation.file_id] = instant.requested
        return found


def open_timeline(source: Source, *, version: int, data: Timeline) -> MetadataTimeline:
    """The timeline of the metadata table of a data table of this version.

    Raises UnsupportedError for a table version we have not proven; FormatError when the metadata
    table that the properties promise is not there.
    """
    if version not in KNOWN_VERSIONS:
        raise UnsupportedError(
            f"{ROOT}: the metadata table of table version {version} is unknown to this version of "
            f"reconciler; it knows {', '.join(map(str, KNOWN_VERSIONS))}"
        )
    folder = _folder(f"{ROOT}/.hoodie", version)
    try:
        entries = source.list(folder)
    except NotFoundError:
        raise FormatError(
            folder,
            f"a table of version {version} with a metadata table must have its timeline here",
            "let a Hudi writer rebuild the metadata table",
        ) from None
    return MetadataTimeline(source, version, _timeline(entries), data)


def _folder(hoodie: str, version: int) -> str:
    return f"{hoodie}/timeline" if version >= EIGHT else hoodie


def _timeline(entries: Iterable[Listed]) -> Timeline:
    files = []
    for entry in entries:
        instant = None if entry.is_folder else Instant.parse(entry.name)
        if instant is not None:
            files.append(TimelineFile(instant, entry.name, entry.size, entry.modified_ms))
    return Timeline.of(files)


def _rolled_back(data: bytes, action: Action, path: str) -> list[str]:
    """The commits that a completed rollback or restore undid; raises FormatError."""
    if action is Action.ROLLBACK:
        parts = [avro.decode(data, "HoodieRollbackMetadata", path)]
    else:
        restore = avro.decode(data, "HoodieRestoreMetadata", path)
        with decoding(path, "HoodieRestoreMetadata"):
            parts = [one for many in restore["hoodieRestoreMetadata"].values() for one in many]
    with decoding(path, "what it rolled back"):
        return [str(time) for part in parts for time in part["commitsRollback"]]


def _to_roll_back(data: bytes, path: str) -> str:
    """The commit that a planned rollback is to undo; raises FormatError."""
    plan = avro.decode(data, "HoodieRollbackPlan", path)
    with decoding(path, "HoodieRollbackPlan"):
        return str(plan["instantToRollback"]["commitTime"])
