"""Put the rows of a write into buckets: small files that there are, then new ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import assert_never

import numpy as np

from reconciler.hudi.arrow import integers
from reconciler.sizing.buckets import Assignment, Workload
from reconciler.sizing.candidates import small_files
from reconciler.sizing.filling import (
    Counts,
    SmallFiles,
    filled_by_hudi,
    filled_steadily,
    new_by_hudi,
    new_steadily,
)
from reconciler.sizing.groups import Groups
from reconciler.sizing.rules import ByHudi, CopyOnWrite, MergeOnRead, Rule, Steady, TableKind
from reconciler.sizing.streaming import Assigner, rooms, rows_of_a_new_file


def assign(
    groups: Groups,
    workload: Workload,
    kind: TableKind,
    rule: Rule,
    *,
    has_commits: bool = True,
    streams: bool = False,
) -> Assignment:
    """The buckets of a write; every new row is in one, and every group with updates has one.

    ``has_commits``: a write was completed on the table. ``streams``: it is the batch of a stream,
    which Hudi's rule assigns row by row (``sizing.streaming``); a steady assignment knows all of
    its rows, as of any other write. Depends on nothing but its arguments, nor, in a steady
    assignment, on the order in which partitions, groups or rows come.
    """
    return _Assigning(groups, workload, kind, rule, has_commits, streams).assignment()


@dataclass(slots=True)
class _Assigning:
    groups: Groups
    workload: Workload
    kind: TableKind
    rule: Rule
    has_commits: bool
    streams: bool

    def assignment(self) -> Assignment:
        work = self.workload
        updates, growth = _per_group(self.groups, work)
        parts = [
            self._of_partition(path, int(rows), updates, growth)
            for path, rows in zip(work.partitions, work.inserts.tolist(), strict=True)
        ]
        counts = [len(group) for group, _ in parts]
        nothing = np.zeros(0, np.int64)
        group = np.concatenate([nothing, *(group for group, _ in parts)])
        inserts = np.concatenate([nothing, *(rows for _, rows in parts)])
        is_new = group < 0
        size = np.where(is_new, 0, _at(self.groups.size, group))
        grown = np.where(is_new, 0, _at(growth, group))
        return Assignment(
            partitions=work.partitions,
            partition=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            group=group,
            inserts=inserts,
            updates=np.where(is_new, 0, _at(updates, group)),
            size=size,
            expected=size + grown + self._bytes(inserts) + is_new * self._fixed,
        )

    def _of_partition(
        self, path: str, rows: int, updates: Counts, growth: Counts
    ) -> tuple[Counts, Counts]:
        """The buckets of a partition: their groups, -1 for new ones, and their new rows."""
        touched = self.groups.within(path)
        updated = np.flatnonzero(updates[touched] > 0) + touched.start
        at = np.zeros(0, np.int64)
        takes, new = at, at
        if rows > 0 and self.streams and isinstance(self.rule, ByHudi):
            at, takes, new = self._as_they_come(path, rows, self.rule)
        elif rows > 0:
            at = small_files(self.groups, path, self.kind, self.rule, has_commits=self.has_commits)
            takes, new = self._filled(at, rows, updates, growth)
            at, takes = at[takes > 0], takes[takes > 0]
        alone = updated[~np.isin(updated, at)]
        group = np.concatenate([at, np.full(len(new), -1, np.int64), alone])
        return group, np.concatenate([takes, new, np.zeros(len(alone), np.int64)])

    def _as_they_come(self, path: str, rows: int, rule: ByHudi) -> tuple[Counts, Counts, Counts]:
        """Small files, rows that each takes, and those of each new one, one after the other."""
        drawn = map(str, count())
        _, shares = Assigner(per_file=rows_of_a_new_file(rule)).insert(
            path,
            rows,
            look=lambda: rooms(self.groups, path, self.kind, rule) if self.has_commits else (),
            draw=lambda: next(drawn),
        )
        at = small_files(self.groups, path, self.kind, rule, has_commits=self.has_commits)
        ids = self.groups.file_id.take(integers(at)).to_pylist()
        known = dict(zip(ids, at.tolist(), strict=True))
        old = [(known[share.file_id], share.rows) for share in shares if not share.begins]
        new = [share.rows for share in shares if share.begins]
        found = np.array(old, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1], np.array(new, np.int64)

    def _filled(
        self, at: Counts, rows: int, updates: Counts, growth: Counts
    ) -> tuple[Counts, Counts]:
        """Rows that each small file takes, and those of each new one."""
        files = SmallFiles(
            size=self.groups.size[at], growth=growth[at], rewritten=self._rewritten(at, updates)
        )
        match self.rule:
            case ByHudi() as rule:
                takes = filled_by_hudi(files, rows, rule)
                return takes, new_by_hudi(rows - int(takes.sum()), rule)
            case Steady() as rule:
                takes = filled_steadily(files, rows, rule)
                return takes, new_steadily(rows - int(takes.sum()), rule)
            case _:
                assert_never(self.rule)

    def _rewritten(self, at: Counts, updates: Counts) -> Counts:
        """Bytes of rows that are written again only for the new ones; a new file has its cost too.

        None of a file whose rows change anyway, and none where rows are appended as log files.
        """
        rows: Counts = np.maximum(self.groups.base[at] - self._fixed, 0)
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
    def _fixed(self) -> int:
        return self.rule.record.fixed if isinstance(self.rule, Steady) else 0

    def _bytes(self, rows: Counts) -> Counts:
        per_row = self.rule.record.per_row if isinstance(self.rule, Steady) else self.rule.average
        found: Counts = np.rint(rows * per_row).astype(np.int64)
        return found


def _per_group(groups: Groups, work: Workload) -> tuple[Counts, Counts]:
    """Rows that are updated, and the growth by them, of every group."""
    updates, growth = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    updates[work.group] = work.updates
    growth[work.group] = work.growth
    return updates, growth


def _at(values: Counts, group: Counts) -> Counts:
    """The values of groups; of new ones any."""
    return values[group] if len(values) else np.zeros(len(group), np.int64)
