"""Slices into clustering groups: runs of an order, cut where a group would become too big; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SliceGroups:
    """Slices group by group: group g is ``members[starts[g]:starts[g + 1]]``; both int64."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> NDArray[np.int64]:
        return self.members[self.starts[number] : self.starts[number + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of slices a group."""
        return np.diff(self.starts)

    @property
    def first_members(self) -> NDArray[np.int64]:
        """The first slice of each group."""
        return self.members[self.starts[:-1]]

    def sum_values(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum, group by group, of a number that every slice has."""
        ends = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values[self.members])])
        found: NDArray[np.int64] = np.diff(ends[self.starts])
        return found

    def take(self, numbers: NDArray[np.int64]) -> SliceGroups:
        """Some of the groups, in the order given."""
        sizes = self.sizes[numbers]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        shift = np.repeat(self.starts[numbers] - starts[:-1], sizes)
        return SliceGroups(self.members[np.arange(starts[-1]) + shift], starts)

    def number_members(self) -> NDArray[np.int64]:
        """Per member the number of its group."""
        return np.repeat(np.arange(len(self)), self.sizes)


def pack_next_fit(
    order: NDArray[np.int64],
    partition: NDArray[np.int32],
    weight: NDArray[np.int64],
    max_weight: int,
) -> SliceGroups:
    """Runs of ``order`` within one partition that weigh ``most`` or are one slice.

    ``order``: slices, partition by partition; ``partition`` and ``weight`` are per slice. A group
    is closed when the next slice would take it above ``most``; equality stays in. Source: Hudi's
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


def find_first_in_partition(
    groups: SliceGroups, partition: NDArray[np.int32], limit: int
) -> NDArray[np.bool_]:
    """Which groups are among the first ``most`` of their partition."""
    of = partition[groups.first_members]
    place = np.arange(len(groups)) - np.searchsorted(of, of)
    among: NDArray[np.bool_] = place < limit
    return among


def form_groups(
    order: NDArray[np.int64],
    pack: Callable[[NDArray[np.int64]], SliceGroups],
    is_worth: Callable[[SliceGroups], NDArray[np.bool_]],
    partition: NDArray[np.int32],
) -> tuple[list[SliceGroups], NDArray[np.int64]]:
    """Groups worth it, formed again and again of what is left, and what is left in the end.

    What is left would be left again: nothing that comes of the groups makes it worth anything.
    """
    taken: list[SliceGroups] = []
    left: list[NDArray[np.int64]] = []
    while len(order):
        groups = pack(order)
        worth = is_worth(groups)
        taken.append(groups.take(np.flatnonzero(worth)))
        rest = groups.take(np.flatnonzero(~worth)).members
        # only where a group was taken can others form
        moved = np.zeros(int(partition.max(initial=-1)) + 1, np.bool_)
        moved[partition[groups.first_members[worth]]] = True
        again = moved[partition[rest]]
        left.append(rest[~again])
        order = rest[again]
    return taken, np.concatenate([np.zeros(0, np.int64), *left])


def concatenate_groups(parts: list[SliceGroups]) -> SliceGroups:
    """All groups of the parts, one after the other."""
    members = [np.zeros(0, np.int64), *(part.members for part in parts)]
    sizes = [np.zeros(1, np.int64), *(part.sizes for part in parts)]
    return SliceGroups(np.concatenate(members), np.cumsum(np.concatenate(sizes)))
