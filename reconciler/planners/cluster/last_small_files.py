"""Choose which partitions are packed until no small file is left, and what takes the rest; pure.

A share of small files lets a large partition keep some. Under ``files.quiet`` a partition is
rewritten when nobody writes to it any more, so that all of its small files are packed then. If
their rows are less than a file of declared size, the smallest other file takes them.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastSmallFiles:
    """``is_packed``: per partition, its small files can become fewer, or none.

    ``takes_rest``: per slice, it takes the rows of the small files of its partition.
    """

    is_packed: Mask
    takes_rest: Mask

    @classmethod
    def none(cls, candidates: CandidateSlices) -> Self:
        """Return that no partition is packed for this."""
        count = len(candidates.view.files.partitions)
        return cls(
            is_packed=np.zeros(count, np.bool_), takes_rest=np.zeros(len(candidates), np.bool_)
        )


def choose_last_small_files(
    candidates: CandidateSlices,
    is_small: Mask,
    can_take: Mask,
    *,
    small: int,
    sizes: RecordSize,
) -> LastSmallFiles:
    """Return what is packed so that partitions keep no small file.

    ``is_small``: per slice, it is below ``small`` and may be rewritten. ``can_take``: per slice, it
    may take the rows of others.
    """
    chosen, partition = LastSmallFiles.none(candidates), candidates.partition
    count = len(chosen.is_packed)
    rows = sizes.data_bytes(candidates.base, candidates.logs)
    smalls = np.bincount(partition[is_small], minlength=count)
    together = np.zeros(count, np.int64)
    np.add.at(together, partition[is_small], rows[is_small])
    is_short = (smalls > 0) & (sizes.fixed + together < small)
    takers = _find_smallest(candidates, can_take & is_short[partition])
    chosen.takes_rest[takers] = True
    chosen.is_packed[smalls > 1] = True
    chosen.is_packed[partition[takers]] = True
    return chosen


def _find_smallest(candidates: CandidateSlices, among: Mask) -> Integers:
    """Return the slice with the fewest bytes of each partition."""
    slices = np.flatnonzero(among)
    order = slices[np.lexsort((slices, candidates.bytes[slices], candidates.partition[slices]))]
    _, first = np.unique(candidates.partition[order], return_index=True)
    return order[first]
