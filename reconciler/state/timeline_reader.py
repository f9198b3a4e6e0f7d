"""Read the payloads of the timeline that planners need.

Each payload is read only when it is needed: commit statistics may be large and most plans do not
need them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError
from reconciler.hudi.files.folder_names import FolderNames
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_heartbeat_owner, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.clean import CleanerPlan, CleanMetadata
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State
from reconciler.hudi.timeline.markers import APPEND
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import (
    ClusteringPlan,
    RequestedReplace,
    parse_compaction_plan,
    parse_rolled_back_time,
)
from reconciler.hudi.timeline.savepoint import SavepointMetadata
from reconciler.lazy_dataclass import dataclass
from reconciler.state.marker_folder import read_markers
from reconciler.state.model import (
    CompletedClean,
    PendingClean,
    PendingClustering,
    PendingClusteringSlice,
    PendingCompactionGroup,
    PendingWrite,
    Savepoint,
)
from reconciler.state.pending_compaction import PendingCompaction
from reconciler.state.savepoint_comment import format_unreadable
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists

#: returns whether an owner's process runs; None if that is unknown
ProcessCheck = Callable[[Owner], bool | None]

#: 1.2's incremental scan skips what these operations only inserted (CleanPlanner)
_INSERTING: Final = frozenset(
    f"{operation}{suffix}"
    for operation in ("UPSERT", "INSERT", "BULK_INSERT")
    for suffix in ("", "_PREPPED")
)

#: a file that was changed longer ago is no longer being written
_WRITING_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TimelineReader:
    """Reads the payloads that planners need."""

    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def read_savepoints(self) -> tuple[Savepoint, ...]:
        return tuple(map(self._read_savepoint, self._list_entries({Action.SAVEPOINT})))

    def _read_savepoint(self, entry: TimelineFile) -> Savepoint:
        """Return a savepoint; a half-made one of ours has its record in its inflight file.

        Hudi's are empty, so one that is cut off is of a run of ours that died while it wrote it.
        """
        time, is_completed = entry.instant.requested, entry.instant.is_completed
        if not is_completed and not entry.size:
            return Savepoint(instant=time, completed=False)
        try:
            made = SavepointMetadata.parse(*self._read(entry))
        except FormatError:
            if is_completed:
                raise
            return Savepoint(instant=time, completed=False, comment=format_unreadable(time))
        names = frozenset().union(*made.files.values()) if is_completed else frozenset()
        return Savepoint(
            instant=time,
            completed=is_completed,
            files=names,
            made_by=made.made_by,
            made_ms=made.made_ms,
            comment=made.comment,
        )

    def read_pending_compactions(
        self, check_process: ProcessCheck | None
    ) -> tuple[PendingCompaction, ...]:
        """Return the pending compactions and log compactions, oldest first.

        ``check_process``: None: nobody asks whether a run of reconciler works on one.
        """
        pending = self.timeline.pending({Action.COMPACTION, Action.LOGCOMPACTION})
        return tuple(self._read_compaction(instant, check_process) for instant in pending)

    def _read_compaction(
        self, instant: Instant, check_process: ProcessCheck | None
    ) -> PendingCompaction:
        operations, extra = parse_compaction_plan(*self._read_requested(instant))
        owner = None
        if check_process is not None:
            owner = load_heartbeat_owner(self.storage, instant.requested)
        return PendingCompaction(
            instant=instant.requested,
            action=instant.action,
            state=instant.state.value,
            started_ms=self._find_start(instant),
            operations=operations,
            extra=extra,
            owner=owner,
            is_running=check_process(owner) if check_process and owner else None,
        )

    def read_pending_clusterings(self) -> tuple[PendingClustering, ...]:
        clusterings = []
        for instant in self.timeline.pending({Action.CLUSTERING, Action.REPLACECOMMIT}):
            data, path = self._read_requested(instant)
            if instant.action is Action.REPLACECOMMIT and not data:
                continue  # an insert_overwrite of an old writer, which names no slices
            if RequestedReplace.parse(data, path).is_clustering:
                clusterings.append(
                    PendingClustering(
                        instant=instant.requested,
                        state=instant.state.value,
                        started_ms=self._find_start(instant),
                        plan=ClusteringPlan.parse(data, path),
                    )
                )
        return tuple(clusterings)

    def _read_rolled_back(self) -> frozenset[str]:
        """Return the instants that pending rollbacks undo; a rollback without a plan is ignored."""
        times = set()
        for instant in self.timeline.pending({Action.ROLLBACK}):
            file = self.timeline.find_file(instant.requested, instant.action, State.REQUESTED)
            data, path = (b"", "") if file is None else self._read(file)
            if data:
                times.add(parse_rolled_back_time(data, path))
        return frozenset(times)

    def read_replaced(self) -> Mapping[tuple[str, str], str]:
        replaced: dict[tuple[str, str], str] = {}
        for entry in self.timeline.completed_files({Action.REPLACECOMMIT}):
            commit = CommitMetadata.parse(*self._read(entry), replaces=True)
            for partition, ids in commit.replaced.items():
                replaced |= {(partition, file_id): entry.instant.requested for file_id in ids}
        return replaced

    def read_completed_cleans(self) -> tuple[CompletedClean, ...]:
        return tuple(map(self._read_completed_clean, self.timeline.completed_files({Action.CLEAN})))

    def _read_completed_clean(self, entry: TimelineFile) -> CompletedClean:
        data, path = self._read(entry)
        time = entry.instant.requested
        if not data:
            return CompletedClean(instant=time, is_blank=True, planned=self._read_planned(time))
        clean = CleanMetadata.parse(data, path)
        savepointed = clean.extra.get("savepointed_timestamps", "").split(",")
        return CompletedClean(
            instant=time,
            is_blank=False,
            policy=next((p.policy for p in clean.partitions.values()), None),
            earliest_instant_to_retain=clean.earliest_instant,
            last_completed_commit=clean.last_completed_commit,
            savepointed=tuple(t.strip() for t in savepointed if t.strip()),
            removed=FolderNames.build(
                {path: p.deleted for path, p in clean.partitions.items() if p.deleted}
            ),
            extra=clean.extra,
        )

    def _read_planned(self, time: str) -> Mapping[str, tuple[str, ...]]:
        """Return the files a clean planned to delete; none if its plan is missing or damaged."""
        requested = self.timeline.find_file(time, Action.CLEAN, State.REQUESTED)
        if requested is None:
            return {}
        try:
            return CleanerPlan.parse(*self._read(requested)).files
        except FormatError:
            return {}

    def read_pending_cleans(self) -> tuple[PendingClean, ...]:
        entries = self._list_entries({Action.CLEAN})
        pending = (entry for entry in entries if not entry.instant.is_completed)
        return tuple(map(self._read_pending_clean, pending))

    def _read_pending_clean(self, entry: TimelineFile) -> PendingClean:
        instant = entry.instant
        time, state, started_ms = instant.requested, instant.state.value, self._find_start(instant)
        clean = PendingClean(instant=time, state=state, started_ms=started_ms)
        requested = self.timeline.find_file(instant.requested, Action.CLEAN, State.REQUESTED)
        if requested is None:
            return replace(clean, problem="its requested file is missing")
        try:
            plan = CleanerPlan.parse(*self._read(requested))
        except FormatError as error:
            problem = "its requested file is empty" if not requested.size else str(error)
            return replace(clean, problem=problem)
        return replace(
            clean,
            policy=plan.policy,
            earliest_instant_to_retain=plan.earliest_instant,
            files=plan.files,
            delete_partitions=plan.delete_partitions,
            extra=plan.extra,
        )

    def _find_start(self, pending: Instant) -> int:
        """Return when the newest file of an instant was written."""
        key = (pending.requested, pending.action)
        files = (f for f in self.timeline.files if (f.instant.requested, f.instant.action) == key)
        return max(file.modified_ms for file in files)

    def read_touched(self, since: str) -> Mapping[str, frozenset[str]]:
        """Return the partitions of completed writes at or after ``since``."""
        return {
            entry.instant.requested: self._read_partitions(entry)
            for entry in self.timeline.completed_files(COMMITS, since)
        }

    def read_written_partitions(self) -> Mapping[str, frozenset[str]]:
        """Return the partitions that each completed write has written files to."""
        return {
            entry.instant.requested: frozenset(CommitMetadata.parse(*self._read(entry)).has_updates)
            for entry in self.timeline.completed_files(COMMITS)
        }

    def _read_partitions(self, entry: TimelineFile) -> frozenset[str]:
        commit = CommitMetadata.parse(*self._read(entry))
        is_plain = (
            self.properties.table_type == "COPY_ON_WRITE" and entry.instant.action is Action.COMMIT
        )
        if is_plain and (commit.operation or "").upper() in _INSERTING:
            return frozenset(path for path, updated in commit.has_updates.items() if updated)
        return frozenset(commit.has_updates) | frozenset(commit.replaced)

    def find_pending_writes(self, clusterings: Collection[str]) -> tuple[Instant, ...]:
        """Return pending instants that may be writes of reconciler, without ``clusterings``."""
        pending = self.timeline.pending(COMMITS)
        return tuple(instant for instant in pending if instant.requested not in clusterings)

    def read_pending_writes(
        self,
        pending: Iterable[Instant],
        check_process: ProcessCheck,
        unlisted: Sequence[tuple[str, str, int]],
    ) -> tuple[PendingWrite, ...]:
        """Return the pending instants that are writes of reconciler by their heartbeats.

        ``unlisted``: folder, name and size of files outside of partitions. Nothing is read from the
        store if no write is pending. Heartbeats of other tools are empty, so they are only listed.
        """
        instants = tuple(pending)
        listed = list_if_exists(self.storage, HEARTBEAT_FOLDER) if instants else ()
        entries = {entry.name: entry for entry in listed if not entry.is_folder}
        writes = []
        for instant in instants:
            entry = entries.get(instant.requested)
            if entry is None or not entry.size:
                continue
            owner = load_heartbeat_owner(self.storage, instant.requested)
            if owner is not None:
                mark = f"_{instant.requested}."
                write = PendingWrite(
                    instant=instant.requested,
                    action=instant.action,
                    state=instant.state.value,
                    owner=owner,
                    beat_ms=entry.modified_ms,
                    is_running=check_process(owner),
                    unlisted=tuple(file for file in unlisted if mark in file[1]),
                    logs=self._read_shared_logs(instant),
                )
                writes.append(write)
        undone = self._read_rolled_back() if writes else frozenset()
        return tuple(replace(write, is_rolled_back=write.instant in undone) for write in writes)

    def _read_shared_logs(self, instant: Instant) -> tuple[tuple[str, str], ...]:
        """Return log files of a write whose names do not tell it, by its markers."""
        if self.properties.table_version >= LOGS_BY_COMPLETION:
            return ()
        markers = read_markers(self.storage, instant.requested).markers
        return tuple((folder, name) for folder, name, kind in markers if kind == APPEND)

    def _list_entries(self, actions: Iterable[Action]) -> list[TimelineFile]:
        wanted = frozenset(actions)
        return [entry for entry in self.timeline.entries if entry.instant.action in wanted]

    def _read_requested(self, instant: Instant) -> tuple[bytes, str]:
        wanted = Instant(instant.requested, instant.action, State.REQUESTED)
        file = self.timeline.find_file(wanted.requested, wanted.action, wanted.state)
        if file is None:
            raise FormatError(
                f"{self.properties.timeline_folder}/{wanted.file_name}",
                f"is missing, although {instant.file_name} exists",
                "restore it from a copy or roll the instant back with Hudi",
            )
        return self._read(file)

    def _read(self, file: TimelineFile) -> tuple[bytes, str]:
        return read_instant_file(self.storage, self.properties, file)


def list_clustering_slices(
    pending: Iterable[PendingClustering],
) -> tuple[PendingClusteringSlice, ...]:
    """Return every slice of the plans of pending clusterings."""
    return tuple(
        PendingClusteringSlice(
            instant=clustering.instant,
            partition=given.partition,
            file_id=given.file_id,
            base_file=given.base_file,
            log_files=given.log_files,
        )
        for clustering in pending
        for group in clustering.plan.groups
        for given in group.slices
    )


def list_compaction_groups(
    pending: Iterable[PendingCompaction],
) -> tuple[PendingCompactionGroup, ...]:
    """Return every file group of the plans of pending compactions and log compactions."""
    return tuple(
        PendingCompactionGroup(
            instant=compaction.instant,
            action=compaction.action,
            partition=operation.partition,
            file_id=operation.file_id,
            base_instant=operation.base_instant,
        )
        for compaction in pending
        for operation in compaction.operations
    )


def is_being_written(storage: Storage, path: str, observed_ms: int) -> bool:
    """Return whether a damaged file may just be incomplete, because Hudi writes it in place.

    Source: HoodieStorage.createImmutableFileInPath, which uses a temporary name only on HDFS.
    """
    if not path.startswith(".hoodie/"):
        return False
    entry = storage.stat(path)
    return entry is None or entry.modified_ms > observed_ms - _WRITING_MS
