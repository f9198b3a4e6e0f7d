"""Form clustering groups from slices in order, each up to a size limit; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class SliceGroups:
    """Groups of slices: group g has ``members[starts[g]:starts[g + 1]]``; both int64."""

    members: Integers
    starts: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> Integers:
        return self.members[self.starts[number] : self.starts[number + 1]]

    @property
    def sizes(self) -> Integers:
        """Return the number of slices of each group."""
        return np.diff(self.starts)

    @property
    def first_members(self) -> Integers:
        """Return the first slice of each group."""
        return self.members[self.starts[:-1]]

    def sum_values(self, values: Integers) -> Integers:
        """Return the sum of a value per slice for each group."""
        ends = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values[self.members])])
        return np.diff(ends[self.starts])

    def take(self, numbers: Integers) -> SliceGroups:
        """Return the groups with these numbers, in this order."""
        sizes = self.sizes[numbers]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        shift = np.repeat(self.starts[numbers] - starts[:-1], sizes)
        return SliceGroups(self.members[np.arange(starts[-1]) + shift], starts)

    def filter(self, is_chosen: Mask) -> SliceGroups:
        """Return the groups that are chosen."""
        return self.take(np.flatnonzero(is_chosen))

    def number_members(self) -> Integers:
        """Return the group number of each member."""
        return np.repeat(np.arange(len(self)), self.sizes)


def pack_next_fit(
    order: Integers,
    partition: Codes,
    weight: Integers,
    max_weight: int,
) -> SliceGroups:
    """Split ``order`` into groups within one partition of at most ``max_weight`` or one slice.

    ``order``: slices, partition by partition; ``partition`` and ``weight`` are per slice. A group
    ends before the slice that would exceed ``max_weight``. Source: Hudi's
    PartitionAwareClusteringPlanStrategy.buildClusteringGroupsForPartition (1.2.0).
    """
    heavy = weight[order]
    up_to = np.concatenate([np.zeros(1, np.int64), np.cumsum(heavy)]).tolist()
    ends = np.append(np.flatnonzero(np.diff(partition[order])) + 1, len(order)).tolist()
    starts, at = [0], 0
    for end in ends:
        while at < end:
            fits = bisect_right(up_to, up_to[at] + max_weight, at + 1, end + 1) - 1
            at = max(fits, at + 1)
            starts.append(at)
    return SliceGroups(order, np.array(starts, np.int64))


def find_first_in_partition(groups: SliceGroups, partition: Codes, limit: int) -> Mask:
    """Return which groups are among the first ``limit`` of their partition."""
    partitions = partition[groups.first_members]
    place = np.arange(len(groups)) - np.searchsorted(partitions, partitions)
    return place < limit


def form_groups(
    order: Integers,
    pack: Callable[[Integers], SliceGroups],
    is_worth: Callable[[SliceGroups], Mask],
    partition: Codes,
) -> tuple[list[SliceGroups], Integers]:
    """Form groups repeatedly from the slices left over; return worthwhile groups and the rest.

    The rest would be left over again: the files that the groups write do not change that.
    """
    taken: list[SliceGroups] = []
    left: list[Integers] = []
    while len(order):
        groups = pack(order)
        worth = is_worth(groups)
        taken.append(groups.filter(worth))
        rest = groups.filter(~worth).members
        # only partitions in which a group was taken can form other groups
        moved = np.zeros(int(partition.max(initial=-1)) + 1, np.bool_)
        moved[partition[groups.first_members[worth]]] = True
        again = moved[partition[rest]]
        left.append(rest[~again])
        order = rest[again]
    return taken, np.concatenate([np.zeros(0, np.int64), *left])


def concatenate_groups(parts: list[SliceGroups]) -> SliceGroups:
    """Return the groups of all parts, one after the other."""
    members = [np.zeros(0, np.int64), *(part.members for part in parts)]
    sizes = [np.zeros(1, np.int64), *(part.sizes for part in parts)]
    return SliceGroups(np.concatenate(members), np.cumsum(np.concatenate(sizes)))
