"""Select the sampled rows of a group of base files and the bytes each row represents; pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Floats, Integers, Mask
from reconciler.layout.curves.pseudo_random import count_sample_rows
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import CandidateSlices
from reconciler.state.sampling.model import RowSample, SampleRequest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedGroup:
    """Base files that are rewritten together, as ordered rows of the state's files.

    ``sizes``: bytes of each file. ``rows``: number of rows in all; ``row_bytes``: bytes of rows
    with those of logs. ``partition``: its code; ``is_whole``: there are no log files.
    """

    members: Integers
    sizes: Integers
    rows: int
    row_bytes: int
    outputs: int
    partition: int
    is_whole: bool

    @classmethod
    def build(
        cls,
        candidates: CandidateSlices,
        slices: Integers,
        rows: Integers,
        sizes: RecordSize,
        outputs: int,
    ) -> SimulatedGroup:
        """Build the group of slices that become ``outputs`` files; ``rows``: row count per file."""
        based = slices[candidates.has_base[slices]]
        base_rows, logs = candidates.base_row[based], candidates.logs[slices]
        return cls(
            members=base_rows,
            sizes=candidates.base[based],
            rows=int(rows[base_rows].sum()),
            row_bytes=int(sizes.data_bytes(candidates.base[slices], logs).sum()),
            outputs=outputs,
            partition=int(candidates.partition[slices[0]]),
            is_whole=bool((logs == 0).all()) and len(based) == len(slices),
        )

    def plan_output(self, sizes: RecordSize) -> tuple[float, float]:
        """Return the planned number of files and their bytes."""
        return self.outputs, float(self.row_bytes + self.outputs * sizes.fixed)

    def request_rows(self, count: int) -> SampleRequest:
        """Return the request for a sample with ``count`` rows to fit a layout to."""
        total = float(self.sizes.sum()) or 1.0
        wanted = [count_sample_rows(count, size, total) for size in self.sizes.tolist()]
        return SampleRequest(files=self.members, fit_rows=np.array(wanted, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledGroup:
    """The sampled rows of a group.

    ``weight``: bytes that each row represents. ``counts``: sampled rows per member.
    ``position``: where a row is in the bytes of the group, from 0 to 1. ``is_all``: no row is
    missing. ``fit_counts``: how often the rewrite uses each row to fit its layout; ``fitted_rows``:
    the same per member; ``is_fit_known``: all these rows are sampled.
    """

    rows: Any
    weight: Floats
    counts: Integers
    position: Floats
    is_all: bool
    fit_counts: NDArray[np.int8]
    fitted_rows: Integers
    is_fit_known: bool

    @classmethod
    def draw(cls, sample: RowSample, group: SimulatedGroup) -> SampledGroup:
        starts = np.searchsorted(sample.file, group.members)
        counts = np.searchsorted(sample.file, group.members, side="right") - starts
        sizes = np.maximum(group.sizes, 1).astype(np.float64)
        stands = _share_bytes(sizes, counts > 0)
        begins = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
        each = np.maximum(counts, 1)
        nth = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        inside = (nth + 0.5) / np.repeat(each, counts)
        place = np.repeat(begins, counts) + inside * np.repeat(sizes, counts)
        at = np.searchsorted(sample.files, group.members)
        at = np.minimum(at, max(len(sample.files) - 1, 0))
        known = group.is_whole and len(sample.files) > 0
        known = known and bool((sample.files[at] == group.members).all())
        rows = np.repeat(starts, counts) + nth
        times = sample.fit_counts[rows]
        member = np.repeat(np.arange(len(counts)), counts)
        return cls(
            rows=_take_rows(sample.rows, rows),
            weight=np.repeat(stands / each, counts),
            counts=counts,
            position=place / sizes.sum(),
            is_all=known and bool((sample.total[at] == counts).all()),
            fit_counts=times,
            fitted_rows=np.bincount(member, times, len(counts)).astype(np.int64),
            is_fit_known=known and bool(sample.is_whole[at].all()),
        )


def _take_rows(table: Any, rows: Integers) -> Any:
    """Return these rows of a table; those of one file follow each other."""
    if not len(rows):
        return table.slice(0, 0)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    firsts = rows[np.append(0, breaks)].tolist()
    lengths = np.diff(np.concatenate([[0], breaks, [len(rows)]])).tolist()
    parts = [table.slice(*span) for span in zip(firsts, lengths, strict=True)]
    return pa.concat_tables(parts).combine_chunks()


def _share_bytes(sizes: Floats, is_there: Mask) -> Floats:
    """Return the bytes each sampled member represents: its own and its unsampled neighbours'.

    >>> _share_bytes(np.array([1.0, 2.0, 4.0, 8.0]), np.array([False, True, False, True]))
    array([0., 7., 0., 8.])
    """
    sampled = np.flatnonzero(is_there)
    if not len(sampled):
        return sizes
    middle = np.cumsum(sizes) - sizes / 2
    ends = (middle[sampled][1:] + middle[sampled][:-1]) / 2
    nearest = sampled[np.searchsorted(ends, middle)]
    return np.bincount(nearest, sizes, len(sizes)).astype(np.float64)
