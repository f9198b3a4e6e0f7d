"""Assign the rows of a write to buckets: existing small files first, then new files.

A bucket is one file group that one task writes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    CopyOnWrite,
    FilledFiles,
    HudiRule,
    MergeOnRead,
    SmallFiles,
    TableKind,
)
from reconciler.layout.sizing.candidates import find_small_files
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """The row counts of a write, after its rows are matched with the table.

    ``partitions``: distinct paths. ``inserts``: int64, new rows of each partition. ``group``:
    int64, index into FileGroupSizes of each group with rows to update or delete, each once and in
    one of ``partitions``. ``updates``: int64, those rows. ``growth``: int64, bytes by which they
    enlarge the base file (negative for deletes), as far as known.
    """

    partitions: tuple[str, ...]
    inserts: Integers
    group: Integers
    updates: Integers
    growth: Integers


def make_insert_workload(rows: dict[str, int]) -> Workload:
    """Return the workload of new rows by partition.

    >>> make_insert_workload({"p=1": 10}).partitions
    ('p=1',)
    """
    nothing = np.zeros(0, np.int64)
    return Workload(
        partitions=tuple(rows),
        inserts=np.array(list(rows.values()), np.int64),
        group=nothing,
        updates=nothing,
        growth=nothing,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketAssignment:
    """The buckets of a write, an element a bucket, in the order of the workload's partitions.

    In a partition, buckets with new rows come first, in the order in which routing numbers them,
    then buckets with updates only. ``partition``: int32, index into ``partitions``. ``group``:
    int64, index into FileGroupSizes, -1 for a new group. ``inserts``, ``updates``: int64, rows;
    routing by hash meets ``inserts`` only approximately. ``appends``: bool, whether its rows go to
    a log file of its slice, instead of a new base file. ``moves_to``: int64, the bucket whose file
    takes the old rows of this one's, -1 if they stay; None if no rows move. ``size``: int64,
    bytes of the newest slice before the write, as in ``FileGroupSizes.size``, 0 for a new group.
    ``expected_size``: int64, bytes after the write. ``index_bucket``: int64, the number in the
    table's bucket index, which routes new rows; None without such an index.
    """

    partitions: tuple[str, ...]
    partition: Codes
    group: Integers
    inserts: Integers
    updates: Integers
    appends: Mask
    size: Integers
    expected_size: Integers
    index_bucket: Integers | None = None
    moves_to: Integers | None = None

    def __len__(self) -> int:
        return len(self.group)

    @property
    def is_new(self) -> Mask:
        """A mask of the buckets with a new file group."""
        return self.group < 0

    def list_moves(self) -> list[tuple[int, int]]:
        """Return each bucket whose file's old rows move, with the bucket that takes them."""
        if self.moves_to is None:
            return []
        moving = np.flatnonzero(self.moves_to >= 0)
        return list(zip(moving.tolist(), self.moves_to[moving].tolist(), strict=True))

    def insert_buckets(self, partition: int) -> slice:
        """Return the range of the buckets that take a partition's new rows, in routing order."""
        start, end = np.searchsorted(self.partition, [partition, partition + 1]).tolist()
        return slice(start, start + int(np.count_nonzero(self.inserts[start:end])))


def assign_rows(
    groups: FileGroupSizes,
    workload: Workload,
    kind: TableKind,
    rule: AssignmentRule,
    *,
    has_commits: bool = True,
    streams: bool = False,
) -> BucketAssignment:
    """Return the buckets of a write: each new row is in one, each group with updates has one.

    ``has_commits``: True if the table has a completed write. ``streams``: True if the write is the
    batch of a stream, which Hudi's rule assigns like Hudi's Flink writer, row by row; the steady
    rule assigns all rows at once. The result depends only on the arguments, and with the steady
    rule not on the order of partitions, groups or rows.
    """
    if streams and isinstance(rule, HudiRule):
        rule = replace(rule, is_stream=True)
    return _BucketBuilder(groups, workload, kind, rule, has_commits).build()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PartitionBuckets:
    """The buckets of a partition: their groups, -1 for new ones, and their new rows.

    ``moves_to``: the group that takes the old rows of each group, -1 if they stay.
    """

    group: Integers
    inserts: Integers
    appends: Mask
    moves_to: Integers


