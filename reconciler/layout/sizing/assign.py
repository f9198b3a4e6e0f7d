"""Assign the rows of a write to buckets: existing small files first, then new files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    CopyOnWrite,
    HudiRule,
    MergeOnRead,
    SteadyRule,
    TableKind,
)
from reconciler.layout.sizing.buckets import BucketAssignment, Workload
from reconciler.layout.sizing.candidates import find_small_files
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.filling import (
    Counts,
    SmallFiles,
    fill_by_hudi,
    fill_steadily,
    split_by_hudi,
    split_steadily,
)


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

    ``has_commits``: whether the table has a completed write. ``streams``: whether the write is the
    batch of a stream, which Hudi's rule assigns like Hudi's Flink writer, row by row; the steady
    rule assigns all rows at once. The result depends only on the arguments, and with the steady
    rule not on the order of partitions, groups or rows.
    """
    return _BucketBuilder(groups, workload, kind, rule, has_commits, streams).build()


@dataclass(slots=True)
class _BucketBuilder:
    groups: FileGroupSizes
    workload: Workload
    kind: TableKind
    rule: AssignmentRule
    has_commits: bool
    streams: bool

    def build(self) -> BucketAssignment:
        work = self.workload
        updates, growth = _spread_over_groups(self.groups, work)
        parts = [
            self._build_partition(path, int(rows), updates, growth)
            for path, rows in zip(work.partitions, work.inserts.tolist(), strict=True)
        ]
        counts = [len(group) for group, _ in parts]
        nothing = np.zeros(0, np.int64)
        group = np.concatenate([nothing, *(group for group, _ in parts)])
        inserts = np.concatenate([nothing, *(rows for _, rows in parts)])
        is_new = group < 0
        size = np.where(is_new, 0, _values_at(self.groups.size, group))
        grown = np.where(is_new, 0, _values_at(growth, group))
        return BucketAssignment(
            partitions=work.partitions,
            partition=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            group=group,
            inserts=inserts,
            updates=np.where(is_new, 0, _values_at(updates, group)),
            size=size,
            expected_size=size + grown + self._row_bytes(inserts) + is_new * self._fixed_bytes,
        )

    def _build_partition(
        self, path: str, rows: int, updates: Counts, growth: Counts
    ) -> tuple[Counts, Counts]:
        """Return the buckets of a partition: their groups, -1 for new ones, and their new rows."""
        touched = self.groups.partition_range(path)
        updated = np.flatnonzero(updates[touched] > 0) + touched.start
        at = np.zeros(0, np.int64)
        takes, new = at, at
        if rows > 0:
            at = find_small_files(
                self.groups, path, self.kind, self.rule, has_commits=self.has_commits
            )
            if self.streams and isinstance(self.rule, HudiRule):
                at = at[self.groups.size[at] > 0]
            takes, new = self._fill_files(at, rows, updates, growth)
            at, takes = at[takes > 0], takes[takes > 0]
        alone = updated[~np.isin(updated, at)]
        group = np.concatenate([at, np.full(len(new), -1, np.int64), alone])
        return group, np.concatenate([takes, new, np.zeros(len(alone), np.int64)])

    def _fill_files(
        self, at: Counts, rows: int, updates: Counts, growth: Counts
    ) -> tuple[Counts, Counts]:
        """Return the rows that each small file takes, and the rows of each new file."""
        files = SmallFiles(
            size=self.groups.size[at],
            growth=growth[at],
            rewritten=self._rewritten_bytes(at, updates),
        )
        match self.rule:
            case HudiRule() as rule:
                takes = fill_by_hudi(files, rows, rule)
                left = rows - int(takes.sum())
                return takes, split_by_hudi(left, rule, is_stream=self.streams)
            case SteadyRule() as rule:
                takes = fill_steadily(files, rows, rule)
                return takes, split_steadily(rows - int(takes.sum()), rule)
            case _:
                assert_never(self.rule)

    def _rewritten_bytes(self, at: Counts, updates: Counts) -> Counts:
        """Return the bytes of old rows that each file rewrites only to take new rows.

        Zero for a file that is rewritten anyway, and where rows are appended as log files. The
        fixed bytes do not count, because a new file has them too.
        """
        rows: Counts = np.maximum(self.groups.base[at] - self._fixed_bytes, 0)
        match self.kind:
            case CopyOnWrite():
                return np.where(updates[at] > 0, 0, rows)
            case MergeOnRead(indexes_logs=True):
                return np.zeros(len(at), np.int64)
            case MergeOnRead():
                return rows
            case _:
                assert_never(self.kind)

    @property
    def _fixed_bytes(self) -> int:
        return self.rule.record_size.fixed if isinstance(self.rule, SteadyRule) else 0

    def _row_bytes(self, rows: Counts) -> Counts:
        per_row = (
            self.rule.record_size.per_row
            if isinstance(self.rule, SteadyRule)
            else self.rule.average
        )
        found: Counts = np.rint(rows * per_row).astype(np.int64)
        return found


def _spread_over_groups(groups: FileGroupSizes, work: Workload) -> tuple[Counts, Counts]:
    """Return the updated rows and the growth in bytes of every group."""
    updates, growth = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    updates[work.group] = work.updates
    growth[work.group] = work.growth
    return updates, growth


def _values_at(values: Counts, group: Counts) -> Counts:
    """Return the values of groups; arbitrary values for new groups."""
    return values[group] if len(values) else np.zeros(len(group), np.int64)
