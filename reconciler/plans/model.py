"""What a plan is: a decision about tables, complete and frozen; apply adds nothing.

Files are columns, never an object a file: a plan may name a million of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reconciler.plans.file_sizes import FileSizeReport

CURVES = ("linear", "z-order", "hilbert", "kd-tree")
MAPPINGS = ("rank", "direct")
#: our own index under .hoodie/.zindex, and the metadata table's
INDEX_TARGETS = ("zindex", "column_stats")
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
class RemovedFiles:
    """Files to remove, sorted by (partition, name), one row a file.

    ``partition``: pyarrow dictionary<int32, string> (paths; ``""`` when not partitioned).
    ``name``: pyarrow string. ``bytes``: int64. ``kind``: int8 into FILE_KINDS.
    ``rule``: int8 into REMOVAL_RULES. ``because``: pyarrow dictionary<int32, string>.
    """

    partition: Any
    name: Any
    bytes: NDArray[np.int64]
    kind: NDArray[np.int8]
    rule: NDArray[np.int8]
    because: Any

    def __len__(self) -> int:
        return len(self.bytes)


@dataclass(frozen=True, slots=True, eq=False)
class KeptFiles:
    """Files that the policy alone would remove and another rule saves; sorted by (partition, name).

    ``partition``: pyarrow dictionary<int32, string>; ``name``: pyarrow string;
    ``rule``: int8 into KEEP_RULES; ``because``: pyarrow dictionary<int32, string>.
    """

    partition: Any
    name: Any
    rule: NDArray[np.int8]
    because: Any

    def __len__(self) -> int:
        return len(self.rule)


@dataclass(frozen=True, slots=True, eq=False)
class NamedFiles:
    """Files by nothing but their names, sorted by (partition, name), one row a file.

    ``partition``: pyarrow dictionary<int32, string>; ``name``: pyarrow string.
    """

    partition: Any
    name: Any

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanStep:
    """Remove files that no read within the retention needs.

    ``delete_partitions``: sorted paths whose directories go too, with or without files of theirs.
    """

    kind: Literal["clean"] = "clean"
    policy: str
    earliest_instant_to_retain: str | None
    files: RemovedFiles
    delete_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rewrites:
    """Groups of file slices in the order of partitions.

    Group g has the slices ``starts[g]:starts[g + 1]``.

    A group each: ``partition``: pyarrow dictionary<int32, string>; ``outputs``: int64, files that
    come out; ``bytes``: int64, bytes of base and log files that are read; ``because``: a dictionary
    array of sentences; ``starts``: int64, one more than groups.
    A slice each: ``hash_file_name``: pyarrow string; ``base``: pyarrow string, null for a slice of logs
    alone; ``logs``: pyarrow list<string>, names in merge order.
    """

    partition: Any
    outputs: NDArray[np.int64]
    bytes: NDArray[np.int64]
    because: Any
    starts: NDArray[np.int64]
    file_id: Any
    base: Any
    logs: Any

    def __len__(self) -> int:
        return len(self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResumeStep:
    """Finish (or undo) a pending clean or clustering that its owner left behind.

    ``groups``: what a pending clustering rewrites; None where there is nothing.
    """

    kind: Literal["resume"] = "resume"
    instant: str
    action: Literal["clean", "clustering"]
    files: RemovedFiles
    delete_partitions: tuple[str, ...] = ()
    groups: Rewrites | None = None
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RollbackStep:
    """Take back a write of ours whose run is dead, as if it had never been announced.

    ``files``: what it has written so far. No reader has ever seen them, so they count in no figure
    of the plan and for no guardrail.
    """

    kind: Literal["rollback"] = "rollback"
    instant: str
    action: str
    files: NamedFiles
    because: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterStep:
    """Rewrite groups of file slices, rows in the order of ``columns`` along ``curve``.

    Without columns files are packed as they are, and ``curve`` and ``mapping`` are None.
    """

    kind: Literal["cluster"] = "cluster"
    columns: tuple[str, ...]
    curve: str | None
    mapping: str | None
    groups: Rewrites


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStep:
    """Bring indexes of column statistics to what is declared, and up to date.

    ``targets``: some of INDEX_TARGETS; ``columns``: what they hold afterwards, of which ``add`` is
    new, and ``drop`` is what goes. ``files``: base files whose footers are read; those that a
    clustering of the same plan writes are among them, as planned.
    """

    kind: Literal["index"] = "index"
    targets: tuple[str, ...]
    columns: tuple[str, ...]
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    files: int
    because: str


Step = ResumeStep | RollbackStep | ClusterStep | IndexStep | CleanStep
#: a step that removes files which a completed write has made
Removal = ResumeStep | CleanStep


def removal_steps(steps: Iterable[Step]) -> tuple[Removal, ...]:
    """The steps that remove files of completed writes, in their order."""
    return tuple(step for step in steps if isinstance(step, ResumeStep | CleanStep))


def rewritten_groups(steps: Iterable[Step]) -> tuple[Rewrites, ...]:
    """The groups that steps rewrite, in the order of the steps; a step without groups has none."""
    found = (step.groups for step in steps if isinstance(step, ResumeStep | ClusterStep))
    return tuple(groups for groups in found if groups is not None and len(groups))


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """One entry of ``refusals`` or ``warnings``: a rule's name and a sentence."""

    rule: str
    because: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One entry of ``drift``: a fact, not a remedy."""

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
    """What the plan was made from; counts are of base, log and CDC files in the partitions."""

    table_version: int
    table_type: str
    last_completed: str | None
    pending: tuple[PendingInstant, ...] = ()
    savepoints: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    small_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    files_removed: int = 0
    bytes_removed: int = 0
    bytes_rewritten: int = 0
    earliest_readable_before: str | None = None
    earliest_readable_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutFigures:
    """The base files of newest slices. ``small``: below ``files.small``; ``bytes``: of all.

    ``overlap``: the mean number of files that cover a row on the clustering columns, None where it
    is not known. ``sizes``: files in every class of sizes.
    """

    files: int
    small: int
    bytes: int
    overlap: float | None
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Untouched:
    """So many file slices that a rule leaves as they are, and why most of them are."""

    rule: str
    slices: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What predictions come from.

    So many ``row_group_starts`` ``of`` those that the files looked into have, and the ``rows`` used.
    """

    row_groups: int
    total_row_groups: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """What a clustering makes of a table: the figures ``before`` are facts, those after predicted.

    ``below``: where the classes of sizes end, bytes, ascending; the last class has no end.
    ``untouched``: the rule with most slices first. ``sampled``: None where the spec has no queries.
    """

    below: tuple[int, ...]
    before: LayoutFigures
    after: LayoutFigures
    untouched: tuple[Untouched, ...] = ()
    sampled: Sampled | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablePlan:
    """Everything about one table. ``error`` is set alone: a table that could not be read.

    ``layout``: what the cluster step comes to; None where there is none. ``report_file_sizes``: None where
    the spec declares none and nobody asked.
    """

    name: str
    path: str
    spec: Mapping[str, Any]
    spec_digest: str
    error: str | None = None
    observed: Observed | None = None
    drift: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    kept: KeptFiles | None = None
    predictions: tuple[Mapping[str, Any], ...] = ()
    impact: Impact = Impact()
    layout: LayoutChange | None = None
    file_sizes: FileSizeReport | None = None
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()

    @property
    def has_changes(self) -> bool:
        return bool(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The tables at hand may not be all: so many ``of`` so many, chosen ``by`` these options.

    ``by`` has every option with its value as it was given, as in ``--name sales.*``. ``removed``
    names what was declared at the commit that the tables are compared with, and is not any more.
    """

    tables: int
    total: int
    by: tuple[str, ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Plan:
    """The reviewed thing. ``created_at`` is ISO-8601 with offset; ``tool`` the name and version.

    ``selection`` is None where no selector was used.
    """

    created_at: str
    tool: str
    tables: tuple[TablePlan, ...]
    selection: Selection | None = None
