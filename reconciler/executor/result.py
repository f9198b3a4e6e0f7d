"""The result of an apply: what it did, what it left out and why, and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field
from typing import Any, Final, Literal, Self

from reconciler import canonical_json
from reconciler.arrays import to_arrow
from reconciler.errors import choose_worst_code
from reconciler.executor.outcomes import (
    ArchiveOutcome,
    ClusterOutcome,
    DeletionOutcome,
    IndexOutcome,
    MetadataOutcome,
    SavepointOutcome,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note, Selection
from reconciler.prices import Prices, round_amount

#: of fields that a document shows otherwise
_NOT_ENCODED: Final = {"name": None}

Status = Literal[
    "done",  # everything that was reviewed is done, or was done already
    "unchanged",  # the plan had no step for the table
    "stale",  # some or all of what was reviewed fell out
    "partial",  # some of the work failed and stays pending
    "blocked",  # refused before anything was touched
    "blockedInPart",  # only a kind of step was refused; the other steps were applied
    "busy",  # another process works on the table
    "failed",  # an error
]
_STATUS_OF: Final[dict[int, Status]] = {
    0: "done",
    1: "failed",
    3: "blocked",
    4: "stale",
    5: "partial",
    6: "busy",
}


@dataclass(frozen=True, slots=True, eq=False)
class FileReasons:
    """Files with a reason each, sorted by partition and name, in columns.

    ``partition``, ``because``: pyarrow dictionary<int32, string>; ``name``: pyarrow string.
    """

    partition: Any
    name: Any
    because: Any

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def from_rows(cls, rows: Collection[tuple[str, str, str]]) -> Self | None:
        """Return the columns of files given as partition, name and reason; None without files."""
        if not rows:
            return None
        partition, name, because = zip(*sorted(rows), strict=True)
        return cls(
            partition=to_arrow(partition).dictionary_encode(),
            name=to_arrow(name),
            because=to_arrow(because).dictionary_encode(),
        )

    def count_reasons(self) -> tuple[tuple[str, int], ...]:
        """Return every reason and how many files it has, most first."""
        counts = self.because.value_counts().to_pylist()
        rows = ((row["values"], row["counts"]) for row in counts)
        return tuple(sorted(rows, key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepOutcome:
    """The outcome of one step.

    ``instant``: the one written or finished, of a rollback the one taken back; None when nothing
    was done. ``how``: ``completed``; ``adopted`` (another writer completed our instant); ``undone``
    (a pending clean with nothing left to do was removed, or a dead write taken back); ``inflight``
    (deletes failed, the next apply goes on); ``nothing`` (everything was done before, or left out);
    ``failed`` (an index could not be written: the next apply builds it; a clustering's input is
    damaged: it was undone; the metadata table cannot forget a write: it stays pending).

    ``removed`` files and ``bytes`` were removed now, ``gone`` files were absent before.
    ``left_out`` was reviewed and stays, or keeps a dead write pending. ``failed`` files could not
    be deleted. ``partitions_left``: a note for each partition whose folder stays; its rule is the
    path. ``differences``: what the check afterwards found wrong. ``rewritten``: set for a
    clustering, also a resumed one. ``indexed``: set for an index step, ``savepoint`` for a
    savepoint step, whose ``instant`` is the pinned one, ``deletion`` for a deletion of partitions,
    ``archived`` for an archival. ``repaired``: set for a repair of the metadata table,
    and for its verification at the end.
    """

    kind: Literal[
        "clean",
        "resume",
        "rollback",
        "metadata",
        "savepoint",
        "deletePartition",
        "cluster",
        "compact",
        "index",
        "orphans",
        "archive",
    ]
    how: Literal["completed", "adopted", "undone", "inflight", "nothing", "failed"]
    instant: str | None = None
    removed: int = field(default=0, metadata={"name": "filesRemoved"})
    bytes: int = field(default=0, metadata={"name": "bytesRemoved"})
    gone: int = field(default=0, metadata={"name": "filesGone"})
    left_out: FileReasons | None = field(default=None, metadata=_NOT_ENCODED)
    failed: FileReasons | None = field(default=None, metadata=_NOT_ENCODED)
    partitions_removed: tuple[str, ...] = ()
    partitions_left: tuple[Note, ...] = field(default=(), metadata=_NOT_ENCODED)
    earliest_instant_to_retain: str | None = None
    differences: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    rewritten: ClusterOutcome | None = None
    indexed: IndexOutcome | None = None
    deletion: DeletionOutcome | None = field(default=None, metadata={"optional": True})
    savepoint: SavepointOutcome | None = field(default=None, metadata={"optional": True})
    archived: ArchiveOutcome | None = None
    repaired: MetadataOutcome | None = field(default=None, metadata={"optional": True})
    seconds: float = field(default=0.0, metadata=_NOT_ENCODED)

    def to_document(self, encode_files: Callable[[FileReasons | None], Any]) -> dict[str, Any]:
        """Return the outcome as JSON data; ``encode_files`` does it for files with reasons."""
        left = [{"path": note.rule, "because": note.because} for note in self.partitions_left]
        return {
            **canonical_json.to_document(self),
            "leftOut": encode_files(self.left_out),
            "failed": encode_files(self.failed),
            "partitionsLeft": left,
            "seconds": round(self.seconds, 3),
        }

    @property
    def exit_code(self) -> int:
        if self.how in ("inflight", "failed") or self.failed or self.differences:
            return 5
        left = (
            self.left_out,
            self.partitions_left,
            self.rewritten and self.rewritten.left,
            self.indexed and self.indexed.left,
            self.deletion and self.deletion.left,
            self.savepoint and self.savepoint.left,
            self.archived and self.archived.left,
            self.repaired and self.repaired.left,
        )
        return 4 if any(left) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCosts:
    """What an apply freed and rewrote of a table, in the currency of ``prices``."""

    prices: Prices
    bytes_rewritten: int
    freed_per_month: float | None = field(default=None, metadata={"optional": True})
    rewrite_once: float | None = field(default=None, metadata={"optional": True})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableResult:
    """The outcome of applying one table's plan.

    ``error`` is one sentence, ``code`` the error's own exit code. ``refusals`` say what blocked the
    table or one of its steps; ``warnings`` what a person should look at. ``prices``: those that the
    plan names; None without any.
    """

    name: str
    path: str
    outcomes: tuple[StepOutcome, ...] = ()
    error: str | None = None
    code: int = 0
    refusals: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    unchanged: bool = False
    seconds: float = 0.0
    prices: Prices | None = None

    @property
    def exit_code(self) -> int:
        return choose_worst_code((self.code, *(outcome.exit_code for outcome in self.outcomes)))

    @property
    def status(self) -> Status:
        if self.unchanged:
            return "unchanged"
        status = _STATUS_OF[self.exit_code]
        are_steps = all(refusal.step is not None for refusal in self.refusals)
        return "blockedInPart" if status == "blocked" and self.refusals and are_steps else status

    @property
    def instants(self) -> tuple[str, ...]:
        """Return the instants written or finished, in the order of execution.

        A savepoint is written at the instant that it pins.
        """
        done = (o for o in self.outcomes if o.how != "undone")
        times = (o.instant for o in done if not o.savepoint or o.savepoint.change == "create")
        return tuple(instant for instant in times if instant is not None)

    @property
    def costs(self) -> ResultCosts | None:
        """Return what was freed and rewritten, in money; None without prices."""
        if self.prices is None:
            return None
        rewritten = sum(outcome.bytes_read for outcome in self.rewritten)
        freed, spent = self.prices.price_storage(self.bytes), self.prices.price_rewrite(rewritten)
        return ResultCosts(
            prices=self.prices,
            bytes_rewritten=rewritten,
            freed_per_month=round_amount(freed) if freed is not None and self.bytes else None,
            rewrite_once=round_amount(spent) if spent is not None and rewritten else None,
        )

    @property
    def rewritten(self) -> tuple[ClusterOutcome, ...]:
        """Return what each clustering did."""
        return tuple(o.rewritten for o in self.outcomes if o.rewritten is not None)

    @property
    def document(self) -> dict[str, Any]:
        """The figures and messages that JSON results and audit records share."""
        return {
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "instants": list(self.instants),
            "filesRemoved": int(self.removed),
            "bytesRemoved": int(self.bytes),
            "refusals": canonical_json.to_document(self.refusals),
            "warnings": canonical_json.to_document(self.warnings),
        }

    @property
    def removed(self) -> int:
        return sum(outcome.removed for outcome in self.outcomes)

    @property
    def bytes(self) -> int:
        return sum(outcome.bytes for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApplyResult:
    """Every table's result, in the plan's order; ``selection`` is the plan's."""

    plan_digest: str
    selection: Selection | None = None
    tables: tuple[TableResult, ...] = field(default_factory=tuple)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        return choose_worst_code(table.exit_code for table in self.tables)
