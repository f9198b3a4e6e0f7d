"""Look at a table and write down what is there: the only reader of the world.

One listing of the timeline, one of the files, and of the timeline's files only those that a planner
needs: replacecommits, cleans, savepoints, pending plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal
from zoneinfo import ZoneInfo

import numpy as np

from reconciler.errors import BlockedError, FormatError, NotFoundError, StorageError
from reconciler.hudi.clean import CleanerPlan, CleanMetadata
from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.commit import CommitMetadata
from reconciler.hudi.compaction import CompactionPlan
from reconciler.hudi.files import FileKind, Files
from reconciler.hudi.instant import COMMITS, Action, Instant, State
from reconciler.hudi.load import (
    Listing,
    archived_completions,
    files_of_listing,
    instant_path,
    load_listing,
    load_metadata_listing,
    load_properties,
    load_timeline,
    read_instant_file,
)
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.savepoint import SavepointMetadata
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.spec.model import TableSpec
from reconciler.state.model import (
    ClusteringInput,
    CompactionOperation,
    CompletedClean,
    PendingClean,
    Savepoint,
    TableState,
)
from reconciler.storage.api import Storage

_ATTEMPTS: Final = 4
#: the first table version whose log files are attributed by completion time
_BY_COMPLETION: Final = 8
#: 1.2's incremental scan skips what these operations only inserted (CleanPlanner)
_INSERTING: Final = frozenset(
    {
        "UPSERT",
        "UPSERT_PREPPED",
        "INSERT",
        "INSERT_PREPPED",
        "BULK_INSERT",
        "BULK_INSERT_PREPPED",
    }
)

ListingSource = Literal["storage", "metadata"]


def observe(
    storage: Storage,
    spec: TableSpec | None,
    *,
    observed_ms: int,
    listing: ListingSource = "storage",
) -> TableState:
    """The table as it is now. ``spec`` says how much has to be read (None: a full scan's share).

    ``listing``: where names and sizes of files come from. A timeline that moves while it is read is
    read again, a few times. Raises FormatError, UnsupportedError, StorageError; BlockedError while
    a restore is pending: the table is in pieces then.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _Look(storage, spec, observed_ms, listing).state()
        except NotFoundError as moved:
            if attempt == _ATTEMPTS:
                raise StorageError(
                    moved.path,
                    "went away again and again while the table was read; its writers are busy: "
                    "run again",
                ) from None
    raise AssertionError


@dataclass(frozen=True, slots=True)
class _Look:
    """One attempt to read a table."""

    storage: Storage
    spec: TableSpec | None
    observed_ms: int
    listing: ListingSource

    def state(self) -> TableState:
        properties = load_properties(self.storage)
        timeline = load_timeline(self.storage, properties)
        _refuse_restore(timeline)
        metadata = load_metadata_listing(self.storage, properties, timeline)
        known = metadata.partitions if metadata else ()
        if self.listing == "metadata" and metadata is not None:
            listed = Listing(
                files=files_of_listing(metadata, properties), metafile_partitions=frozenset(known)
            )
        else:
            listed = load_listing(self.storage, properties, known)
        reader = _Reader(self.storage, properties, timeline)
        cleans = reader.completed_cleans()
        zone = _zone(properties, self.spec)
        return TableState(
            location=self.storage.location,
            table_name=properties.table_name,
            table_type=properties.table_type,
            table_version=properties.table_version,
            layout=properties.layout,
            timezone=properties.timezone,
            partition_fields=properties.partition_fields,
            metadata_partitions=properties.metadata_partitions,
            properties=properties.raw,
            timeline=timeline,
            files=listed.files,
            partitions=tuple(sorted(known if metadata else listed.metafile_partitions)),
            metafile_partitions=listed.metafile_partitions,
            stray_partitions=listed.stray_partitions,
            savepoints=reader.savepoints(),
            compactions=reader.compactions(),
            clusterings=reader.clusterings(),
            replaced=reader.replaced(),
            cleans=cleans,
            pending_cleans=reader.pending_cleans(),
            touched=self._touched(reader, cleans),
            completions=self._completions(properties, timeline, listed.files, zone),
            v6_completions=_v6_completions(properties, timeline, zone),
            observed_ms=self.observed_ms,
        )

    def _touched(
        self, reader: _Reader, cleans: tuple[CompletedClean, ...]
    ) -> Mapping[str, frozenset[str]] | None:
        """What an incremental scan wants: the partitions of commits since the last clean."""
        retention = self.spec.retention if self.spec else None
        if retention is None or retention.scan != "incremental" or not cleans:
            return None
        since = cleans[-1].earliest_instant_to_retain
        return reader.touched(since) if since.strip() else None

    def _completions(
        self, properties: TableProperties, timeline: Timeline, files: Files, zone: tzinfo
    ) -> Mapping[str, str]:
        """Completion times by requested time, archived ones too where a log file needs them."""
        if properties.table_version < _BY_COMPLETION:
            return {}
        found: dict[str, str] = {}
        for entry in timeline.entries:
            instant = entry.instant
            if instant.is_completed and instant.action in COMMITS:
                found[instant.requested] = instant.completed or _stamp(entry.modified_ms, zone)
        codes = np.unique(files.instant[files.kind != FileKind.BASE])
        of_logs = {files.instants[code] for code in codes.tolist()}
        active = {i.requested for i in timeline.writes}
        missing = of_logs - active
        return archived_completions(self.storage, properties, missing) | found


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the payloads that planners need."""

    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def savepoints(self) -> tuple[Savepoint, ...]:
        return tuple(self._savepoint(entry) for entry in self._entries({Action.SAVEPOINT}))

    def _savepoint(self, entry: TimelineFile) -> Savepoint:
        time = entry.instant.requested
        if not entry.instant.is_completed:
            return Savepoint(instant=time, completed=False, files=frozenset())
        pinned = SavepointMetadata.parse(self._data(entry), self._path(entry)).files
        names = frozenset(name for found in pinned.values() for name in found)
        return Savepoint(instant=time, completed=True, files=names)

    def compactions(self) -> tuple[CompactionOperation, ...]:
        found = []
        for instant in self.timeline.pending({Action.COMPACTION, Action.LOGCOMPACTION}):
            data, path = self._requested(instant)
            found += [
                CompactionOperation(
                    instant=instant.requested,
                    action=instant.action,
                    partition=operation.partition,
                    file_id=operation.file_id,
                    base_instant=operation.base_instant,
                )
                for operation in CompactionPlan.parse(data, path).operations
            ]
        return tuple(found)

    def clusterings(self) -> tuple[ClusteringInput, ...]:
        found = []
        for instant in self.timeline.pending({Action.CLUSTERING, Action.REPLACECOMMIT}):
            data, path = self._requested(instant)
            if instant.action is Action.REPLACECOMMIT and not data:
                continue  # an insert_overwrite of an old writer: it names no slices
            found += [
                ClusteringInput(
                    instant=instant.requested,
                    partition=given.partition,
                    file_id=given.file_id,
                    base_file=given.base_file,
                    log_files=given.log_files,
                )
                for given in RequestedReplace.parse(data, path).slices
            ]
        return tuple(found)

    def replaced(self) -> Mapping[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for entry in self._entries({Action.REPLACECOMMIT}):
            if entry.instant.is_completed:
                commit = CommitMetadata.parse(self._data(entry), self._path(entry), replaces=True)
                for partition, ids in commit.replaced.items():
                    found |= dict.fromkeys(
                        ((partition, file_id) for file_id in ids), entry.instant.requested
                    )
        return found

    def completed_cleans(self) -> tuple[CompletedClean, ...]:
        return tuple(
            self._completed_clean(entry)
            for entry in self._entries({Action.CLEAN})
            if entry.instant.is_completed
        )

    def _completed_clean(self, entry: TimelineFile) -> CompletedClean:
        data = self._data(entry)
        time = entry.instant.requested
        if not data:
            return CompletedClean(
                instant=time,
                is_blank=True,
                policy=None,
                earliest_instant_to_retain="",
                last_completed_commit="",
                savepointed=(),
                removed={},
                extra={},
            )
        found = CleanMetadata.parse(data, self._path(entry))
        savepointed = found.extra.get("savepointed_timestamps", "").split(",")
        return CompletedClean(
            instant=time,
            is_blank=False,
            policy=next((p.policy for p in found.partitions.values()), None),
            earliest_instant_to_retain=found.earliest,
            last_completed_commit=found.last_completed_commit,
            savepointed=tuple(t.strip() for t in savepointed if t.strip()),
            removed={path: p.deleted for path, p in found.partitions.items() if p.deleted},
            extra=found.extra,
        )

    def pending_cleans(self) -> tuple[PendingClean, ...]:
        return tuple(
            self._pending_clean(entry)
            for entry in self._entries({Action.CLEAN})
            if not entry.instant.is_completed
        )

    def _pending_clean(self, entry: TimelineFile) -> PendingClean:
        time = entry.instant.requested
        files = [
            file
            for file in self.timeline.files
            if (file.instant.requested, file.instant.action) == (time, Action.CLEAN)
        ]
        started_ms = max(file.modified_ms for file in files)
        state = entry.instant.state.value
        requested = self.timeline.file(time, Action.CLEAN, State.REQUESTED)
        if requested is None:
            problem = "its requested file is not there"
            return PendingClean(instant=time, state=state, started_ms=started_ms, problem=problem)
        try:
            plan = CleanerPlan.parse(self._data(requested), self._path(requested))
        except FormatError as error:
            problem = "its requested file is empty" if not requested.size else str(error)
            return PendingClean(instant=time, state=state, started_ms=started_ms, problem=problem)
        return PendingClean(
            instant=time,
            state=state,
            started_ms=started_ms,
            policy=plan.policy,
            earliest_instant_to_retain=plan.earliest,
            files=plan.files,
            delete_partitions=plan.delete_partitions,
            extra=plan.extra,
        )

    def touched(self, since: str) -> Mapping[str, frozenset[str]]:
        """Partitions by completed write at or after ``since``."""
        return {
            entry.instant.requested: self._partitions(entry)
            for entry in self._entries(COMMITS)
            if entry.instant.is_completed and entry.instant.requested >= since
        }

    def _partitions(self, entry: TimelineFile) -> frozenset[str]:
        commit = CommitMetadata.parse(self._data(entry), self._path(entry))
        is_plain = (
            self.properties.table_type == "COPY_ON_WRITE" and entry.instant.action is Action.COMMIT
        )
        if is_plain and (commit.operation or "").upper() in _INSERTING:
            return frozenset(path for path, updated in commit.written.items() if updated)
        return frozenset(commit.written) | frozenset(commit.replaced)

    def _entries(self, actions: Iterable[Action]) -> list[TimelineFile]:
        wanted = frozenset(actions)
        return [entry for entry in self.timeline.entries if entry.instant.action in wanted]

    def _requested(self, instant: Instant) -> tuple[bytes, str]:
        file = self.timeline.file(instant.requested, instant.action, State.REQUESTED)
        if file is None:
            missing = Instant(instant.requested, instant.action, State.REQUESTED).file_name
            raise FormatError(
                f"{self.properties.timeline_folder}/{missing}",
                f"is not there, although {instant.file_name} is",
                "restore it from a copy or roll the instant back with Hudi",
            )
        return self._data(file), self._path(file)

    def _data(self, file: TimelineFile) -> bytes:
        return read_instant_file(self.storage, self.properties, file)

    def _path(self, file: TimelineFile) -> str:
        return instant_path(self.properties, file)


def _refuse_restore(timeline: Timeline) -> None:
    for instant in timeline.pending({Action.RESTORE}):
        raise BlockedError(
            f"restore {instant.requested} is {instant.state.lower()}: the table is between two "
            "states until it is finished; finish it with Hudi (run the restore to the savepoint "
            "again), then plan anew"
        )


def _zone(properties: TableProperties, spec: TableSpec | None) -> tzinfo:
    """The zone of the timeline; UTC where only its writers know."""
    if properties.timezone == "UTC" or spec is None or spec.timezone is None:
        return UTC
    return ZoneInfo(spec.timezone)


def _v6_completions(
    properties: TableProperties, timeline: Timeline, zone: tzinfo
) -> Mapping[str, str]:
    """Completion times as Hudi 1.x reads version 6: when the completed file was written."""
    if properties.table_version >= _BY_COMPLETION:
        return {}
    return {
        entry.instant.requested: _stamp(entry.modified_ms, zone)
        for entry in timeline.entries
        if entry.instant.is_completed and entry.instant.action in COMMITS
    }


def _stamp(epoch_ms: int, zone: tzinfo) -> str:
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"
