"""The payloads of the timeline that planners need, as values of the state.

Only what is asked for is read: a commit's statistics may be large, and most plans need none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FormatError
from reconciler.hudi.clean import CleanerPlan, CleanMetadata
from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.clustering_plan import ClusteringPlan
from reconciler.hudi.commit import CommitMetadata
from reconciler.hudi.compaction import CompactionPlan
from reconciler.hudi.instant import COMMITS, Action, Instant, State
from reconciler.hudi.load import instant_path, read_instant_file
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.rollback import rolls_back
from reconciler.hudi.savepoint import SavepointMetadata
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.state.model import (
    ClusteringInput,
    CompactionOperation,
    CompletedClean,
    PendingClean,
    PendingClustering,
    Savepoint,
)
from reconciler.storage.api import Storage

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


@dataclass(frozen=True, slots=True)
class Reader:
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

    def pending_clusterings(self) -> tuple[PendingClustering, ...]:
        found = []
        for instant in self.timeline.pending({Action.CLUSTERING, Action.REPLACECOMMIT}):
            data, path = self._requested(instant)
            if instant.action is Action.REPLACECOMMIT and not data:
                continue  # an insert_overwrite of an old writer: it names no slices
            if RequestedReplace.parse(data, path).is_clustering:
                found.append(
                    PendingClustering(
                        instant=instant.requested,
                        state=instant.state.value,
                        started_ms=self._started_ms(instant),
                        plan=ClusteringPlan.parse(data, path),
                    )
                )
        return tuple(found)

    def rolled_back(self) -> frozenset[str]:
        """What pending rollbacks are going to undo; one whose plan is not there says nothing."""
        found = set()
        for instant in self.timeline.pending({Action.ROLLBACK}):
            file = self.timeline.file(instant.requested, instant.action, State.REQUESTED)
            data = b"" if file is None else self._data(file)
            if file is not None and data:
                found.add(rolls_back(data, self._path(file)))
        return frozenset(found)

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
                planned=self._planned(time),
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

    def _planned(self, time: str) -> Mapping[str, tuple[str, ...]]:
        """What a clean meant to delete; nothing where its plan is gone or cannot be decoded."""
        requested = self.timeline.file(time, Action.CLEAN, State.REQUESTED)
        if requested is None:
            return {}
        try:
            return CleanerPlan.parse(self._data(requested), self._path(requested)).files
        except FormatError:
            return {}

    def pending_cleans(self) -> tuple[PendingClean, ...]:
        return tuple(
            self._pending_clean(entry)
            for entry in self._entries({Action.CLEAN})
            if not entry.instant.is_completed
        )

    def _pending_clean(self, entry: TimelineFile) -> PendingClean:
        time = entry.instant.requested
        started_ms = self._started_ms(entry.instant)
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

    def _started_ms(self, pending: Instant) -> int:
        """When the newest file of an instant was written."""
        key = (pending.requested, pending.action)
        files = (f for f in self.timeline.files if (f.instant.requested, f.instant.action) == key)
        return max(file.modified_ms for file in files)

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


def clustering_inputs(pending: Iterable[PendingClustering]) -> tuple[ClusteringInput, ...]:
    """Every slice that a pending clustering has in hand."""
    return tuple(
        ClusteringInput(
            instant=one.instant,
            partition=given.partition,
            file_id=given.file_id,
            base_file=given.base_file,
            log_files=given.log_files,
        )
        for one in pending
        for group in one.plan.groups
        for given in group.slices
    )
