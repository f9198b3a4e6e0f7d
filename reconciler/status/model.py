"""The status of a table: what ``reconciler status`` reports, as values.

Status documents have these fields, named by ``canonical_json.to_document``.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.plans.archive_step import ArchiveBound
from reconciler.plans.model import Note
from reconciler.state.measured_queries import MeasuredQuery
from reconciler.status.conditions import ConditionType, TableCondition
from reconciler.status.index import IndexStatus
from reconciler.status.logs import LogStatus
from reconciler.status.orphans import OrphanStatus

SyncState = Literal[
    "in sync", "drifted", "unknown", "blocked", "blocked in part", "unmanaged", "error"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingStatus:
    """A pending instant; ``is_stuck``: it is pending for longer than ``staleAfter``.

    ``holds_back``: what a stuck one keeps from clusterings and cleans; None if nothing is known.
    """

    instant: str
    action: str
    state: str
    age_seconds: int
    is_stuck: bool
    holds_back: str | None = field(default=None, metadata={"optional": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointStatus:
    """A savepoint. ``pinned_*``: its files that are in no newest file slice.

    ``name``: the declared savepoint that reconciler made it for; None if it did not make it.
    ``made_by``, ``comment``: as Hudi recorded them; None if unknown. ``age_seconds``: since it was
    made. ``freed_*``: what a clean by the declared retention would remove if only this savepoint
    were gone; None without a retention that can be planned.
    """

    instant: str
    is_completed: bool
    files: int
    bytes: int
    pinned_files: int
    pinned_bytes: int
    name: str | None = None
    made_by: str | None = None
    comment: str | None = None
    age_seconds: int | None = None
    freed_files: int | None = None
    freed_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanStatus:
    """The retention of the active timeline's last clean.

    ``commits``: completed commits from the earliest instant it retained to the clean itself; None
    if it retained by another measure. ``is_ours``: an apply of this program made it.
    """

    instant: str
    policy: str | None
    earliest_instant_to_retain: str | None
    commits: int | None
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStatus:
    """The active timeline against the declared number of commits.

    ``keep``: as declared. ``commits``: completed commits that an archival counts. ``archivable``:
    commits that the plan archives. ``bound``: what keeps more commits active than declared.
    """

    keep: str
    keep_most: int
    commits: int
    archivable: int
    bound: ArchiveBound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockStatus:
    """The table's lock while it is held; the age counts from the holder's last heartbeat.

    ``held_by``: the holder, as text for people. ``is_stale``: the holder is dead, or the lock is
    older than the declared expiry or than ``staleAfter``.
    """

    path: str
    held_by: str
    age_seconds: int
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LastApply:
    """The newest clean or clustering of the active timeline that an apply completed.

    Clusterings are read only if the spec has a clustering block. ``at``: ISO-8601 with offset; None
    if the timeline's zone is unknown.
    """

    instant: str
    at: str | None
    plan_digest: str
    spec_digest: str | None
    spec_commit: str | None
    actor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Base files of newest slices below a size in bytes (None: any) and in no class before."""

    below: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """Newest base files of a partition. ``overlap``: files that cover a row; None: unknown."""

    partition: str
    files: int
    small_files: int
    small_file_share: float
    overlap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringStatus:
    """A completed clustering. ``columns``: None if its order is not recorded.

    ``curve`` and ``mapping``: None if unknown, and without columns. ``is_ours``: an apply of this
    program made it. ``age_seconds`` needs the timeline's zone. ``queries``: what the declared
    queries read when it was completed.
    """

    instant: str
    age_seconds: int | None
    columns: tuple[str, ...] | None
    curve: str | None
    mapping: str | None
    is_as_declared: bool
    is_ours: bool
    queries: tuple[MeasuredQuery, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClusteringStatus:
    """A pending clustering, with the number of its file groups and partitions."""

    instant: str
    state: str
    age_seconds: int
    is_stuck: bool
    file_groups: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLayout:
    """The clustering of the plan; figures after it are predicted.

    ``bytes_rewritten``: bytes of the base and log files that it reads. ``overlap_after``: files
    that will cover a row; None if unknown.
    """

    bytes_rewritten: int
    files_after: int
    small_files_after: int
    overlap_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatus:
    """The declared layout and the table's figures.

    ``columns``, ``curve``, ``mapping``: as declared; without columns the row order is unchanged.
    ``sizes``: classes derived from ``files.small`` and ``files.target``. ``overlap``: mean number
    of files that cover a row, over the partitions where it is known. ``partitions``: those with
    files; ``small_partitions``: those with small files. ``worst``: partitions with small files or
    too much overlap, most small files first. ``planned``: None if the plan rewrites nothing.
    """

    columns: tuple[str, ...]
    curve: str | None
    mapping: str | None
    sizes: tuple[SizeClass, ...]
    overlap: float | None
    partitions: int
    small_partitions: int
    worst: tuple[PartitionStatus, ...]
    planned: PlannedLayout | None
    last_clustering: ClusteringStatus | None
    pending: tuple[PendingClusteringStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStatus:
    """What the plan compacts: file slices, their log files and the bytes of these.

    ``waiting_slices``: slices that are due and beyond the budget of one run. ``deltacommits``:
    those completed since ``newest``, the newest completed compaction, None without.
    """

    slices: int
    log_files: int
    log_bytes: int
    waiting_slices: int
    deltacommits: int
    newest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCosts:
    """What the files of a table cost a month, by the environment's price of storage.

    ``reclaimable_per_month``: those that the plan would remove; None without a usable plan.
    """

    currency: str
    per_month: float
    reclaimable_per_month: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """The status of one table; fields after ``because`` are empty if ``error`` is set.

    ``because``: the reasons why it is not in sync, one sentence each. ``refusals``: those of the
    plan; ``notes``: its warnings. ``files``, ``bytes``: base, log and CDC
    files. ``bytes_reclaimable``: bytes that the plan would remove; None without a usable plan.
    ``earliest_readable_age_seconds`` needs the timeline's zone. ``small_file_share``: share of the
    newest base files, by count. ``active_commits``: completed commits on the active timeline.
    ``layout``: None if the spec has no clustering block; ``index``: None if it has no index block.
    ``writers``: recent work of writers that contradicts the spec. ``orphans``: None if nobody
    looked for them. ``timeline``: None if the spec has no timeline block, as ``compaction``.
    ``logs``: None for a copy-on-write table. ``costs``: None without a price of storage.
    ``window_end``: the newest write, at which the time ends that can be read as of.
    """

    name: str
    path: str
    sync: SyncState
    error: str | None = None
    conditions: tuple[TableCondition, ...] = ()
    because: tuple[str, ...] = ()
    refusals: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    lock: LockStatus | None = None
    table_type: str | None = None
    table_version: int | None = None
    timezone: str | None = None
    last_completed: str | None = None
    earliest_readable: str | None = None
    earliest_readable_age_seconds: int | None = None
    files: int = 0
    bytes: int = 0
    bytes_reclaimable: int | None = None
    small_files: int = 0
    small_file_share: float | None = None
    sizes: tuple[SizeClass, ...] = ()
    active_commits: int = 0
    oldest_pending_age_seconds: int | None = None
    pending: tuple[PendingStatus, ...] = ()
    savepoints: tuple[SavepointStatus, ...] = ()
    last_clean: CleanStatus | None = None
    last_foreign_clean: CleanStatus | None = None
    last_apply: LastApply | None = None
    layout: LayoutStatus | None = None
    index: IndexStatus | None = None
    writers: tuple[Note, ...] = ()
    orphans: OrphanStatus | None = None
    timeline: TimelineStatus | None = None
    logs: LogStatus | None = field(default=None, metadata={"optional": True})
    compaction: CompactionStatus | None = field(default=None, metadata={"optional": True})
    costs: StorageCosts | None = field(default=None, metadata={"optional": True})
    window_end: str | None = field(default=None, metadata={"name": None})

    def condition(self, type: ConditionType) -> TableCondition | None:  # noqa: A002 (its name)
        """Return the condition of that type; None if the status has none."""
        return next((condition for condition in self.conditions if condition.type == type), None)
