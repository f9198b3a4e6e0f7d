"""The plan: complete, frozen decisions about tables; apply adds nothing to them.

Files are stored as columns, not as an object per file: a plan may name a million files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.layout_change import LayoutChange
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointReport, SavepointStep
from reconciler.plans.table_costs import TableCosts

if TYPE_CHECKING:
    from reconciler.plans.file_sizes import FileSizeReport

CURVES = ("linear", "z-order", "hilbert", "kd-tree")
MAPPINGS = ("rank", "direct")
#: the reconciler's index under .hoodie/.zindex, and the metadata table's
INDEX_TARGETS = ("zindex", "column_stats")
#: kinds of steps that a refusal may name; a resume counts as the kind that it finishes
StepKind = Literal[
    "metadata",
    "savepoint",
    "deletePartition",
    "compact",
    "cluster",
    "index",
    "clean",
    "orphans",
    "archive",
]
#: a field that ``to_document`` does not write: a list that is written by columns, for example
_WRITTEN_APART: Any = {"name": None}
#: rules of warnings that nothing tells whether a declared clustering would pay
UNMEASURED_RULES = frozenset({"gain", "overlap"})
FILE_KINDS = ("base", "log", "cdc")
REMOVAL_RULES = ("retention", "replaced")
KEEP_RULES = (
    "savepoint",
    "pendingCompaction",
    "pendingClustering",
    "pendingWrite",
    "readers",
    "cap",
)


@dataclass(frozen=True, slots=True, eq=False)
class NamedFiles:
    """Files by name, sorted by (partition, name), one row per file.

    ``partition``: pyarrow dictionary<int32, string> (paths; ``""`` when not partitioned).
    ``name``: pyarrow string.
    """

    partition: Any
    name: Any

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class RemovedFiles(NamedFiles):
    """Files to remove.

    ``bytes``: int64. ``kind``: int8 into FILE_KINDS. ``rule``: int8 into REMOVAL_RULES.
    ``because``: pyarrow dictionary<int32, string>.
    """

    bytes: Integers
    kind: NDArray[np.int8]
    rule: NDArray[np.int8]
    because: Any


@dataclass(frozen=True, slots=True, eq=False)
class OrphanFiles(NamedFiles):
    """Files to remove that no write knows.

    ``bytes``: int64. ``kind``: int8 into FILE_KINDS. ``because``: pyarrow dictionary<int32,
    string>.
    """

    bytes: Integers
    kind: NDArray[np.int8]
    because: Any


@dataclass(frozen=True, slots=True, eq=False)
class KeptFiles(NamedFiles):
    """Files past retention that another rule keeps.

    ``rule``: int8 into KEEP_RULES; ``because``: pyarrow dictionary<int32, string>.
    """

    rule: NDArray[np.int8]
    because: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanStep:
    """Remove files that no read within the retention needs.

    ``delete_partitions``: sorted paths of the partition directories that are deleted as well.
    """

    kind: Literal["clean"] = "clean"
    policy: str
    earliest_instant_to_retain: str | None
    files: RemovedFiles = field(metadata=_WRITTEN_APART)
    delete_partitions: tuple[str, ...] = field(default=(), metadata=_WRITTEN_APART)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResumeStep:
    """Finish or undo a pending clean, clustering or compaction whose owner is dead.

    ``groups``: what a pending clustering or compaction rewrites; None for a clean. ``writer``:
    ``foreign`` for a clustering of another writer. ``attempt``: the files of an earlier attempt at
    it, which go first; None without any. As for a rollback, they count in no figure. ``rollback``:
    a pending rollback of that attempt, which is finished.
    """

    kind: Literal["resume"] = "resume"
    instant: str
    action: Literal["clean", "clustering", "compaction"]
    files: RemovedFiles = field(metadata=_WRITTEN_APART)
    delete_partitions: tuple[str, ...] = field(default=(), metadata=_WRITTEN_APART)
    groups: Rewrites | None = field(default=None, metadata=_WRITTEN_APART)
    writer: Literal["foreign"] | None = field(default=None, metadata={"optional": True})
    attempt: NamedFiles | None = field(default=None, metadata=_WRITTEN_APART)
    rollback: str | None = field(default=None, metadata={"optional": True})
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppend:
    """A file slice whose log files get a command block that cancels the rows of a write.

    ``logs``: names of its log files that may hold such rows. Only in version 6, where several
    writes share a log file.
    """

    partition: str
    file_id: str
    base_instant: str
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RollbackStep:
    """Roll back a pending write whose writer is dead.

    ``files``: the files it has written. Readers have never seen them, so they count in no figure
    of the plan and for no guardrail. ``writer``: ``foreign`` for a write of another writer, None
    for one of this program. ``rollback``: a pending rollback of it that is finished. ``appends``:
    slices of log files that stay, where there are any.
    """

    kind: Literal["rollback"] = "rollback"
    instant: str
    action: str
    files: NamedFiles = field(metadata=_WRITTEN_APART)
    writer: Literal["foreign"] | None = field(default=None, metadata={"optional": True})
    rollback: str | None = field(default=None, metadata={"optional": True})
    appends: tuple[LogAppend, ...] | None = field(default=None, metadata={"optional": True})
    because: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterStep:
    """Rewrite groups of file slices with rows ordered by ``columns`` along ``curve``.

    Without columns rows keep their order, and ``curve`` and ``mapping`` are None. ``purpose``
    ``sizes``: only file sizes are declared; None: a clustering is.
    """

    kind: Literal["cluster"] = "cluster"
    columns: tuple[str, ...]
    curve: str | None
    mapping: str | None
    purpose: str | None = field(default=None, metadata={"optional": True})
    groups: Rewrites = field(metadata=_WRITTEN_APART)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStep:
    """Update indexes of column statistics to the declared columns and the current files.

    ``targets``: some of INDEX_TARGETS. ``columns``: the columns indexed afterwards, including those
    to ``add``; ``drop``: the columns to remove. ``files``: number of base files whose footers are
    read, including those that a clustering of the same plan writes.
    """

    kind: Literal["index"] = "index"
    targets: tuple[str, ...]
    columns: tuple[str, ...]
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    files: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStep:
    """Repair partitions of Hudi's metadata table that differ from the table's files.

    ``change``: they are dropped, so that readers list and open files instead, or built anew.
    ``partitions``: of the metadata table, sorted; with ``files`` among them all of it is dropped or
    made anew. ``differences``: how many entries differ.
    """

    kind: Literal["metadata"] = "metadata"
    change: Literal["drop", "rebuild"] = "drop"
    partitions: tuple[str, ...]
    because: str
    differences: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrphansStep:
    """Remove files that no write knows and that no reader sees."""

    kind: Literal["orphans"] = "orphans"
    files: OrphanFiles = field(metadata=_WRITTEN_APART)


Step = (
    ResumeStep
    | RollbackStep
    | MetadataStep
    | SavepointStep
    | DeletePartitionStep
    | ClusterStep
    | CompactStep
    | IndexStep
    | CleanStep
    | OrphansStep
    | ArchiveStep
)
#: a step that removes files of completed writes
Removal = ResumeStep | CleanStep


def removal_steps(steps: Iterable[Step]) -> tuple[Removal, ...]:
    """Return the steps that remove files of completed writes, in their order."""
    return tuple(step for step in steps if isinstance(step, ResumeStep | CleanStep))


def removed_sizes(steps: Iterable[Step]) -> tuple[Integers, ...]:
    """Return the sizes of the files that each step removes, in bytes."""
    removing = ResumeStep | CleanStep | OrphansStep
    return tuple(step.files.bytes for step in steps if isinstance(step, removing))


def rewritten_groups(steps: Iterable[Step | None]) -> tuple[Rewrites, ...]:
    """Return the groups that steps rewrite, in the order of the steps."""
    rewriting = ResumeStep | ClusterStep | CompactStep
    rewrites = (step.groups for step in steps if isinstance(step, rewriting))
    return tuple(groups for groups in rewrites if groups)


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """One entry of ``refusals`` or ``warnings``: the name of a rule and a sentence.

    ``step``: the only kind of steps that a refusal forbids; None if it forbids all work.
    """

    rule: str
    because: str
    step: StepKind | None = field(default=None, metadata={"optional": True})


@dataclass(frozen=True, slots=True)
class Finding:
    """One entry of ``drift``: a difference between the spec and the table, and how it is known."""

    field: str
    desired: Any
    actual: Any
    because: str


@dataclass(frozen=True, slots=True)
class PendingInstant:
    instant: str
    action: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The table that the plan was made from. Counts include base, log and CDC files.

    ``newest_write``: None if it is ``last_completed``, and in plans of earlier versions.
    """

    table_version: int
    table_type: str
    last_completed: str | None
    pending: tuple[PendingInstant, ...] = ()
    savepoints: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    newest_write: str | None = field(default=None, metadata={"optional": True})

    @property
    def window_end(self) -> str | None:
        """The newest write, at which every window of readable times ends; no clean moves it."""
        return self.newest_write or self.last_completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    files_removed: int = 0
    bytes_removed: int = 0
    bytes_rewritten: int = 0
    earliest_readable_before: str | None = field(default=None, metadata=_WRITTEN_APART)
    earliest_readable_after: str | None = field(default=None, metadata=_WRITTEN_APART)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablePlan:
    """The plan of one table. ``error`` is set for a table that could not be read.

    ``layout``: the effect of the cluster step; None without that step. ``file_sizes``: None if the
    spec declares no file sizes and they were not requested. ``other_savepoints``: those of other
    tools and people; None if there are none, or the spec has no savepoints block. ``costs``: None
    without prices.
    """

    name: str
    path: str
    spec: Mapping[str, Any]
    spec_digest: str
    error: str | None = None
    observed: Observed | None = None
    drift: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = field(default=(), metadata=_WRITTEN_APART)
    kept: KeptFiles | None = field(default=None, metadata=_WRITTEN_APART)
    predictions: tuple[Mapping[str, Any], ...] = ()
    impact: Impact = field(default=Impact(), metadata=_WRITTEN_APART)
    layout: LayoutChange | None = field(default=None, metadata={"optional": True})
    file_sizes: FileSizeReport | None = field(default=None, metadata=_WRITTEN_APART)
    other_savepoints: tuple[SavepointReport, ...] | None = field(
        default=None, metadata={"optional": True}
    )
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    costs: TableCosts | None = field(default=None, metadata={"optional": True})

    @property
    def has_changes(self) -> bool:
        return bool(self.steps)

    @property
    def is_blocked(self) -> bool:
        """True if a refusal forbids all work on the table."""
        return any(refusal.step is None for refusal in self.refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selectors of a plan: ``tables`` of ``total`` tables were chosen ``by`` these options.

    ``by`` has each option with its value as given, for example ``--name sales.*``. ``removed``:
    tables declared at the compared commit and no longer declared.
    """

    tables: int
    total: int = field(metadata={"name": "of"})
    by: tuple[str, ...]
    removed: tuple[str, ...] = ()
