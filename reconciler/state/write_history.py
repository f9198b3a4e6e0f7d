"""Read past writes and past clusterings from the timeline's commit files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

from reconciler.errors import FormatError, NotFoundError, StorageError
from reconciler.hudi.load import load_properties, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.commit import WriteStats
from reconciler.hudi.timeline.declared_schema import find_declared_schema
from reconciler.hudi.timeline.instant import COMMITS, Action, State
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.layout.sizing.file_group_sizes import measure_groups
from reconciler.layout.sizing.record_size import PastWrite, can_fit_size
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import TableSpec
from reconciler.state.clustering_facts import ReadWarning, RecentWrites
from reconciler.state.clustering_layout import (
    EXECUTOR_KEY,
    HUDI_EXECUTOR,
    LAYOUT_KEY,
    ClusteringLayout,
    PastClustering,
)
from reconciler.state.extra_metadata import PLAN_DIGEST, TOOL
from reconciler.state.flink_writers import has_flink_writers
from reconciler.state.footers import sample_footers
from reconciler.state.model import TableState
from reconciler.storage.api import Storage

#: number of writes to report on, as in a write's own estimate of record sizes
_NEWEST_WRITES: Final = 20
_CLUSTER: Final = "CLUSTER"
#: how options of Hudi's and Flink's writers begin
_OPTIONS: Final = ("hoodie.", "write.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHistory:
    """The newest completed writes and all completed clusterings, oldest first.

    ``schema``: the table's Avro schema from the newest of ``written`` that has it.
    """

    written: tuple[PastWrite, ...]
    clusterings: tuple[PastClustering, ...]
    schema: str | None = None


def read_write_history(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    *,
    newest: int = 20,
    max_bytes: int | None = None,
) -> WriteHistory:
    """Return the newest completed writes and every completed clustering of the active timeline.

    ``max_bytes``: bytes of the writes' files that are read at most; older writes are left out.
    Reads one file per write and two per clustering. Raises FormatError, StorageError, and
    NotFoundError if the timeline has changed since it was listed.
    """
    return _HistoryReader(storage, properties, timeline).read_history(newest, max_bytes)


def read_newest_writes(
    storage: Storage, properties: TableProperties, timeline: Timeline, *, newest: int = 10
) -> tuple[PastWrite, ...]:
    """Return the newest completed writes, oldest first. Raises like ``read_write_history``."""
    read = _HistoryReader(storage, properties, timeline).read_newest(newest)
    return tuple(_build_written(entry, stats) for entry, stats in read.items())


def read_known_writes(
    storage: Storage, spec: TableSpec, state: TableState
) -> tuple[PastWrite, ...]:
    """Return the newest writes that can be read, if the spec declares what files they should make.

    They are in the state already if planning needed them.
    """
    if state.clustering_facts is not None:
        return state.clustering_facts.written
    if spec.files is None:
        return ()
    try:
        return read_newest_writes(storage, load_properties(storage), state.timeline)
    except (FormatError, StorageError):
        return ()  # the timeline changed meanwhile, or a write is damaged


def add_recent_writes(
    storage: Storage, state: TableState, *, for_simulation: bool = False
) -> TableState:
    """Return the state with its newest writes, from the clustering facts or else from storage.

    ``for_simulation``: also look for writers of Flink, and read footers if the writes do not show
    record sizes. Reads one small file per write. Files that are damaged or archived meanwhile make
    a warning. Raises StorageError.
    """
    history = _read_newest(storage, state)
    if for_simulation:
        history = replace(history, has_flink_writers=has_flink_writers(storage))
    if for_simulation and not can_fit_size(history.newest):
        history = replace(history, footers=sample_footers(storage, measure_groups(state.view)))
    return state.with_facts(recent_writes=history)


def _read_newest(storage: Storage, state: TableState) -> RecentWrites:
    if state.clustering_facts is not None:
        return RecentWrites(newest=state.clustering_facts.written)
    try:
        properties = load_properties(storage)
        return RecentWrites(
            newest=read_newest_writes(storage, properties, state.timeline, newest=_NEWEST_WRITES)
        )
    except (FormatError, NotFoundError) as problem:
        because = f"recent writes and the size of a row are unknown: {problem}"
        return RecentWrites(warning=ReadWarning(rule="fileSizes", because=because))


@dataclass(frozen=True, slots=True)
class _HistoryReader:
    storage: Storage
    properties: TableProperties
    timeline: Timeline

    def read_history(self, newest: int, max_bytes: int | None) -> WriteHistory:
        read = self.read_newest(newest, max_bytes)
        schemas = (find_declared_schema(s.operation, s.extra) for s in reversed(read.values()))
        return WriteHistory(
            written=tuple(_build_written(entry, stats) for entry, stats in read.items()),
            clusterings=tuple(self._past_clusterings(read)),
            schema=next((schema for schema in schemas if schema), None),
        )

    def read_newest(
        self, newest: int, max_bytes: int | None = None
    ) -> dict[TimelineFile, WriteStats]:
        """Return the statistics of the newest writes, oldest first."""
        done = self.timeline.completed_files(COMMITS)
        start = max(len(done) - newest, 0)
        if max_bytes is not None:
            totals = accumulate(entry.size for entry in reversed(done))
            start = max(start, len(done) - sum(total <= max_bytes for total in totals))
        return {entry: self._read_stats(entry) for entry in done[start:]}

    def _past_clusterings(self, read: dict[TimelineFile, WriteStats]) -> Iterable[PastClustering]:
        for entry in self.timeline.completed_files({Action.REPLACECOMMIT}):
            stats = read[entry] if entry in read else self._read_stats(entry)
            if (stats.operation or "").upper() == _CLUSTER:
                yield self._past_clustering(entry, stats.extra)

    def _past_clustering(self, entry: TimelineFile, extra: Mapping[str, str]) -> PastClustering:
        """Return a completed clustering; if Hudi executed it for us, from its plan."""
        time, find_file = entry.instant.requested, self.timeline.find_file
        if LAYOUT_KEY in extra:
            path = f"{self.properties.timeline_folder}/{entry.name}"
            layout = ClusteringLayout.parse(extra[LAYOUT_KEY], path)
            return PastClustering(instant=time, layout=layout, extra=extra)
        actions = (Action.CLUSTERING, Action.REPLACECOMMIT)
        entries = (find_file(time, action, State.REQUESTED) for action in actions)
        requested = next(filter(None, entries), None)
        if requested is None:
            return PastClustering(instant=time, layout=None, extra=extra)
        data, path = read_instant_file(self.storage, self.properties, requested)
        plan = RequestedReplace.parse(data, path)
        # if another writer executed a plan that was ours to execute, its result is unknown
        if plan.extra.get(EXECUTOR_KEY) == HUDI_EXECUTOR and LAYOUT_KEY in plan.extra:
            layout = ClusteringLayout.parse(plan.extra[LAYOUT_KEY], path)
            return PastClustering(instant=time, layout=layout, extra=plan.extra)
        return PastClustering(
            instant=time, layout=ClusteringLayout(columns=plan.sort_columns), extra=extra
        )

    def _read_stats(self, entry: TimelineFile) -> WriteStats:
        return WriteStats.parse(*read_instant_file(self.storage, self.properties, entry))


def _build_written(entry: TimelineFile, stats: WriteStats) -> PastWrite:
    return PastWrite(
        instant=entry.instant.requested,
        action=entry.instant.action,
        rows=stats.rows,
        bytes=stats.bytes,
        is_base=stats.is_base,
        operation=stats.operation,
        is_ours=PLAN_DIGEST in stats.extra or TOOL in stats.extra,
        inserts=stats.count_new_rows(),
        partitions=stats.partitions,
        logged_inserts=int(stats.inserts[~stats.is_base].sum()),
        options={key: text for key, text in stats.extra.items() if key.startswith(_OPTIONS)},
    )
