"""The step that deletes partitions: frozen decisions, an object per partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Literal

from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredPartition:
    """A partition that is deleted, as it was when the plan was made.

    ``files``, ``bytes``: base and log files of its current file slices; ``rows``: None if unknown.
    ``date``: the time that it holds by its path, None if the age of its newest write counts.
    ``last_commit``: the instant of its newest write.
    """

    path: str
    files: int
    bytes: int
    rows: int | None
    date: str | None = field(default=None, metadata={"optional": True})
    last_commit: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePartitionStep:
    """Delete partitions past ``retention.partitions``, sorted by path.

    Their file groups are replaced by nothing: a later clean removes the files.
    """

    kind: Literal["deletePartition"] = "deletePartition"
    partitions: tuple[ExpiredPartition, ...]


def deleted_partitions(steps: Iterable[object]) -> tuple[ExpiredPartition, ...]:
    """Return the partitions that steps of a plan delete."""
    deletions = (step.partitions for step in steps if isinstance(step, DeletePartitionStep))
    return tuple(partition for partitions in deletions for partition in partitions)
