"""What a table is right now: one frozen value that every planner reads and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.clustering_plan import ClusteringPlan
from reconciler.hudi.timeline.heartbeat import is_silent
from reconciler.hudi.timeline.instant import WRITES, Action, Instant
from reconciler.hudi.timeline.owner import Owner

if TYPE_CHECKING:
    from reconciler.state.clustering_facts import ClusteringFacts, RecentWrites
    from reconciler.state.index_state import IndexState
    from reconciler.state.sampling.model import ForecastInput

#: key of the extra metadata of our own instants: the digest of the plan
PLAN_DIGEST: Final = "reconciler.plans.digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A savepoint, also a half-made one (``completed`` False: its files are not known).

    ``files`` are file names of all partitions pooled, as Hudi matches them.
    """

    instant: str
    completed: bool
    files: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompactionGroup:
    """One file group in a pending compaction or log compaction plan."""

    instant: str
    action: Action
    partition: str
    file_id: str
    base_instant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClusteringSlice:
    """One slice named in a pending clustering plan; names only, the base None for log-only."""

    instant: str
    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedClean:
    """What a completed clean of the active timeline recorded.

    ``is_blank``: its file is empty (Hudi leaves such files after a crash) and says nothing; what it
    meant to delete is in ``planned`` then, where its plan is still there.
    ``removed`` maps a partition to the names it successfully deleted.
    """

    instant: str
    is_blank: bool
    policy: str | None
    earliest_instant_to_retain: str
    last_completed_commit: str
    savepointed: tuple[str, ...]
    removed: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str]
    planned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClean:
    """A requested or inflight clean. ``plan`` is None when its requested file cannot be decoded.

    ``problem`` then says why; ``started_ms`` is the newest modification time of its files.
    ``files`` maps a partition to the planned names.
    """

    instant: str
    state: str
    started_ms: int
    problem: str | None = None
    policy: str | None = None
    earliest_instant_to_retain: str | None = None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    delete_partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClustering:
    """A requested or inflight clustering; ``started_ms`` is as in ``PendingClean``."""

    instant: str
    state: str
    started_ms: int
    plan: ClusteringPlan

    @property
    def extra(self) -> Mapping[str, str]:
        """What its plan says of itself."""
        return self.plan.extra

    @property
    def is_ours(self) -> bool:
        """Whether an apply of this tool requested it."""
        return PLAN_DIGEST in self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrite:
    """A requested or inflight write of rows whose heartbeat says that it is ours.

    ``beat_ms``: its last beat, epoch milliseconds. ``is_running``: whether its process runs, None where
    nobody here can know. ``unlisted``: folder, name and size of files that it has written where no
    partition is yet; those in partitions are among the state's files. ``is_rolled_back``: a
    rollback of it is pending, which is another writer's.
    """

    instant: str
    action: Action
    state: str
    owner: Owner
    beat_ms: int
    is_running: bool | None = None
    unlisted: tuple[tuple[str, str, int], ...] = ()
    is_rolled_back: bool = False

    def is_dead(self, now_ms: int) -> bool:
        """Whether its run looks dead; whoever undoes it asks the clock of the store as well."""
        if self.owner.ended or self.is_running is False:
            return True
        return self.is_running is None and is_silent(self.beat_ms, now_ms)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableState:
    """A table at one moment.

    ``partitions``: what a full scan looks at, sorted ("" when not partitioned): the metadata
    table's list where it is live, else the folders that hold a partition metafile.
    ``stray_partitions``: folders that hold something that is none of Hudi's, so they stay.
    ``replaced``: (partition, file id) -> requested time of the completed replacecommit (greatest).
    ``touched_partitions``: completed commit -> partitions it wrote or replaced; loaded only for the window an
    incremental scan needs (None: not loaded).
    ``v6_completions``: version 6 only: requested time -> completion time derived from the
    modification time of the completed file, as Hudi 1.x reads it.
    ``observed_ms``: epoch milliseconds at which the listing began.
    ``clustering_facts``: what a clustering is judged by; None where the spec has no clustering block.
    ``index_state``: what is known of the index; None where the spec has no index block.
    ``forecast_input``: what predictions are made from; None where the spec has no queries, and before
    it was asked for.
    ``recent_writes``: what the files were written by; None where nobody looks at how big they are.
    ``read_pending_writes``: those of ours, oldest first; nothing where nobody asked whose they are.
    """

    location: str
    table_name: str
    table_type: str
    table_version: int
    layout: int
    timezone: str | None
    partition_fields: tuple[str, ...]
    metadata_partitions: tuple[str, ...]
    properties: Mapping[str, str]
    timeline: Timeline
    files: TableFiles
    partitions: tuple[str, ...]
    metafile_partitions: frozenset[str]
    stray_partitions: frozenset[str] = frozenset()
    savepoints: tuple[Savepoint, ...]
    compactions: tuple[PendingCompactionGroup, ...]
    clusterings: tuple[PendingClusteringSlice, ...]
    replaced: Mapping[tuple[str, str], str]
    cleans: tuple[CompletedClean, ...]
    pending_cleans: tuple[PendingClean, ...]
    touched_partitions: Mapping[str, frozenset[str]] | None
    completions: Mapping[str, str]
    v6_completions: Mapping[str, str]
    observed_ms: int
    clustering_facts: ClusteringFacts | None = None
    index_state: IndexState | None = None
    forecast_input: ForecastInput | None = None
    recent_writes: RecentWrites | None = None
    pending_clusterings: tuple[PendingClustering, ...] = ()
    pending_writes: tuple[PendingWrite, ...] = ()

    @property
    def foreign_writes(self) -> tuple[Instant, ...]:
        """Pending writes, without the clusterings that an apply of ours has left."""
        ours = {pending.instant for pending in self.pending_clusterings if pending.is_ours}
        return tuple(i for i in self.timeline.pending(WRITES) if i.requested not in ours)

    @property
    def is_partitioned(self) -> bool:
        return bool(self.partition_fields)

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def commits_timeline(self) -> tuple[Instant, ...]:
        """Hudi's completed commits timeline: deltacommits count on merge-on-read only."""
        if self.is_merge_on_read:
            return self.timeline.commits
        return tuple(i for i in self.timeline.commits if i.action is not Action.DELTACOMMIT)