@dataclass(slots=True)
class _BucketBuilder:
    groups: FileGroupSizes
    workload: Workload
    kind: TableKind
    rule: AssignmentRule
    has_commits: bool

    def build(self) -> BucketAssignment:
        work = self.workload
        updates, growth = np.zeros((2, len(self.groups) + 1), np.int64)  # last: of new groups
        updates[work.group], growth[work.group] = work.updates, work.growth
        parts = [
            self._build_partition(path, int(rows), updates, growth)
            for path, rows in zip(work.partitions, work.inserts.tolist(), strict=True)
        ]
        counts = [len(part.group) for part in parts]
        nothing = np.zeros(0, np.int64)
        group = np.concatenate([nothing, *(part.group for part in parts)])
        inserts = np.concatenate([nothing, *(part.inserts for part in parts)])
        size = np.append(self.groups.size, 0)[group]
        record = self.rule.record_size
        added = np.rint(inserts * record.per_row).astype(np.int64) + (group < 0) * record.fixed
        wanted = np.concatenate([nothing, *(part.moves_to for part in parts)])
        moves_to = self._find_buckets(group, wanted)
        moved = _count_moved_bytes(size, moves_to, record.fixed)
        return BucketAssignment(
            partitions=work.partitions,
            partition=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            group=group,
            inserts=inserts,
            updates=updates[group],
            appends=np.concatenate([np.zeros(0, np.bool_), *(part.appends for part in parts)]),
            size=size,
            expected_size=size + growth[group] + added + moved,
            moves_to=moves_to if (moves_to >= 0).any() else None,
        )

    def _find_buckets(self, group: Integers, wanted: Integers) -> Integers:
        """Return the bucket of each wanted group, -1 where none is wanted."""
        bucket = np.full(len(self.groups) + 1, -1, np.int64)
        bucket[group[group >= 0]] = np.flatnonzero(group >= 0)
        found: Integers = bucket[wanted]  # the last one is that of -1
        return found

    def _build_partition(
        self, path: str, rows: int, updates: Integers, growth: Integers
    ) -> _PartitionBuckets:
        touched = self.groups.partition_range(path)
        updated = np.flatnonzero(updates[touched] > 0) + touched.start
        at = np.zeros(0, np.int64)
        filled, new, small = FilledFiles.without_moves(at), at, at
        if rows > 0:
            small = find_small_files(
                self.groups, path, self.kind, self.rule, has_commits=self.has_commits
            )
            filled = self.rule.fill(self._describe_files(small, updates, growth), rows)
            new = self.rule.split(rows - int(filled.takes.sum()))
        takes, moves_to = filled.takes, np.append(small, -1)[filled.moves_to]
        taking = takes > 0
        only_moved = np.isin(small, moves_to) & ~taking & ~np.isin(small, updated)
        alone = np.concatenate([small[only_moved], updated[~np.isin(updated, small[taking])]])
        group = np.concatenate([small[taking], np.full(len(new), -1, np.int64), alone])
        inserts = np.concatenate([takes[taking], new, np.zeros(len(alone), np.int64)])
        appends = self._find_appends(group, inserts, small) & ~np.isin(group, small[only_moved])
        return _PartitionBuckets(
            group=group,
            inserts=inserts,
            appends=appends,
            moves_to=np.concatenate(
                [moves_to[taking], np.full(len(new) + len(alone), -1, np.int64)]
            ),
        )

    def _describe_files(self, at: Integers, updates: Integers, growth: Integers) -> SmallFiles:
        is_updated = updates[at] > 0
        is_copied = isinstance(self.kind, CopyOnWrite)
        appends = isinstance(self.kind, MergeOnRead) and self.kind.indexes_logs
        return SmallFiles(
            size=self.groups.size[at],
            growth=growth[at],
            rewritten=self._rewritten_bytes(at, updates),
            is_updated=is_updated,
            is_free=np.full(len(at), appends) | (is_copied & is_updated),
        )

    def _find_appends(self, group: Integers, inserts: Integers, small: Integers) -> Mask:
        """Return which buckets append a log file; ``small``: groups that may take new rows.

        Hudi also rewrites small files that get updates alone, if their partition gets new rows.
        """
        if isinstance(self.kind, CopyOnWrite):
            return np.zeros(len(group), np.bool_)
        if self.kind.indexes_logs:
            return np.ones(len(group), np.bool_)
        appends: Mask = (group >= 0) & (inserts == 0)
        return appends & ~np.isin(group, small) if isinstance(self.rule, HudiRule) else appends

    def _rewritten_bytes(self, at: Integers, updates: Integers) -> Integers:
        """Return the bytes of old rows that each file rewrites only to take new rows.

        Zero for a file that is rewritten anyway, and if rows are appended as log files. The
        fixed bytes do not count, because a new file has them too.
        """
        rows: Integers = np.maximum(self.groups.base[at] - self.rule.record_size.fixed, 0)
        if isinstance(self.kind, CopyOnWrite):
            return np.where(updates[at] > 0, 0, rows)
        return np.zeros_like(rows) if self.kind.indexes_logs else rows


def _count_moved_bytes(size: Integers, moves_to: Integers, fixed: int) -> Integers:
    """Return the bytes that each bucket's file gains or loses by rows that move."""
    moving = np.flatnonzero(moves_to >= 0)
    data = np.maximum(size[moving] - fixed, 0)
    gained = np.zeros(len(size), np.int64)
    gained[moving] -= data
    np.add.at(gained, moves_to[moving], data)
    return gained
