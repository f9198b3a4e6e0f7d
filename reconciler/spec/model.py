"""The model of specs: what is declared about a table, as frozen values without units.

Sizes are bytes, durations are seconds, ``None`` means "not declared". A block that is None is
unmanaged: no steps are planned for it. A retention has no default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from reconciler.lazy_dataclass import dataclass
from reconciler.prices import Prices, parse_runs
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.spec.compaction import Compaction
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.partition_filter import PartitionFilter


class Policy(StrEnum):
    """Hudi's HoodieCleaningPolicy: which file slices a clean keeps."""

    COMMITS = "KEEP_LATEST_COMMITS"
    HOURS = "KEEP_LATEST_BY_HOURS"
    FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The history to keep; ``keep`` counts commits, hours or file versions (>= 1)."""

    policy: Policy
    keep: int
    scan: Literal["full", "incremental"] = "full"
    after_commits: int | None = None
    max_commits_per_run: int | None = None
    failed_writes: Literal["EAGER", "LAZY", "NEVER"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRetention:
    """The age past which partitions are deleted: ``retention.partitions`` of a spec.

    ``older_than``: seconds. ``by``: a pattern of dates in partition paths (``partition_dates``), or
    ``lastCommit``. ``keep_latest``: the newest partitions stay, whatever their age.
    """

    older_than: int
    by: str
    keep_latest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringBudget:
    """Limits of one run, in bytes and counts; ``rewrite`` None is unlimited."""

    rewrite: int | None = None
    per_group: int = 2 * 1024**3
    groups: int = 30

    @property
    def max_group_bytes(self) -> int:
        """Return the most bytes of a group of several slices."""
        return min(self.per_group, self.rewrite or self.per_group)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringTrigger:
    """Conditions to cluster a partition, any of them; ``always`` is Hudi's own eligibility.

    ``gain_above``: the share of files that queries are predicted to read less.
    """

    always: bool = False
    small_file_share_above: float | None = 0.3
    overlap_above: float | None = None
    gain_above: float | None = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrigger:
    """Conditions to rewrite a partition for its file sizes, any of them."""

    small_file_share_above: float | None = 0.3
    large_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """Sizes of base files that writers aim at, and that existing files are brought to, in bytes.

    ``when`` None: existing files are left as they are; ``large``, ``budget``, ``partitions`` and
    ``quiet`` then have no effect. ``quiet``: seconds without a write after which a partition is
    rewritten.
    """

    target: int = 120 * 1024 * 1024
    small: int = 100 * 1024 * 1024
    large: int | None = None
    assign: Literal["steady", "hudi"] = "steady"
    record_size: int = 1024
    when: SizeTrigger | None = None
    partitions: PartitionFilter = field(default_factory=PartitionFilter)
    budget: ClusteringBudget | None = None
    quiet: int | None = None

    @property
    def existing_small(self) -> int:
        """The size below which existing files are small; at most a declared target."""
        return self.small if self.when is None else min(self.small, self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    columns: tuple[str, ...]
    curve: Literal["linear", "z-order", "hilbert", "kd-tree"] | None = None
    mapping: Literal["rank", "direct"] = "rank"
    after_commits: int = 1
    partitions: PartitionFilter = field(default_factory=PartitionFilter)
    when: ClusteringTrigger = ClusteringTrigger()
    single_file: bool = True
    budget: ClusteringBudget = ClusteringBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexColumns:
    columns: tuple[str, ...]
    hudi: Literal["keep", "build"] = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """Files that no write knows and that are removed once they are ``older_than`` seconds old."""

    older_than: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpkeep:
    """How the metadata table is verified and repaired.

    ``verify`` ``never``: only its file listing is compared, because plans read it anyway.
    """

    verify: Literal["each-apply", "never"] = "never"
    repair: Literal["drop", "rebuild", "report"] = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query that the layout is for; ``max_scan`` is a share between 0 and 1.

    ``runs``: how often it runs, as text such as ``40/day``.
    """

    name: str
    where: str
    max_scan: float | None = None
    runs: str | None = None

    @property
    def runs_per_day(self) -> float | None:
        """How often it runs in a day; None if that is not declared."""
        return None if self.runs is None else parse_runs(self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalConsumer:
    name: str
    max_lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Readers of the table, in seconds: more recently superseded file slices are kept."""

    longest_query: int | None = None
    incremental_consumers: tuple[IncrementalConsumer, ...] = ()

    @property
    def slowest_reader(self) -> tuple[str, int] | None:
        """The reader that needs the longest time, with a verb, and its seconds; None if unset.

        >>> Readers(longest_query=60).slowest_reader, Readers().slowest_reader
        (('the longest query runs', 60), None)
        """
        needs = [("the longest query runs", self.longest_query or 0)]
        needs += [(f"consumer {c.name} lags", c.max_lag) for c in self.incremental_consumers]
        reader, seconds = max(needs, key=lambda need: need[1])
        return (reader, seconds) if seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSavepoint:
    """A savepoint to make of the newest commit completed by ``at``, and to remove from ``until``.

    Both are dates or times as text, which ``spec.moments`` reads; None: it stays while declared.
    """

    name: str
    at: str
    until: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The lock of Hudi's that the writers take, or none for a table with a single writer.

    Of ``filesystem``: ``path`` is a folder, relative to the table if relative; ``expire`` is in
    minutes, 0 is never; ``single_writer``: only reconciler writes the table. Of ``storage``:
    ``validity`` is in seconds, None for Hudi's default. Of ``hivemetastore``: ``table``
    (``database.table``) and ``uri``, which an effective spec has from the catalog or the
    environment if the lock declares none. Of ``zookeeper``: ``servers`` (``host:port``,
    several with commas), ``base_path``, ``key``, and ``session_timeout`` in seconds. Of
    ``dynamodb``: ``table``, ``partition_key``, and ``region`` and ``endpoint``, None for those of
    AWS's own settings. ``implicit``: base path and key, or the partition key, are derived from the
    table's location.
    """

    provider: Literal["filesystem", "storage", "hivemetastore", "zookeeper", "dynamodb", "none"]
    path: str = ".hoodie"
    expire: int = 0
    single_writer: bool = False
    validity: int | None = None
    table: str | None = None
    uri: str | None = None
    servers: str | None = None
    base_path: str | None = None
    key: str | None = None
    session_timeout: int | None = None
    partition_key: str | None = None
    implicit: bool = False
    region: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingServices:
    """What becomes of pending clusterings and compactions of other writers that nobody finishes.

    ``after``: seconds without a change.
    """

    clustering: Literal["finish", "rollback", "report"] = "report"
    compaction: Literal["finish", "report"] = "report"
    after: int = 6 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """When work of another process counts as left behind, in seconds.

    ``stale_after``: of a pending clean, or a silent write. ``heartbeat_timeout``: of a writer with
    Hudi that has a heartbeat; None: two minutes, by Hudi's defaults.
    """

    lock: Lock | None = None
    stale_after: int = 3600
    heartbeat_timeout: int | None = None
    pending: PendingServices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketIndex:
    """Hudi's simple bucket index, which no property of a table tells.

    ``buckets``: file groups of a partition. ``keys``: the columns whose values are hashed; none:
    those of the record key.
    """

    type: Literal["bucket"]
    buckets: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """The properties with which ``write`` creates the table; ``index`` holds for existing ones."""

    type: Literal["COPY_ON_WRITE", "MERGE_ON_READ"]
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    hive_style: bool = True
    schema: Mapping[str, Any] | None = None
    index: BucketIndex | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FromEnv:
    """A value in an environment variable; ``declared_at`` is the position of the reference."""

    variable: str
    declared_at: str = field(default="", compare=False)


Option = str | FromEnv


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table by its ``name`` (``database.table``) in a catalog, which knows its location.

    ``uri``: that of a Hive Metastore, or the account of Glue. ``options``: for the catalog's
    client; only environments give them.
    """

    type: Literal["hive", "glue"]
    name: str
    uri: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the table with its catalog, for messages."""
        return f"{self.name} in the {self.type} catalog" + (f" {self.uri}" if self.uri else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """The effective spec of a table: defaults merged, paths resolved, units converted.

    ``path`` is the resolved location: an absolute path without scheme, else a URL. It is ``""``
    until the environment that gives it is selected. ``source`` is the file of the spec.
    ``provenance`` maps the dotted path of every declared field to "file:line". ``document`` is the
    effective spec as JSON data, as plan.json carries it. ``guarded_by`` are the policies that cover
    the table, sorted by name; they are not in the document. ``catalog``: the catalog that gave the
    location, None if a path did. ``file_times``: "copied" if the files
    of the timeline are a copy's, later than their writers'; None: they are the writers'.
    ``retention``: that of file slices, None if no count is declared; ``partition_retention``: the
    ``partitions`` of the same block. ``prices``: those of the environment, which are not in the
    document, because they decide nothing.
    """

    name: str
    path: str
    catalog: CatalogTable | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    timezone: str | None = None
    file_times: Literal["copied"] | None = None
    suspend: bool = False
    retention: Retention | None = None
    partition_retention: PartitionRetention | None = None
    files: FileSizes | None = None
    clustering: Clustering | None = None
    compaction: Compaction | None = None
    index: IndexColumns | None = None
    orphans: Orphans | None = None
    metadata: MetadataUpkeep | None = None
    queries: tuple[Query, ...] = ()
    readers: Readers | None = None
    savepoints: tuple[DeclaredSavepoint, ...] | None = None
    timeline: ActiveTimeline | None = None
    concurrency: Concurrency | None = None
    table: NewTable | None = None
    storage_options: Mapping[str, Option] = field(default_factory=dict)
    source: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)
    guarded_by: tuple[GuardPolicy, ...] = ()
    prices: Prices | None = None

    @property
    def rewriting(self) -> Clustering | None:
        """The clustering that a cluster step is planned by; None if nothing declares a rewrite.

        Without a clustering block, file sizes for existing files are a clustering without columns.
        """
        if self.clustering is not None or self.files is None or self.files.when is None:
            return self.clustering
        return Clustering(
            columns=(),
            when=ClusteringTrigger(
                small_file_share_above=self.files.when.small_file_share_above,
                overlap_above=None,
                gain_above=None,
            ),
            after_commits=0,
            partitions=self.files.partitions,
            budget=self.files.budget or ClusteringBudget(),
        )
