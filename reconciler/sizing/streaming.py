"""Assign rows as they come, when nobody knows how many will: state kept from write to write.

Small files are filled one after the other, then one new file after the other. What is known of a
partition's small files is kept until a checkpoint is done, since files that are being written are
not in the table yet. Source: Flink's BucketAssigner, BucketAssignFunction and WriteProfile of Hudi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, assert_never

import numpy as np

from reconciler.hudi.arrow import integers
from reconciler.sizing.candidates import small_files
from reconciler.sizing.filling import rows_of_a_full_file
from reconciler.sizing.groups import Groups
from reconciler.sizing.rules import ByHudi, Rule, Steady, TableKind
from reconciler.sizing.tasks import Task


@dataclass(frozen=True, slots=True)
class Room:
    """How many rows more a file takes."""

    file_id: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Rows that go to a file. ``begins``: the file group is not in the table yet."""

    file_id: str
    rows: int
    begins: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigner:
    """What one task knows; every method gives what it knows then, and changes nothing.

    ``per_file``: rows of a new file. ``small``: the room left in small files of the partitions that
    were looked at since the last completed checkpoint. ``new``: the new file of each partition that
    takes rows. ``begun``: ids of those begun since the last checkpoint began. ``completed``: of
    checkpoints, 1 if the new files of a partition stay until one more.
    """

    per_file: int
    small: Mapping[str, tuple[Room, ...]] = field(default_factory=dict)
    new: Mapping[str, Room] = field(default_factory=dict)
    begun: frozenset[str] = frozenset()
    completed: int = 0

    def __post_init__(self) -> None:
        assert self.per_file > 0, "a file has rows"

    def insert(
        self,
        partition: str,
        rows: int,
        *,
        look: Callable[[], Sequence[Room]],
        draw: Callable[[], str],
    ) -> tuple[Self, tuple[Share, ...]]:
        """Put so many new rows of a partition into files, in the order of the shares.

        The same as as many calls for one row each. ``look`` gives the room in the partition's small
        files (``rooms``), and is called once for a partition between two completed checkpoints;
        ``draw`` gives the id of a new file of this task.
        """
        small = list(self.small[partition] if partition in self.small else look())
        new, begun, shares = self.new.get(partition), set(self.begun), []
        while rows > 0:
            while small and small[0].rows <= 0:
                small.pop(0)
            if small:
                room = small[0]
            elif new is not None and new.rows > 0:
                room = new
            else:
                room = Room(draw(), self.per_file)
                begun.add(room.file_id)
            taken = min(room.rows, rows)
            rows -= taken
            left = Room(room.file_id, room.rows - taken)
            if small:
                small[0] = left
            else:
                new = left
            is_new = room.file_id in begun
            shares.append(Share(file_id=room.file_id, rows=taken, begins=is_new))
        known = replace(
            self,
            small={**self.small, partition: tuple(small)},
            new=self.new if new is None else {**self.new, partition: new},
            begun=frozenset(begun),
        )
        return known, tuple(shares)

    def checkpoint_began(self) -> Self:
        """What was assigned so far is being written: its new files count as being there."""
        return replace(self, begun=frozenset())

    def checkpoint_completed(self, per_file: int | None = None) -> Self:
        """Look at small files anew, with ``per_file`` by what is known of record sizes now.

        New files are let go at every second notification only: the first one may come before what
        was written is committed, and rows in between would begin another file each time.
        """
        is_second = self.completed > 0
        return replace(
            self,
            per_file=self.per_file if per_file is None else per_file,
            small={},
            new={} if is_second else self.new,
            completed=0 if is_second else 1,
        )


def rooms(
    groups: Groups,
    partition: str,
    kind: TableKind,
    rule: Rule,
    task: Task = Task(),  # noqa: B008
) -> tuple[Room, ...]:
    """The room in the small files of a partition that are this task's, in the rule's order.

    A cap on rewriting has no say: nobody knows what a file will get. Groups of pending compactions
    take no rows; Flink's writers would append to them.
    """
    at = small_files(groups, partition, kind, rule)
    ids = groups.file_id.take(integers(at))
    left = np.maximum(rule.sizes.target - groups.size[at], 0)
    match rule:
        case ByHudi():
            rows = left // rule.average
        case Steady():
            rows = np.floor(left / rule.record.per_row).astype(np.int64)
        case _:
            assert_never(rule)
    keep = np.flatnonzero(task.owns(ids) & (groups.size[at] > 0) & (rows > 0)).tolist()
    return tuple(Room(ids[nth].as_py(), int(rows[nth])) for nth in keep)


def rows_of_a_new_file(rule: Rule) -> int:
    """How many rows a new file takes, at least one; by Hudi's rule rounded down, as Flink does."""
    match rule:
        case ByHudi():
            return max(rule.split or rule.sizes.target // rule.average, 1)
        case Steady():
            return rows_of_a_full_file(rule)
        case _:
            assert_never(rule)
