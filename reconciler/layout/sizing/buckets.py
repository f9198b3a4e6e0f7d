"""The workload of a write, and its buckets. A bucket is one file group that one task writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.arrays import Codes, Integers, Mask


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
    routing by hash meets ``inserts`` only approximately. ``size``: int64, bytes of the newest slice
    before the write, as in ``FileGroupSizes.size``, 0 for a new group. ``expected_size``: int64,
    bytes after the write.
    """

    partitions: tuple[str, ...]
    partition: Codes
    group: Integers
    inserts: Integers
    updates: Integers
    size: Integers
    expected_size: Integers

    def __len__(self) -> int:
        return len(self.group)

    @property
    def is_new(self) -> Mask:
        """A mask of the buckets with a new file group."""
        return self.group < 0

    def insert_buckets(self, partition: int) -> slice:
        """Return the range of the buckets that take a partition's new rows, in routing order."""
        start, end = np.searchsorted(self.partition, [partition, partition + 1]).tolist()
        return slice(start, start + int(np.count_nonzero(self.inserts[start:end])))
