"""Read the pending writes of other writers, and pending rollbacks, to tell which are left behind.

Source: HoodieHeartbeatClient, MarkerBasedRollbackUtils, MarkerUtils.readTimelineServerBasedMarkers-
FromFileSystem.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import FormatError
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_heartbeat_owner, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import parse_updated_slices
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State
from reconciler.hudi.timeline.markers import (
    APPEND,
)
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.rollback import RollbackPlan
from reconciler.lazy_dataclass import dataclass
from reconciler.state.marker_folder import read_markers
from reconciler.state.model import ForeignWrite, PendingRollback
from reconciler.state.timeline_reader import ProcessCheck
from reconciler.storage.api import Storage, StorageEntry
from reconciler.storage.paths import list_if_exists

#: what a write with row-level log files is called in version 6
_SHARED_LOGS: Final = "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class FailedWritesReader:
    """Reads what tells whether pending writes and rollbacks of other writers are left behind."""

    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def list_writes(self, others: Collection[str]) -> tuple[Instant, ...]:
        """Return the pending writes of rows without ``others``, which are clusterings and ours."""
        pending = self.timeline.pending(COMMITS)
        return tuple(instant for instant in pending if instant.requested not in others)

    def list_clusterings(self, times: Collection[str]) -> tuple[Instant, ...]:
        """Return the pending clusterings of some times."""
        pending = self.timeline.pending({Action.CLUSTERING, Action.REPLACECOMMIT})
        return tuple(instant for instant in pending if instant.requested in times)

    def list_compactions(self) -> tuple[Instant, ...]:
        """Return the pending compactions and log compactions."""
        return self.timeline.pending({Action.COMPACTION, Action.LOGCOMPACTION})

    def read_writes(
        self, instants: Sequence[Instant], unlisted: Sequence[tuple[str, str, int]] = ()
    ) -> tuple[ForeignWrite, ...]:
        """Read the pending writes of other writers among ``instants``; skips those of reconciler.

        ``unlisted``: folder, name and size of files outside of partitions. Raises StorageError.
        """
        if not instants:
            return ()
        beats = self._list_heartbeats()
        return tuple(
            self._read_write(instant, beats, unlisted)
            for instant in instants
            if self._find_owner(instant, beats) is None
        )

    def read_services(
        self,
        instants: Sequence[Instant],
        check_process: ProcessCheck | None,
        unlisted: Sequence[tuple[str, str, int]] = (),
    ) -> tuple[ForeignWrite, ...]:
        """Read pending table services of other writers, also those that a run of ours finishes.

        ``unlisted``: as for ``read_writes``. Raises StorageError.
        """
        if not instants or check_process is None:
            return ()
        beats = self._list_heartbeats()
        found = []
        for instant in instants:
            owner = self._find_owner(instant, beats)
            if owner is None:
                found.append(self._read_write(instant, beats, unlisted))
                continue
            write = self._read_write(instant, {}, unlisted)
            found.append(
                replace(
                    write,
                    beat_ms=beats[instant.requested].modified_ms,
                    owner=owner,
                    is_running=check_process(owner),
                )
            )
        return tuple(found)

    def _find_owner(self, instant: Instant, beats: Mapping[str, StorageEntry]) -> Owner | None:
        """Return the run of reconciler whose heartbeat an instant has, None if there is none."""
        beat = beats.get(instant.requested)
        has_text = beat is not None and beat.size
        return load_heartbeat_owner(self.storage, instant.requested) if has_text else None

    def _read_write(
        self,
        instant: Instant,
        beats: Mapping[str, StorageEntry],
        unlisted: Sequence[tuple[str, str, int]],
    ) -> ForeignWrite:
        time = instant.requested
        beat = beats.get(time)
        folder = read_markers(self.storage, time)
        logs: tuple[tuple[str, str], ...] = ()
        slices: frozenset[tuple[str, str, str]] = frozenset()
        problem = None
        if self._has_shared_logs:
            logs = tuple((path, name) for path, name, kind in folder.markers if kind == APPEND)
            slices, problem = self._read_profile(instant)
            if problem is not None and folder.markers and not folder.damage:
                problem = None  # the markers name every log file
        mark = f"_{time}."
        return ForeignWrite(
            instant=time,
            action=instant.action,
            state=instant.state.value,
            active_ms=max(
                self._find_change(instant), folder.modified_ms, beat.modified_ms if beat else 0
            ),
            beat_ms=None if beat is None else beat.modified_ms,
            unlisted=tuple(file for file in unlisted if mark in file[1]),
            marked_logs=logs,
            updated_slices=slices,
            problem=problem,
        )

    @property
    def _has_shared_logs(self) -> bool:
        return (
            self.properties.table_version < LOGS_BY_COMPLETION
            and self.properties.table_type == _SHARED_LOGS
        )

    def _read_profile(self, instant: Instant) -> tuple[frozenset[tuple[str, str, str]], str | None]:
        """Return the slices that a write updates, or why they are not known."""
        file = self.timeline.find_file(instant.requested, instant.action, State.INFLIGHT)
        if file is None:
            return frozenset(), None
        try:
            return parse_updated_slices(
                *read_instant_file(self.storage, self.properties, file)
            ), None
        except FormatError as damage:
            return frozenset(), str(damage)

    def read_rollbacks(self, check_process: ProcessCheck) -> tuple[PendingRollback, ...]:
        """Read the pending rollbacks, oldest first. Raises StorageError."""
        pending = self.timeline.pending({Action.ROLLBACK})
        if not pending:
            return ()
        beats = self._list_heartbeats()
        return tuple(self._read_rollback(instant, beats, check_process) for instant in pending)

    def _read_rollback(
        self, instant: Instant, beats: Mapping[str, StorageEntry], check_process: ProcessCheck
    ) -> PendingRollback:
        time = instant.requested
        plan, problem = self._read_plan(instant)
        beat = beats.get(time)
        owner = load_heartbeat_owner(self.storage, time) if beat and beat.size else None
        return PendingRollback(
            instant=time,
            state=instant.state.value,
            active_ms=max(self._find_change(instant), beat.modified_ms if beat else 0),
            plan=plan,
            problem=problem,
            owner=owner,
            is_running=check_process(owner) if owner else None,
        )

    def _read_plan(self, instant: Instant) -> tuple[RollbackPlan | None, str | None]:
        file = self.timeline.find_file(instant.requested, Action.ROLLBACK, State.REQUESTED)
        if file is None:
            return None, "its requested file is missing"
        try:
            plan = RollbackPlan.parse(*read_instant_file(self.storage, self.properties, file))
        except FormatError as damage:
            return None, str(damage)
        return plan, None

    def _find_change(self, instant: Instant) -> int:
        """Return when the newest timeline file of an instant was written."""
        key = (instant.requested, instant.action)
        files = (f for f in self.timeline.files if (f.instant.requested, f.instant.action) == key)
        return max((file.modified_ms for file in files), default=0)

    def _list_heartbeats(self) -> dict[str, StorageEntry]:
        listed = list_if_exists(self.storage, HEARTBEAT_FOLDER)
        return {entry.name: entry for entry in listed if not entry.is_folder}
