"""Past writes and past clusterings, read from the timeline's commit files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.declared import declared_schema
from reconciler.hudi.instant import COMMITS, Action, State
from reconciler.hudi.load import instant_path, read_instant_file
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.hudi.write_stats import WriteStats
from reconciler.sizing.history import Written
from reconciler.state.layout import BY_HUDI, EXECUTOR, LAYOUT, Layout, PastClustering
from reconciler.state.model import PLAN_DIGEST
from reconciler.storage.api import Storage

_CLUSTER: Final = "CLUSTER"
_SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """``written``: the newest completed writes, oldest first. ``clusterings``: likewise, all.

    ``schema``: the table's Avro schema by the newest of ``written`` that declares it.
    """

    written: tuple[Written, ...]
    clusterings: tuple[PastClustering, ...]
    schema: str | None = None


def read_history(
    storage: Storage, properties: TableProperties, timeline: Timeline, *, newest: int = 20
) -> History:
    """The newest completed writes, and every completed clustering of the active timeline.

    Reads one file a write and two a clustering. Raises FormatError, StorageError; NotFoundError
    where the timeline has moved on since it was listed.
    """
    return _Reading(storage, properties, timeline).history(newest)


def read_written(
    storage: Storage, properties: TableProperties, timeline: Timeline, *, newest: int = 10
) -> tuple[Written, ...]:
    """The newest completed writes, oldest first; reads one file each and raises as above."""
    return _Reading(storage, properties, timeline).written(newest)


@dataclass(frozen=True, slots=True)
class _Reading:
    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def history(self, newest: int) -> History:
        done = self._done()
        recent = done[max(len(done) - newest, 0) :]
        read = {entry: self._stats(entry) for entry in recent}
        schemas = (declared_schema(s.operation, s.extra) for s in reversed(read.values()))
        replacing = [entry for entry in done if entry.instant.action is Action.REPLACECOMMIT]
        return History(
            written=tuple(_written(entry, read[entry]) for entry in recent),
            clusterings=tuple(self._clusterings(replacing, read)),
            schema=next((schema for schema in schemas if schema), None),
        )

    def written(self, newest: int) -> tuple[Written, ...]:
        done = self._done()
        recent = done[max(len(done) - newest, 0) :]
        return tuple(_written(entry, self._stats(entry)) for entry in recent)

    def _done(self) -> list[TimelineFile]:
        return [
            entry
            for entry in self.timeline.entries
            if entry.instant.is_completed and entry.instant.action in COMMITS
        ]

    def _clusterings(
        self, replacing: Iterable[TimelineFile], read: dict[TimelineFile, WriteStats]
    ) -> Iterable[PastClustering]:
        for entry in replacing:
            stats = read[entry] if entry in read else self._stats(entry)
            if (stats.operation or "").upper() == _CLUSTER:
                yield self._clustering(entry, stats)

    def _clustering(self, entry: TimelineFile, stats: WriteStats) -> PastClustering:
        """What a completed clustering was; of those that we had Hudi execute the plan knows."""
        time = entry.instant.requested
        if LAYOUT in stats.extra:
            layout = Layout.parse(stats.extra[LAYOUT], self._path(entry))
            return PastClustering(instant=time, layout=layout, extra=stats.extra)
        asked = self.timeline.file(time, Action.CLUSTERING, State.REQUESTED) or self.timeline.file(
            time, Action.REPLACECOMMIT, State.REQUESTED
        )
        if asked is None:
            return PastClustering(instant=time, layout=None, extra=stats.extra)
        plan = RequestedReplace.parse(self._data(asked), self._path(asked))
        # a plan that we were to execute and another writer did says nothing of what came of it
        if plan.extra.get(EXECUTOR) == BY_HUDI and LAYOUT in plan.extra:
            layout = Layout.parse(plan.extra[LAYOUT], self._path(asked))
            return PastClustering(instant=time, layout=layout, extra=plan.extra)
        named = plan.strategy.get(_SORT_COLUMNS, "").split(",")
        columns = tuple(name.strip() for name in named if name.strip())
        return PastClustering(instant=time, layout=Layout(columns=columns), extra=stats.extra)

    def _stats(self, entry: TimelineFile) -> WriteStats:
        return WriteStats.parse(self._data(entry), self._path(entry))

    def _data(self, file: TimelineFile) -> bytes:
        return read_instant_file(self.storage, self.properties, file)

    def _path(self, file: TimelineFile) -> str:
        return instant_path(self.properties, file)


def _written(entry: TimelineFile, stats: WriteStats) -> Written:
    return Written(
        instant=entry.instant.requested,
        action=entry.instant.action,
        rows=stats.rows,
        bytes=stats.bytes,
        is_base=stats.is_base,
        operation=stats.operation,
        is_ours=PLAN_DIGEST in stats.extra,
        inserts=stats.new_rows(),
    )
