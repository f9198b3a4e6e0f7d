"""Read past writes and past clusterings from the timeline's commit files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FormatError, StorageError
from reconciler.hudi.load import instant_file_path, load_properties, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.declared_schema import find_declared_schema
from reconciler.hudi.timeline.instant import COMMITS, Action, State
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.hudi.timeline.write_stats import WriteStats
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.spec.model import TableSpec
from reconciler.state.clustering_layout import (
    EXECUTOR_KEY,
    HUDI_EXECUTOR,
    LAYOUT_KEY,
    ClusteringLayout,
    PastClustering,
)
from reconciler.state.model import PLAN_DIGEST, TableState
from reconciler.storage.api import Storage

_CLUSTER: Final = "CLUSTER"
_SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHistory:
    """The newest completed writes and all completed clusterings, oldest first.

    ``schema``: the table's Avro schema from the newest of ``written`` that has it.
    """

    written: tuple[PastWrite, ...]
    clusterings: tuple[PastClustering, ...]
    schema: str | None = None


def read_write_history(
    storage: Storage, properties: TableProperties, timeline: Timeline, *, newest: int = 20
) -> WriteHistory:
    """Return the newest completed writes and every completed clustering of the active timeline.

    Reads one file per write and two per clustering. Raises FormatError, StorageError, and
    NotFoundError if the timeline has changed since it was listed.
    """
    return _HistoryReader(storage, properties, timeline).read_history(newest)


def read_newest_writes(
    storage: Storage, properties: TableProperties, timeline: Timeline, *, newest: int = 10
) -> tuple[PastWrite, ...]:
    """Return the newest completed writes, oldest first. Raises like ``read_write_history``."""
    return _HistoryReader(storage, properties, timeline).read_newest(newest)


def read_known_writes(
    storage: Storage, spec: TableSpec, state: TableState
) -> tuple[PastWrite, ...]:
    """Return the newest writes that can be read, if the spec declares what files they should make.

    They are in the state already where planning needed them.
    """
    if state.clustering_facts is not None:
        return state.clustering_facts.written
    if spec.files is None:
        return ()
    try:
        return read_newest_writes(storage, load_properties(storage), state.timeline)
    except (FormatError, StorageError):
        return ()  # the timeline changed meanwhile, or a write is damaged


@dataclass(frozen=True, slots=True)
class _HistoryReader:
    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def read_history(self, newest: int) -> WriteHistory:
        done = self._completed_commits()
        recent = done[max(len(done) - newest, 0) :]
        read = {entry: self._read_stats(entry) for entry in recent}
        schemas = (find_declared_schema(s.operation, s.extra) for s in reversed(read.values()))
        replacing = [entry for entry in done if entry.instant.action is Action.REPLACECOMMIT]
        return WriteHistory(
            written=tuple(_build_written(entry, read[entry]) for entry in recent),
            clusterings=tuple(self._past_clusterings(replacing, read)),
            schema=next((schema for schema in schemas if schema), None),
        )

    def read_newest(self, newest: int) -> tuple[PastWrite, ...]:
        done = self._completed_commits()
        recent = done[max(len(done) - newest, 0) :]
        return tuple(_build_written(entry, self._read_stats(entry)) for entry in recent)

    def _completed_commits(self) -> list[TimelineFile]:
        return [
            entry
            for entry in self.timeline.entries
            if entry.instant.is_completed and entry.instant.action in COMMITS
        ]

    def _past_clusterings(
        self, replacing: Iterable[TimelineFile], read: dict[TimelineFile, WriteStats]
    ) -> Iterable[PastClustering]:
        for entry in replacing:
            stats = read[entry] if entry in read else self._read_stats(entry)
            if (stats.operation or "").upper() == _CLUSTER:
                yield self._past_clustering(entry, stats)

    def _past_clustering(self, entry: TimelineFile, stats: WriteStats) -> PastClustering:
        """Return a completed clustering; if Hudi executed it for us, from its plan."""
        time = entry.instant.requested
        if LAYOUT_KEY in stats.extra:
            layout = ClusteringLayout.parse(stats.extra[LAYOUT_KEY], self._path(entry))
            return PastClustering(instant=time, layout=layout, extra=stats.extra)
        requested = self.timeline.find_file(
            time, Action.CLUSTERING, State.REQUESTED
        ) or self.timeline.find_file(time, Action.REPLACECOMMIT, State.REQUESTED)
        if requested is None:
            return PastClustering(instant=time, layout=None, extra=stats.extra)
        plan = RequestedReplace.parse(self._read_data(requested), self._path(requested))
        # if another writer executed a plan that was ours to execute, its result is unknown
        if plan.extra.get(EXECUTOR_KEY) == HUDI_EXECUTOR and LAYOUT_KEY in plan.extra:
            layout = ClusteringLayout.parse(plan.extra[LAYOUT_KEY], self._path(requested))
            return PastClustering(instant=time, layout=layout, extra=plan.extra)
        named = plan.strategy.get(_SORT_COLUMNS, "").split(",")
        columns = tuple(name.strip() for name in named if name.strip())
        return PastClustering(
            instant=time, layout=ClusteringLayout(columns=columns), extra=stats.extra
        )

    def _read_stats(self, entry: TimelineFile) -> WriteStats:
        return WriteStats.parse(self._read_data(entry), self._path(entry))

    def _read_data(self, file: TimelineFile) -> bytes:
        return read_instant_file(self.storage, self.properties, file)

    def _path(self, file: TimelineFile) -> str:
        return instant_file_path(self.properties, file)


def _build_written(entry: TimelineFile, stats: WriteStats) -> PastWrite:
    return PastWrite(
        instant=entry.instant.requested,
        action=entry.instant.action,
        rows=stats.rows,
        bytes=stats.bytes,
        is_base=stats.is_base,
        operation=stats.operation,
        is_ours=PLAN_DIGEST in stats.extra,
        inserts=stats.count_new_rows(),
    )
