"""Simulate the rewrite of a group with its sampled rows and predict what queries read; pure.

The value ranges of a file's sampled rows are narrower than those of all its rows. The sample shows
how fast they widen: queries read fewer files in halves and quarters of the sample than in all of
it. That growth is extrapolated to all rows, and it slows down with every doubling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Floats, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.layout.curves.row_layout import RowLayout
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.prediction.encoded_size import GrowthEstimator, SizeGrowth
from reconciler.planners.prediction.file_reads import add_partition_values, find_reads
from reconciler.planners.prediction.sample_statistics import QUARTERS, SampleStatistics
from reconciler.planners.prediction.sampled_group import SampledGroup, SimulatedGroup
from reconciler.planners.prediction.sampled_layout import (
    FileCutter,
    SimulatedFiles,
    SimulationInput,
    fit_layouts,
)

#: least and greatest ratio between the growth of one doubling and the previous one
_RATE_RANGE: Final = (0.0, 0.95)
#: relative error of estimated file sizes, and the error for bytes of columns that order the rows,
#: which compress better when similar values are adjacent
_SIZE_ERROR: Final = 0.1
_ORDERED_COLUMN_ERROR: Final = 0.25
#: relative error of the size of one file, and the increase per doubling from encoded rows to all
#: rows; a file near the size limit may be split or not
_FILE_SIZE_ERROR: Final = (0.02, 0.015)
#: half-width of an error bar in standard deviations
_DEVIATIONS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedReads:
    """The reads of queries from a group's new files, for quarters, halves and all sampled rows.

    ``reads``: float64, (2, layouts, 3, queries), files and bytes. ``share``: share of the rows
    sampled. ``output``: number of new files and their bytes; None: as planned. ``growth``: size of
    rows in new files relative to today; None if no whole rows are known. ``split_error``: float64,
    (2, queries), error of files and bytes because files near the size limit may be split or not.
    """

    reads: Floats
    share: float
    output: tuple[float, float] | None = None
    growth: float | None = None
    split_error: Floats = field(default_factory=lambda: np.zeros((2, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedReads:
    """The expected reads of queries, and their variance: (2, queries), files and bytes."""

    reads: Floats
    variance: Floats

    @property
    def files(self) -> Floats:
        return np.asarray(self.reads[0])

    @property
    def bytes(self) -> Floats:
        return np.asarray(self.reads[1])


def simulate_group(question: SimulationInput, group: SimulatedGroup) -> SimulatedReads | None:
    """Simulate the rewrite of a group; None if it has no sampled rows or cannot be rewritten."""
    sample = question.forecast_input.sample
    if sample is None or not len(group.members):
        return None
    sample_rows = SampledGroup.draw(sample, group)
    if not len(sample_rows.rows):
        return None
    try:
        cells = SampleStatistics.build(sample_rows.rows, question.queries)
        asking = _Simulation(
            question, group, sample_rows, cells, GrowthEstimator(group, sample.whole)
        )
        tried = [asking.try_layout(layout) for layout in fit_layouts(question, group, sample_rows)]
    except (UnsupportedError, pa.ArrowException, OverflowError):
        return None
    grown = [trial.growth for trial in tried if trial.growth is not None]
    return SimulatedReads(
        reads=np.stack([trial.reads for trial in tried], axis=1),
        share=min(1.0, len(sample_rows.rows) / max(group.rows, 1))
        if not sample_rows.is_all
        else 1.0,
        output=(
            _mean(trial.output[0] for trial in tried),
            _mean(trial.output[1] for trial in tried),
        ),
        growth=_mean(grown) if grown else None,
        split_error=np.mean([trial.split_error for trial in tried], axis=0),
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def extrapolate_reads(
    groups: Sequence[SimulatedReads], outputs: Sequence[tuple[float, float]]
) -> list[ExpectedReads]:
    """Extrapolate the reads of each group to all rows; ``outputs``: its files and bytes."""
    rates = [_growth_rate([group.reads[at] for group in groups]) for at in (0, 1)]
    grown = [group.growth for group in groups if group.growth is not None]
    extrapolated = []
    for group, limits in zip(groups, outputs, strict=True):
        doublings = max(-math.log2(max(group.share, 1e-9)), 0.0)
        both = [
            _extrapolate(counts, doublings, rate, limit)
            for counts, rate, limit in zip(group.reads, rates, limits, strict=True)
        ]
        reads, variance = (np.stack(part) for part in zip(*both, strict=True))
        factor = np.array([[1.0], [_mean(grown) if group.growth is None and grown else 1.0]])
        split_variance = (group.split_error / _DEVIATIONS) ** 2
        extrapolated.append(
            ExpectedReads(reads=factor * reads, variance=factor**2 * variance + split_variance)
        )
    return extrapolated


def estimate_size_error(question: SimulationInput) -> float:
    """Return the relative error of the sizes of new files."""
    sample = question.forecast_input.sample
    shares = sample.column_shares if sample is not None else {}
    return _SIZE_ERROR + _ORDERED_COLUMN_ERROR * sum(
        shares.get(name, 0.0) for name in question.layout.columns
    )


def relative_error(
    expected: ExpectedReads, kept: Floats, size_error: float = _SIZE_ERROR
) -> Floats:
    """Return the relative half-width of everything that is read.

    ``kept``: (2, queries), files and bytes of slices that stay. ``size_error``: from
    ``estimate_size_error``.
    """
    spread = _DEVIATIONS * np.sqrt(expected.variance)
    spread[1] += size_error * expected.bytes
    return np.asarray((spread / np.maximum(expected.reads + kept, 1.0)).max(axis=0))


def _growth_rate(counts: Sequence[Floats]) -> float:
    """Return the ratio between the growth of one doubling and the previous one."""
    if not counts:
        return 0.0
    first = sum(float((c[:, 1] - c[:, 0]).sum()) for c in counts)
    second = sum(float((c[:, 2] - c[:, 1]).sum()) for c in counts)
    return float(np.clip(second / first, *_RATE_RANGE)) if first > 0 else 0.0


def _extrapolate(
    counts: Floats, doublings: float, rate: float, most: float
) -> tuple[Floats, Floats]:
    """Return the counts after more doublings, and their variance."""
    last = counts[:, 2].mean(axis=0)
    growth = np.maximum(counts[:, 2] - counts[:, 1], 0.0).mean(axis=0)
    times = rate * (1 - rate**doublings) / (1 - rate) if rate else 0.0
    added = np.minimum(growth * times, most - np.minimum(last, most))
    tries = len(counts)
    if tries == 1:
        return last + added, (added / 2) ** 2
    own = counts[:, 2].var(axis=0, ddof=1)
    # few tries say little about one query, so the average variance of all queries counts as much
    usual = own.sum() / max(last.sum(), 1e-9) * last
    return last + added, (own + usual) / 2 * (1 + 1 / tries) + (added / 2) ** 2


# --- reads of simulated files --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LayoutReads:
    """The reads with one layout: (2, 3, queries); other fields as in ``SimulatedReads``."""

    reads: Floats
    output: tuple[float, float]
    growth: float | None
    split_error: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Simulation:
    question: SimulationInput
    group: SimulatedGroup
    sample: SampledGroup
    statistics: SampleStatistics
    estimator: GrowthEstimator

    def try_layout(self, layout: RowLayout | None) -> _LayoutReads:
        grown = self.estimator.estimate_growth(layout)
        cutting = FileCutter(self.question, self.group, self.sample, layout, grown)
        parts = cutting.count_parts()
        made = cutting.cut_files(parts)
        reads = self._count_reads(made)
        unsure = np.zeros((2, len(self.question.queries)))
        nearly = _file_size_error(grown)
        for times in (1 - nearly, 1 + nearly):
            other = cutting.count_parts(times)
            if (other != parts).any():
                others = self._count_reads(cutting.cut_files(other))
                unsure = np.maximum(unsure, np.abs(others[:, 2] - reads[:, 2]))
        return _LayoutReads(
            reads=reads,
            output=(float((made.size > 0).sum()), float(made.size.sum())),
            growth=None if grown is None else grown.overall,
            split_error=unsure,
        )

    def _count_reads(self, made: SimulatedFiles) -> Floats:
        """Return files and bytes that queries read of quarters, halves and all rows."""
        question, count = self.question, len(made.size)
        index, has_rows = self.statistics.build_index(made.file, count)
        at = to_arrow(np.full(len(index), self.group.partition))
        partition_values = {
            name: column.take(at)
            for name, column in question.forecast_input.partition_values.items()
        }
        reads = find_reads(
            question.queries,
            add_partition_values(index, partition_values),
            np.zeros(len(index), np.int64),
            schema=question.forecast_input.schema,
            zone=question.forecast_input.zone,
        )
        kept = (reads.kept & has_rows).reshape(len(question.queries), 2 * QUARTERS - 1, count)
        return _level_means(np.stack([kept.sum(axis=2).astype(np.float64), kept @ made.size]))


def _file_size_error(grown: SizeGrowth | None) -> float:
    """Return the relative error of the size of one new file."""
    if grown is None:
        return _SIZE_ERROR
    return min(
        _FILE_SIZE_ERROR[0] - _FILE_SIZE_ERROR[1] * math.log2(max(grown.share, 1e-9)), _SIZE_ERROR
    )


def _level_means(cells: Floats) -> Floats:
    """Return the means of quarters, halves and all rows: (2, 3, queries)."""
    ends = (0, QUARTERS, QUARTERS + 2, QUARTERS + 3)
    return np.stack([cells[..., a:b].mean(axis=-1) for a, b in pairwise(ends)], axis=1)
