"""The state of a table at one moment, which is the only input of planners besides the spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView, build_view
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import is_silent
from reconciler.hudi.timeline.instant import WRITES, Action, Instant
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import ClusteringPlan

if TYPE_CHECKING:
    from reconciler.state.clustering_facts import ClusteringFacts, RecentWrites
    from reconciler.state.index_state import IndexState
    from reconciler.state.metadata_differences import MetadataVerification
    from reconciler.state.sampling.model import ForecastInput

#: keys of the extra metadata of our own instants: the digest of the plan, and this program
PLAN_DIGEST: Final = "reconciler.plan.digest"
TOOL: Final = "reconciler.tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A savepoint, also an incomplete one (``completed`` is False and its files are unknown).

    ``files``: file names of all partitions together, as Hudi matches them.
    """

    instant: str
    completed: bool
    files: frozenset[str] = frozenset()


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
    pending.
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
        """Return whether its process looks dead; a rollback also checks the store's clock."""
        if self.owner.ended or self.is_running is False:
            return True
        return self.is_running is None and is_silent(self.beat_ms, now_ms)


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
    ``clustering_facts``: None if the spec declares no rewrite, or a past write is damaged;
    ``damaged_write``: the error of that write if file sizes alone are declared, else empty.
    ``index_state``: None if the spec has no index block.
    ``forecast_input``: None if the spec has no queries or it was not read.
    ``recent_writes``: None if file sizes are not reported.
    ``pending_writes``: our pending writes, oldest first; empty if not requested.
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
    damaged_write: str = ""
    index_state: IndexState | None = None
    forecast_input: ForecastInput | None = None
    recent_writes: RecentWrites | None = None
    metadata_verification: MetadataVerification | None = None
    pending_clusterings: tuple[PendingClustering, ...] = ()
    pending_writes: tuple[PendingWrite, ...] = ()

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

    def with_facts(
        self,
        *,
        clustering_facts: ClusteringFacts | None = None,
        index_state: IndexState | None = None,
        forecast_input: ForecastInput | None = None,
        recent_writes: RecentWrites | None = None,
        metadata_verification: MetadataVerification | None = None,
        damaged_write: str = "",
    ) -> Self:
        """Return the state with these facts added. The files are the same, so it keeps its view."""
        changed = replace(
            self,
            clustering_facts=clustering_facts or self.clustering_facts,
            index_state=index_state or self.index_state,
            forecast_input=forecast_input or self.forecast_input,
            recent_writes=recent_writes or self.recent_writes,
            metadata_verification=metadata_verification or self.metadata_verification,
            damaged_write=damaged_write or self.damaged_write,
        )
        if "view" in self.__dict__:
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
