"""The state of a table at one moment, which is the only input of planners besides the spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView, build_view
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import HUDI_EXPIRES_AFTER_S, is_silent
from reconciler.hudi.timeline.instant import WRITES, Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import ClusteringPlan
from reconciler.hudi.timeline.rollback import RollbackPlan
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import Concurrency, DeclaredSavepoint, PendingServices
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.pending_compaction import PendingCompaction
from reconciler.state.savepoint_comment import parse_savepoint_comment

if TYPE_CHECKING:
    from reconciler.state.archival_facts import ArchivalFacts
    from reconciler.state.clustering_facts import ClusteringFacts, RecentWrites
    from reconciler.state.index_state import IndexState
    from reconciler.state.metadata_differences import MetadataVerification
    from reconciler.state.oldest_log import OldestLog
    from reconciler.state.orphan_facts import OrphanFacts
    from reconciler.state.sampling.model import ForecastInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A savepoint, also an incomplete one (``completed`` is False and its files are unknown).

    ``files``: file names of all partitions together, as Hudi matches them. ``made_by``, ``made_ms``
    (epoch milliseconds) and ``comment``: as recorded; of an incomplete one they are empty unless it
    is ours.
    """

    instant: str
    completed: bool
    files: frozenset[str] = frozenset()
    made_by: str = ""
    made_ms: int | None = None
    comment: str = ""

    @property
    def declared(self) -> DeclaredSavepoint | None:
        """Return what a spec declared it as; None if another tool or a person made it."""
        return parse_savepoint_comment(self.comment)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompactionGroup:
    """One file group of a pending compaction or log compaction plan."""

    instant: str
    action: Action
    partition: str
    file_id: str
    base_instant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClusteringSlice:
    """One slice of a pending clustering plan, by names; ``base_file`` is None if it has none."""

    instant: str
    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedClean:
    """The record of a completed clean of the active timeline.

    ``is_blank``: its file is empty, as Hudi leaves it after a crash; then ``planned`` has the files
    of its plan, if the plan still exists. ``removed``: deleted file names by partition.
    """

    instant: str
    is_blank: bool
    policy: str | None = None
    earliest_instant_to_retain: str = ""
    last_completed_commit: str = ""
    savepointed: tuple[str, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    planned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClean:
    """A requested or inflight clean.

    ``problem``: why its requested file cannot be decoded, or None. ``started_ms``: the newest
    modification time of its files. ``files``: planned file names by partition.
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
        """Return the extra metadata of its plan."""
        return self.plan.extra

    @property
    def is_ours(self) -> bool:
        """Return whether an apply of this tool requested it."""
        return PLAN_DIGEST in self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrite:
    """A requested or inflight write of rows that is ours by its heartbeat.

    ``beat_ms``: its last heartbeat, epoch milliseconds. ``is_running``: whether its process runs;
    None if unknown. ``unlisted``: folder, name and size of its files outside of partitions; those
    in partitions are in the state's files. ``is_rolled_back``: another writer's rollback of it is
    pending. ``logs``: folder and name of log files that its markers announce, before version 8.
    """

    instant: str
    action: Action
    state: str
    owner: Owner
    beat_ms: int
    is_running: bool | None = None
    unlisted: tuple[tuple[str, str, int], ...] = ()
    is_rolled_back: bool = False
    logs: tuple[tuple[str, str], ...] = ()

    def is_dead(self, now_ms: int) -> bool:
        """Return whether its process looks dead; a rollback also checks the store's clock."""
        if self.owner.ended or self.is_running is False:
            return True
        return self.is_running is None and is_silent(self.beat_ms, now_ms)


def find_heartbeat_timeout(limits: Concurrency) -> int:
    """Return the seconds without a heartbeat after which a writer with Hudi counts as dead."""
    declared = limits.heartbeat_timeout
    return HUDI_EXPIRES_AFTER_S if declared is None else declared


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignWrite:
    """A requested or inflight write of rows, clustering or compaction of another writer.

    ``beat_ms``: its last heartbeat; None if it has none. ``active_ms``: when the newest of its
    timeline files, markers and heartbeat was written; both epoch milliseconds. ``unlisted``: as in
    ``PendingWrite``. Only for merge-on-read tables of version 6, whose log files several writes
    share: ``marked_logs`` are partition and name of files that its markers announce,
    ``updated_slices`` are partition, file id and base instant by its workload profile, and
    ``problem`` tells why neither is known. Only for table services: ``owner`` is the run of
    reconciler that has begun to finish it, whose heartbeat does not count, and ``is_running``
    whether its process runs; None if unknown.
    """

    instant: str
    action: Action
    state: str
    active_ms: int
    beat_ms: int | None = None
    unlisted: tuple[tuple[str, str, int], ...] = ()
    marked_logs: tuple[tuple[str, str], ...] = ()
    updated_slices: frozenset[tuple[str, str, str]] = frozenset()
    problem: str | None = None
    owner: Owner | None = None
    is_running: bool | None = None

    def is_dead(self, now_ms: int, limits: Concurrency) -> bool:
        """Return whether its writer counts as dead.

        By its heartbeat, if there is one, as Hudi's writers judge each other; otherwise after
        ``staleAfter`` in which it changed nothing.
        """
        limit = limits.stale_after if self.beat_ms is None else find_heartbeat_timeout(limits)
        return is_silent(self.active_ms, now_ms, limit)


def is_abandoned(pending: ForeignWrite, now_ms: int, services: PendingServices) -> bool:
    """Return whether nobody is expected to finish a pending clustering or compaction.

    One that a dead run of reconciler has begun to finish is requested still: that run writes no
    inflight file, so such a file is of another writer, who may be at work.
    """
    if pending.owner is not None and not pending.owner.ended:
        if pending.is_running:
            return False
        if pending.is_running is None and not is_silent(pending.beat_ms or 0, now_ms):
            return False
    if pending.owner is not None and pending.state == State.REQUESTED:
        return True
    return is_silent(pending.active_ms, now_ms, services.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRollback:
    """A requested or inflight rollback, whoever began it.

    ``plan``: None if it cannot be decoded; ``problem`` tells why. ``active_ms``: as in
    ``ForeignWrite``. ``owner``: by its heartbeat, None for another writer's.
    """

    instant: str
    state: str
    active_ms: int
    plan: RollbackPlan | None = None
    problem: str | None = None
    owner: Owner | None = None
    is_running: bool | None = None

    @property
    def started_ms(self) -> int:
        return self.active_ms

    @property
    def extra(self) -> Mapping[str, str]:
        """Return no extra metadata: the plan of a rollback has none."""
        return {}

    def is_dead(self, now_ms: int, limits: Concurrency) -> bool:
        """Return whether nobody works on it any more."""
        if self.owner is None:
            return is_silent(self.active_ms, now_ms, limits.stale_after)
        if self.owner.ended or self.is_running is False:
            return True
        return self.is_running is None and is_silent(self.active_ms, now_ms)


class _Facts(TypedDict, total=False):
    """The facts that are read after a state, for the blocks of a spec that need them."""

    clustering_facts: ClusteringFacts | None
    index_state: IndexState | None
    forecast_input: ForecastInput | None
    recent_writes: RecentWrites | None
    damaged_write: str
    partition_rows: Mapping[str, int] | None
    orphan_facts: OrphanFacts | None
    archival: ArchivalFacts | None
    metadata_verification: MetadataVerification | None
    oldest_log: OldestLog | None


@dataclass(frozen=True, kw_only=True, eq=False)
class TableState:
    """A table at one moment. It makes the view of its file slices once.

    ``partitions``: what a full scan reads, sorted (``""`` if not partitioned): the list of the
    metadata table if it is live, else the folders with a partition metafile.
    ``stray_partitions``: folders with files that are not Hudi's; they are never deleted.
    ``replaced``: (partition, file id) -> greatest requested time of a completed replacecommit.
    ``touched_partitions``: completed commit -> partitions it wrote or replaced; None if the spec
    does not need them. ``v6_completions``: in version 6, requested time -> completion time from the
    modification time of the completed file, as Hudi 1.x reads it.
    ``observed_ms``: epoch milliseconds at which the listing began.
    ``written_partitions``: completed write of the timeline -> partitions that it wrote, in version
    6 of merge-on-read for a spec that deletes partitions; None otherwise. ``partition_rows``: rows
    of partitions that are deleted, as far as they are known; None if they were not counted.
    ``clustering_facts``: None if the spec declares no rewrite, or a past write is damaged;
    ``damaged_write``: the error of that write if file sizes alone are declared, else empty.
    ``index_state``: None if the spec has no index block.
    ``forecast_input``: None if the spec has no queries or it was not read.
    ``recent_writes``: None if file sizes are not reported.
    ``pending_writes``: our pending writes, oldest first; empty if not requested.
    ``failed_writes``: pending writes of other writers, dead or alive, oldest first; empty if the
    spec has no ``retention.failedWrites``. ``foreign_clusterings``: likewise their pending
    clusterings, if it has ``concurrency.pending``. ``pending_rollbacks``: if it has one of both.
    ``foreign_compactions``: likewise pending compactions and log compactions of other writers.
    ``orphan_facts``: None if nobody asked for orphan files.
    ``archival``: None if the spec has no timeline block. ``oldest_log``: None if unknown or unread.
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
    written_partitions: Mapping[str, frozenset[str]] | None = None
    partition_rows: Mapping[str, int] | None = None
    clustering_facts: ClusteringFacts | None = None
    damaged_write: str = ""
    index_state: IndexState | None = None
    forecast_input: ForecastInput | None = None
    recent_writes: RecentWrites | None = None
    metadata_verification: MetadataVerification | None = None
    pending_clusterings: tuple[PendingClustering, ...] = ()
    pending_writes: tuple[PendingWrite, ...] = ()
    failed_writes: tuple[ForeignWrite, ...] = ()
    foreign_clusterings: tuple[ForeignWrite, ...] = ()
    pending_compactions: tuple[PendingCompaction, ...] = ()
    foreign_compactions: tuple[ForeignWrite, ...] = ()
    pending_rollbacks: tuple[PendingRollback, ...] = ()
    orphan_facts: OrphanFacts | None = None
    archival: ArchivalFacts | None = None
    oldest_log: OldestLog | None = None

    @cached_property
    def view(self) -> FileView:
        """Return the file slices of the table, by the rules of its version."""
        completions = self.completions
        if self.table_version < LOGS_BY_COMPLETION:
            completions = self.v6_completions if self.is_merge_on_read else {}
        return build_view(
            self.files,
            self.timeline,
            table_version=self.table_version,
            completions=completions,
            compactions={
                (operation.partition, operation.file_id): operation.instant
                for operation in self.compactions
                if operation.action is Action.COMPACTION
            },
            replaced=self.replaced,
        )

    def with_facts(self, **facts: Unpack[_Facts]) -> Self:
        """Return the state with these facts added. The files are the same, so it keeps its view."""
        known: dict[str, Any] = {name: fact for name, fact in facts.items() if fact}
        changed = replace(self, **known)
        if "view" in self.__dict__:
            changed.__dict__["view"] = self.view
        return changed

    def with_savepoints(self, savepoints: tuple[Savepoint, ...]) -> Self:
        """Return the state with other savepoints. The files are the same, so it keeps its view."""
        if savepoints == self.savepoints:
            return self
        changed = replace(self, savepoints=savepoints)
        changed.__dict__["view"] = self.view
        return changed

    @property
    def foreign_writes(self) -> tuple[Instant, ...]:
        """Return the pending writes without clusterings of ours."""
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
        """Return Hudi's completed commits timeline; deltacommits count only for merge-on-read."""
        if self.is_merge_on_read:
            return self.timeline.commits
        return tuple(i for i in self.timeline.commits if i.action is not Action.DELTACOMMIT)
