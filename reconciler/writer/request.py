"""What is asked of a write, and what it came to: values without a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal

import pyarrow as pa

from reconciler.errors import UsageError
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.model import Note
from reconciler.writer.job import RowCounts, RowOperation


class WriteMode(Enum):
    """What a write does to a table, as people say it."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk-insert"
    INSERT_OVERWRITE = "insert-overwrite"
    INSERT_OVERWRITE_TABLE = "insert-overwrite-table"
    DELETE_PARTITION = "delete-partition"

    @property
    def hudi_name(self) -> str:
        """Hudi's name of it (WriteOperationType), as commits carry it."""
        return self.name

    @property
    def replaces(self) -> bool:
        """Whether file groups are gone with it."""
        return self in (
            WriteMode.INSERT_OVERWRITE,
            WriteMode.INSERT_OVERWRITE_TABLE,
            WriteMode.DELETE_PARTITION,
        )

    @property
    def action(self) -> Action:
        return Action.REPLACECOMMIT if self.replaces else Action.COMMIT

    @property
    def operation(self) -> RowOperation:
        """What becomes of its rows; those that replace others go to files of their own."""
        match self:
            case WriteMode.INSERT:
                return RowOperation.INSERT
            case WriteMode.UPSERT:
                return RowOperation.UPSERT
            case WriteMode.DELETE:
                return RowOperation.DELETE
            case _:
                return RowOperation.BULK_INSERT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteRequest:
    """One write. ``rows``: what its ``Writer`` takes, of ``schema``; ``dedupes``: one row a key.

    ``fills_missing``: columns of the table that rows have not are null. ``partitions``: paths, of
    what is deleted whole; None: what rows say. ``is_stream_batch``: rows are the batch of a stream.
    """

    mode: WriteMode
    rows: Any
    schema: pa.Schema
    dedupes: bool = False
    fills_missing: bool = False
    partitions: Sequence[str] | None = None
    is_stream_batch: bool = False


def parse_mode(text: str) -> WriteMode:
    """The way of a name; UsageError with those that there are."""
    try:
        return WriteMode(text)
    except ValueError:
        near = get_close_matches(text, [way.value for way in WriteMode], n=1)
        meant = f"did you mean {near[0]}?" if near else "say one of"
        raise UsageError(
            f"operation {text}: {meant} ({', '.join(way.value for way in WriteMode)})"
        ) from None


def check_request(
    mode: WriteMode, *, has_rows: bool, dedupes: bool, partitions: Sequence[str] | None
) -> None:
    """Raises UsageError for what does not go together."""
    is_deletion = mode is WriteMode.DELETE_PARTITION
    if is_deletion != (not has_rows):
        raise UsageError(
            "delete-partition takes no rows, only the paths of partitions"
            if is_deletion
            else f"{mode.value} takes rows: name the files that have them"
        )
    if is_deletion != bool(partitions):
        raise UsageError(
            "delete-partition: say which partitions, by their paths, as --partition day=2026-01-31"
            if is_deletion
            else f"partitions are for delete-partition; {mode.value} goes by its rows"
        )
    if dedupes and mode.operation not in (RowOperation.INSERT, RowOperation.BULK_INSERT):
        raise UsageError(f"{mode.value} writes one row a key by itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What a write came to.

    ``status``: completed, or nothing where there was nothing to write. ``created_groups``: file groups that it
    began, ``rewritten_groups``: that it wrote again, ``replaced_groups``: that are gone; ``files`` and ``bytes``: of
    new base files, ``rewritten_bytes``: bytes of those that they took the place of.
    """

    status: Literal["completed", "nothing"]
    instant: str | None = None
    counts: RowCounts | None = None
    created_groups: int = 0
    rewritten_groups: int = 0
    replaced_groups: int = 0
    files: int = 0
    bytes: int = 0
    rewritten_bytes: int = 0
    warnings: tuple[Note, ...] = ()
