"""Assign the rows of a stream, whose number is unknown, with state kept between writes.

Small files are filled one after the other, then new files one after the other. The known small
files of a partition are kept until a checkpoint completes, because files that are being written are
not in the table yet. Source: BucketAssigner, BucketAssignFunction and WriteProfile of Hudi's Flink
writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, assert_never

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    HudiRule,
    SteadyRule,
    TableKind,
)
from reconciler.layout.sizing.candidates import find_small_files
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.filling import rows_per_full_file
from reconciler.layout.sizing.flink_tasks import StreamTask


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """The number of further rows that a file takes."""

    file_id: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShare:
    """Rows that go to one file. ``is_new``: the file group is not in the table yet."""

    file_id: str
    rows: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAssigner:
    """The state of one task; immutable, so every method returns the next state.

    ``rows_per_file``: of a new file. ``small``: free space in the small files of the partitions
    examined since the last completed checkpoint. ``new``: the new file of each partition that still
    takes rows. ``new_ids``: ids of the files created since the last checkpoint started.
    ``completed_checkpoints``: 1 if new files are kept until one more checkpoint.
    """

    rows_per_file: int
    small: Mapping[str, tuple[FreeSpace, ...]] = field(default_factory=dict)
    new: Mapping[str, FreeSpace] = field(default_factory=dict)
    new_ids: frozenset[str] = frozenset()
    completed_checkpoints: int = 0

    def __post_init__(self) -> None:
        assert self.rows_per_file > 0, "a file has rows"

    def assign_inserts(
        self,
        partition: str,
        rows: int,
        *,
        find_free_space: Callable[[], Sequence[FreeSpace]],
        new_file_id: Callable[[], str],
    ) -> tuple[Self, tuple[RowShare, ...]]:
        """Assign new rows of a partition to files; return the next state and the shares in order.

        One call for n rows equals n calls for one row. ``find_free_space``: returns the free space
        in the partition's small files (``list_free_space``); it is called once per partition
        between two completed checkpoints. ``new_file_id``: returns an id for a new file of this
        task.
        """
        small = list(self.small[partition] if partition in self.small else find_free_space())
        new, new_ids, shares = self.new.get(partition), set(self.new_ids), []
        while rows > 0:
            while small and small[0].rows <= 0:
                small.pop(0)
            if small:
                room = small[0]
            elif new is not None and new.rows > 0:
                room = new
            else:
                room = FreeSpace(new_file_id(), self.rows_per_file)
                new_ids.add(room.file_id)
            taken = min(room.rows, rows)
            rows -= taken
            left = FreeSpace(room.file_id, room.rows - taken)
            if small:
                small[0] = left
            else:
                new = left
            is_new = room.file_id in new_ids
            shares.append(RowShare(file_id=room.file_id, rows=taken, is_new=is_new))
        known = replace(
            self,
            small={**self.small, partition: tuple(small)},
            new=self.new if new is None else {**self.new, partition: new},
            new_ids=frozenset(new_ids),
        )
        return known, tuple(shares)

    def start_checkpoint(self) -> Self:
        """Return the state after a checkpoint started: new files now count as existing."""
        return replace(self, new_ids=frozenset())

    def complete_checkpoint(self, rows_per_file: int | None = None) -> Self:
        """Return the state after a checkpoint completed: small files are examined again.

        ``rows_per_file``: by the record sizes known now. New files are forgotten only at every
        second notification: the first may arrive before the write is committed, and each row in
        between would create another file.
        """
        is_second = self.completed_checkpoints > 0
        return replace(
            self,
            rows_per_file=self.rows_per_file if rows_per_file is None else rows_per_file,
            small={},
            new={} if is_second else self.new,
            completed_checkpoints=0 if is_second else 1,
        )


def list_free_space(
    groups: FileGroupSizes,
    partition: str,
    kind: TableKind,
    rule: AssignmentRule,
    task: StreamTask = StreamTask(),  # noqa: B008
) -> tuple[FreeSpace, ...]:
    """Return the free space in this task's small files of a partition, in the rule's order.

    The rewrite cap is ignored, because the number of rows per file is unknown. Groups of pending
    compactions take no rows, although Flink's writers would append to them.
    """
    at = find_small_files(groups, partition, kind, rule)
    ids = groups.file_id.take(to_arrow(at))
    left = np.maximum(rule.sizes.target - groups.size[at], 0)
    match rule:
        case HudiRule():
            rows = left // rule.average
        case SteadyRule():
            rows = np.floor(left / rule.record_size.per_row).astype(np.int64)
        case _:
            assert_never(rule)
    keep = np.flatnonzero(task.owns(ids) & (groups.size[at] > 0) & (rows > 0)).tolist()
    return tuple(FreeSpace(ids[nth].as_py(), int(rows[nth])) for nth in keep)


def rows_per_new_file(rule: AssignmentRule) -> int:
    """Return the rows of a new file, at least one; Hudi's rule rounds down, as Flink does."""
    match rule:
        case HudiRule():
            return max(rule.split_rows or rule.sizes.target // rule.average, 1)
        case SteadyRule():
            return rows_per_full_file(rule)
        case _:
            assert_never(rule)
