"""The value ranges of the files of many partitions, file by file; pure."""

from __future__ import annotations

from typing import Final, Self

import numpy as np

from reconciler.arrays import Floats, Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.cluster.overlap import additive_steps

#: points that stand for the rows of a partition
_POINTS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class FileRanges:
    """Files of some partitions on one scale, partition by partition.

    ``lower``, ``upper``: (columns, files); unknown ones are those of the whole partition.
    ``rows``: per file. ``partition``: per file, 0 for the first partition; ``starts``: the first
    file of each partition.
    """

    lower: Floats
    upper: Floats
    rows: Floats
    partition: Integers
    starts: Integers

    @classmethod
    def build(cls, lower: Floats, upper: Floats, rows: Floats, partition: Integers) -> Self:
        """Build from ranges that may be NaN; ``partition``: ascending, without gaps."""
        starts = np.flatnonzero(np.diff(partition, prepend=-1))
        unknown = np.isnan(lower) | np.isnan(upper)
        if unknown.any():
            least = np.minimum.reduceat(np.where(unknown, np.inf, lower), starts, axis=1)
            most = np.maximum.reduceat(np.where(unknown, -np.inf, upper), starts, axis=1)
            nothing = least > most
            least[nothing] = most[nothing] = 0.0
            lower = np.where(unknown, least[:, partition], lower)
            upper = np.where(unknown, most[:, partition], upper)
        return cls(lower, upper, np.maximum(rows, 1.0), partition, starts)

    @property
    def has_spread(self) -> Mask:
        """Return on which columns the rows of a partition differ: (columns, partitions)."""
        least = np.minimum.reduceat(self.lower, self.starts, axis=1)
        most = np.maximum.reduceat(self.upper, self.starts, axis=1)
        return np.asarray(most > least)

    def sample_points(self) -> Floats:
        """Return points spread evenly over rows and ranges: (columns, partitions, points)."""
        total = np.add.reduceat(self.rows, self.starts)
        ends = np.cumsum(self.rows)
        before = np.concatenate([[0.0], ends[self.starts[1:] - 1]])
        flat = (ends - before[self.partition]) / total[self.partition] + self.partition
        each = np.arange(len(self.starts))[:, None]
        at = np.searchsorted(flat, (np.arange(_POINTS) + 0.5) / _POINTS + each)
        last = np.append(self.starts[1:], len(self.rows))[:, None] - 1
        which = np.clip(at, self.starts[:, None], last)
        steps = additive_steps(len(self.lower))[:, None]
        within = (0.5 + np.arange(1, _POINTS + 1) * steps) % 1.0
        lower, upper = self.lower[:, which], self.upper[:, which]
        points: Floats = lower + within[:, None, :] * (upper - lower)
        return points
