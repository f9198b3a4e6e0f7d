"""Define the request and the result of a write: values without a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal

import pyarrow as pa

from reconciler.errors import UsageError
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.writer.job import RowCounts, RowOperation
from reconciler.writer.lookup_costs import KeyLookup


class WriteMode(Enum):
    """The modes of a write, by the names of the command line."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk-insert"
    INSERT_OVERWRITE = "insert-overwrite"
    INSERT_OVERWRITE_TABLE = "insert-overwrite-table"
    DELETE_PARTITION = "delete-partition"

    @property
    def hudi_name(self) -> str:
        """Hudi's name of the mode (WriteOperationType), as commits carry it."""
        return self.name

    @property
    def replaces(self) -> bool:
        """True if the write replaces file groups."""
        return self in (
            WriteMode.INSERT_OVERWRITE,
            WriteMode.INSERT_OVERWRITE_TABLE,
            WriteMode.DELETE_PARTITION,
        )

    def get_action(self, table_type: str) -> Action:
        """Return the action of the write's instant.

        >>> WriteMode.UPSERT.get_action("MERGE_ON_READ").value
        'deltacommit'
        """
        return Action.REPLACECOMMIT if self.replaces else get_plain_action(table_type)

    @property
    def operation(self) -> RowOperation:
        """The operation on the rows; rows that replace others go to new files."""
        return RowOperation.__members__.get(self.name, RowOperation.BULK_INSERT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteRequest:
    """One write. ``rows`` of ``schema``, in the form that its ``RowWriter`` takes.

    ``dedupes``: one row per key is written. ``fills_missing``: columns that the rows lack become
    null. ``partitions``: paths to delete; None: the rows decide. ``batch``: a stream's name and its
    batch number. ``extra``: stored in the instant's metadata.
    """

    mode: WriteMode
    rows: Any
    schema: pa.Schema
    dedupes: bool = False
    fills_missing: bool = False
    partitions: Sequence[str] | None = None
    batch: tuple[str, int] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def get_plain_action(table_type: str) -> Action:
    """Return the action of writes that replace no file groups."""
    return Action.DELTACOMMIT if table_type == "MERGE_ON_READ" else Action.COMMIT


def parse_mode(text: str) -> WriteMode:
    """Return the mode of a name; raises UsageError listing the modes."""
    try:
        return WriteMode(text)
    except ValueError:
        near = get_close_matches(text, [mode.value for mode in WriteMode], n=1)
        hint = f"did you mean {near[0]}?" if near else "must be one of"
        raise UsageError(
            f"operation {text}: {hint} ({', '.join(mode.value for mode in WriteMode)})"
        ) from None


def check_request(
    mode: WriteMode, *, has_rows: bool, dedupes: bool, partitions: Sequence[str] | None
) -> None:
    """Raise UsageError for options that contradict each other."""
    is_deletion = mode is WriteMode.DELETE_PARTITION
    if is_deletion != (not has_rows):
        raise UsageError(
            "delete-partition takes partition paths, not rows"
            if is_deletion
            else f"{mode.value} needs rows: name the source files"
        )
    if is_deletion != bool(partitions):
        raise UsageError(
            "delete-partition needs partition paths, for example --partition day=2026-01-31"
            if is_deletion
            else f"partitions are only for delete-partition; {mode.value} takes them from its rows"
        )
    if dedupes and mode.operation not in (RowOperation.INSERT, RowOperation.BULK_INSERT):
        raise UsageError(f"{mode.value} always writes one row per key")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of a write.

    ``status``: completed, or nothing if there was nothing to write. ``created_groups``,
    ``rewritten_groups``, ``appended_groups``, ``replaced_groups``: file groups that it created,
    wrote again, appended log files to, or replaced; ``files`` and ``bytes``: totals of new base
    files; ``log_files`` and ``log_bytes``: of new log files; ``rewritten_bytes``: bytes of files
    that the base files replace. ``partitions_written``: folders with new files;
    ``partitions_deleted``: those of a write that deletes partitions. ``lookup``: how the keys of an
    upsert or a deletion were looked up, None if none were.
    """

    status: Literal["completed", "nothing"]
    instant: str | None = None
    counts: RowCounts | None = None
    created_groups: int = 0
    rewritten_groups: int = 0
    appended_groups: int = 0
    replaced_groups: int = 0
    files: int = 0
    bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    rewritten_bytes: int = 0
    warnings: tuple[Note, ...] = ()
    partitions_written: tuple[str, ...] = ()
    partitions_deleted: tuple[str, ...] = ()
    lookup: KeyLookup | None = None
