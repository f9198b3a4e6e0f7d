"""What is asked of a write, and what it came to: values without a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal

import pyarrow as pa

from reconciler.errors import UsageError
from reconciler.hudi.instant import Action
from reconciler.plan.model import Note
from reconciler.writer.request import Operation, Totals


class Way(Enum):
    """What a write does to a table, as people say it."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk-insert"
    INSERT_OVERWRITE = "insert-overwrite"
    INSERT_OVERWRITE_TABLE = "insert-overwrite-table"
    DELETE_PARTITION = "delete-partition"

    @property
    def named(self) -> str:
        """Hudi's name of it (WriteOperationType), as commits carry it."""
        return self.name

    @property
    def replaces(self) -> bool:
        """Whether file groups are gone with it."""
        return self in (Way.INSERT_OVERWRITE, Way.INSERT_OVERWRITE_TABLE, Way.DELETE_PARTITION)

    @property
    def action(self) -> Action:
        return Action.REPLACECOMMIT if self.replaces else Action.COMMIT

    @property
    def operation(self) -> Operation:
        """What becomes of its rows; those that replace others go to files of their own."""
        match self:
            case Way.INSERT:
                return Operation.INSERT
            case Way.UPSERT:
                return Operation.UPSERT
            case Way.DELETE:
                return Operation.DELETE
            case _:
                return Operation.BULK_INSERT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """One write. ``rows``: what its ``Writer`` takes, of ``schema``; ``dedupes``: one row a key.

    ``fills_missing``: columns of the table that rows have not are null. ``partitions``: paths, of
    what is deleted whole; None: what rows say. ``streams``: rows are the batch of a stream.
    """

    way: Way
    rows: Any
    schema: pa.Schema
    dedupes: bool = False
    fills_missing: bool = False
    partitions: Sequence[str] | None = None
    streams: bool = False


def way_of(text: str) -> Way:
    """The way of a name; UsageError with those that there are."""
    try:
        return Way(text)
    except ValueError:
        near = get_close_matches(text, [way.value for way in Way], n=1)
        meant = f"did you mean {near[0]}?" if near else "say one of"
        raise UsageError(
            f"operation {text}: {meant} ({', '.join(way.value for way in Way)})"
        ) from None


def check_ask(way: Way, *, has_rows: bool, dedupes: bool, partitions: Sequence[str] | None) -> None:
    """Raises UsageError for what does not go together."""
    is_deletion = way is Way.DELETE_PARTITION
    if is_deletion != (not has_rows):
        raise UsageError(
            "delete-partition takes no rows, only the paths of partitions"
            if is_deletion
            else f"{way.value} takes rows: name the files that have them"
        )
    if is_deletion != bool(partitions):
        raise UsageError(
            "delete-partition: say which partitions, by their paths, as --partition day=2026-01-31"
            if is_deletion
            else f"partitions are for delete-partition; {way.value} goes by its rows"
        )
    if dedupes and way.operation not in (Operation.INSERT, Operation.BULK_INSERT):
        raise UsageError(f"{way.value} writes one row a key by itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a write came to.

    ``how``: completed, or nothing where there was nothing to write. ``begun``: file groups that it
    began, ``filled``: that it wrote again, ``replaced``: that are gone; ``files`` and ``bytes``: of
    new base files, ``rewritten``: bytes of those that they took the place of.
    """

    how: Literal["completed", "nothing"]
    instant: str | None = None
    totals: Totals | None = None
    begun: int = 0
    filled: int = 0
    replaced: int = 0
    files: int = 0
    bytes: int = 0
    rewritten: int = 0
    warnings: tuple[Note, ...] = ()
