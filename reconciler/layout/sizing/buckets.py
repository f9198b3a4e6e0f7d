"""What a write brings, and the buckets that it is put into: one file group that one task writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """Rows of a write, counted when it is known which of them are in the table already.

    ``partitions``: paths, each once; ``inserts``: int64, new rows of each partition.
    ``group``: int64, index into Groups of each group with rows to update or delete, each once and
    in one of ``partitions``; ``updates``: int64, those rows; ``growth``: int64, by how many bytes
    they will make the base file bigger (deletes: smaller), as far as that is known.
    """

    partitions: tuple[str, ...]
    inserts: NDArray[np.int64]
    group: NDArray[np.int64]
    updates: NDArray[np.int64]
    growth: NDArray[np.int64]


def make_insert_workload(rows: dict[str, int]) -> Workload:
    """The workload of new rows by partition.

    >>> inserts_only({"p=1": 10}).partitions
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
    """One element a bucket, in the order of the workload's partitions.

    In a partition those that get new rows come first, in the order in which routing counts them;
    then those of updates alone. ``partition``: int32, index into ``partitions``. ``group``: int64,
    index into Groups, -1 for a file group that the write begins. ``inserts``, ``updates``: int64,
    rows; routing by hash comes near to ``inserts``. ``size``: int64, bytes of the newest slice now,
    log files counted as ``Groups.size`` does, 0 for a new group; ``expected_size``: int64, after.
    """

    partitions: tuple[str, ...]
    partition: NDArray[np.int32]
    group: NDArray[np.int64]
    inserts: NDArray[np.int64]
    updates: NDArray[np.int64]
    size: NDArray[np.int64]
    expected_size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.group)

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Whether the write begins the bucket's file group."""
        return self.group < 0

    def insert_buckets(self, partition: int) -> slice:
        """The buckets that share the new rows of a partition, in the order of routing."""
        start, end = np.searchsorted(self.partition, [partition, partition + 1]).tolist()
        return slice(start, start + int(np.count_nonzero(self.inserts[start:end])))
