"""A model of Hudi's Flink writer, which assigns the rows of a stream one by one.

Small files are filled one after the other, then new files one after the other. The known small
files of a partition are kept until a checkpoint completes, because files that are being written are
not in the table yet. Small files are divided among tasks by a hash of their ids, so that no two
tasks fill one. Source: BucketAssigner, BucketAssignFunction and WriteProfile of Hudi's Flink
writer; Flink's KeyGroupRangeAssignment and MathUtils.murmurHash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, assert_never

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import to_arrow
from reconciler.hudi.codecs.java_hash import compute_java_hashes
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    HudiRule,
    SteadyRule,
    TableKind,
)
from reconciler.layout.sizing.candidates import find_small_files
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """One of ``tasks`` tasks, numbered from 0. ``key_groups``: Flink's maximum parallelism.

    >>> ids = to_arrow(["a", "b", "c", "d"])
    >>> first, second = (StreamTask(number=n, tasks=2).owns(ids) for n in (0, 1))
    >>> bool((first != second).all())
    True
    """

    number: int = 0
    tasks: int = 1
    key_groups: int = 128

    def __post_init__(self) -> None:
        assert 0 <= self.number < self.tasks <= self.key_groups, "a task is one of its tasks"

    def owns(self, file_ids: Any) -> NDArray[np.bool_]:
        """Return a mask of the file ids that belong to this task; each belongs to one task."""
        key_group = murmur_hashes(compute_java_hashes(file_ids)) % self.key_groups
        found: NDArray[np.bool_] = key_group * self.tasks // self.key_groups == self.number
        return found

    def first_owned(self, file_ids: Iterator[str]) -> str:
        """Return the first file id that belongs to this task."""
        return next(file_id for file_id in file_ids if self.owns(to_arrow([file_id]))[0])


def murmur_hashes(codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return MurmurHash3 of each 32-bit number, as an absolute value.

    >>> murmur_hashes(np.array([0, -0x789ABCDF], np.int32)).tolist() == [0x2362F9DE, 0x0AA4AE95]
    True
    """
    bits = codes.view(np.uint32) * np.uint32(0xCC9E2D51)
    bits = _rotate_left(bits, 15) * np.uint32(0x1B873593)
    bits = _rotate_left(bits, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    bits ^= np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits ^= bits >> np.uint32(shift)
        bits *= np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    signed = bits.view(np.int32).astype(np.int64)
    # the least number has no absolute value in Java, and Flink returns 0
    found: NDArray[np.int64] = np.where(signed == -(1 << 31), 0, np.abs(signed))
    return found


def _rotate_left(bits: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    found: NDArray[np.uint32] = (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
    return found


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
    task: StreamTask = StreamTask(),
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
            return rule.rows_per_full_file
        case _:
            assert_never(rule)
