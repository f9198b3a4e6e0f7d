"""Fit layouts to sampled rows as the rewrite does, and cut the rows into files; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np

from reconciler.arrays import Floats, Integers, to_arrow
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.pseudo_random import pick_spread_rows, pseudo_random_bits
from reconciler.layout.curves.row_layout import (
    Curve,
    DirectMapping,
    FitSample,
    RowLayout,
    assign_files,
    compute_keys,
    fit_layout,
    needed_sample_rows,
    sort_by_key,
)
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.layout.sizing.split_rule import FOOTER_BYTES, SplitRule
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.prediction.encoded_size import SizeGrowth
from reconciler.planners.prediction.sampled_group import SampledGroup, SimulatedGroup
from reconciler.state.clustering_layout import ClusteringLayout as Declared
from reconciler.state.sampling.model import ForecastInput

#: bytes of a part of the rewrite
_PART_BYTES: Final = 64 * 1024 * 1024
#: number of layouts to try if the rewrite's own sample is unknown
TRIES: Final = 3

#: with at most this many rows every try uses all of them
_FEW_ROWS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationInput:
    """The common input of simulations. ``queries``: predicates; ``split``: sizes of new files."""

    queries: tuple[str, ...]
    forecast_input: ForecastInput
    layout: Declared
    sizes: RecordSize
    split: SplitRule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedFiles:
    """The new file of each row, int64, and the bytes of each file; 0 for a file without rows."""

    file: Integers
    size: Floats


def fit_layouts(
    question: SimulationInput, group: SimulatedGroup, sample: SampledGroup
) -> Iterator[RowLayout | None]:
    """Yield the layout of the rewrite if its sample is known, else several possible ones."""
    if not question.layout.columns:
        yield None
        return
    if sample.is_fit_known and bool((group.sizes <= _PART_BYTES).all()):
        yield _fit_layout(question, group, sample, *_rows_of_rewrite(group, sample))
        return
    wanted, count = needed_sample_rows(group.outputs), len(sample.rows)
    third = pseudo_random_bits(count, 0) % np.uint64(TRIES)
    for nth in range(TRIES):
        # the tries use different rows: with common rows their results would be too similar
        rows = np.flatnonzero(third == nth) if count > _FEW_ROWS else np.arange(count)
        if len(rows) > wanted:
            rows = rows[pick_spread_rows(len(rows), wanted, nth)]
        yield _fit_layout(
            question, group, sample, rows, sample.weight[rows], pseudo_random_bits(len(rows), nth)
        )


def _rows_of_rewrite(group: SimulatedGroup, sample: SampledGroup) -> tuple[Integers, Floats, Any]:
    """Return the rows that the rewrite fits its layout to, their bytes and tie breakers.

    This repeats rewrite.sampling for parts that are whole files.
    """
    rows = np.repeat(np.arange(len(sample.fit_counts)), sample.fit_counts)
    sizes = np.maximum(group.sizes, 1) / np.maximum(sample.fitted_rows, 1)
    given = int((sample.fitted_rows > 0).sum())
    return rows, np.repeat(sizes, sample.fitted_rows), pseudo_random_bits(len(rows), given)


def _fit_layout(
    question: SimulationInput,
    group: SimulatedGroup,
    sample: SampledGroup,
    rows: Integers,
    sizes: Floats,
    ties: Any,
) -> RowLayout:
    columns = [name for name in question.layout.columns if name in sample.rows.schema.names]
    picked = sample.rows.select(columns).take(to_arrow(rows)).combine_chunks()
    return fit_layout(
        FitSample(rows=picked, ties=ties, sizes=sizes),
        columns,
        files=group.outputs,
        curve=cast("Curve", question.layout.curve or "kd-tree"),
        queries=question.queries,
        direct=_direct_mapping(question, columns) if question.layout.mapping == "direct" else None,
    )


def _direct_mapping(question: SimulationInput, columns: Sequence[str]) -> DirectMapping:
    names = question.forecast_input.schema.names
    positions = [names.index(name.partition(".")[0]) for name in columns]
    return DirectMapping(positions=positions or None, zone=question.forecast_input.zone)


class FileCutter:
    """Cuts rows into the files of a layout and splits files that are too big."""

    def __init__(
        self,
        question: SimulationInput,
        group: SimulatedGroup,
        sample: SampledGroup,
        layout: RowLayout | None,
        grown: SizeGrowth | None,
    ) -> None:
        self._ask, self._drawn, self._outputs = question, sample, group.outputs
        self._fixed = (
            question.sizes.fixed if grown is None else question.sizes.fixed + grown.footer_bytes
        )
        self._lanes: Lane | None = None
        if layout is None:
            place = np.minimum(sample.position * group.outputs, group.outputs - 1)
            self._file = place.astype(np.int64)
        else:
            ties = pseudo_random_bits(len(sample.rows), TRIES) if layout.needs_ties else None
            self._lanes = compute_keys(layout, sample.rows.select(list(layout.columns)), ties=ties)
            self._file = assign_files(layout, self._lanes, ties=ties).astype(np.int64)
        each = sample.weight if grown is None else sample.weight * grown.by_file[self._file]
        self._each = each / sample.weight.sum() * group.row_bytes
        self._size = self._fixed + np.bincount(self._file, self._each, group.outputs)

    def count_parts(self, times: float = 1.0) -> Integers:
        """Return into how many parts each file is split, with sizes scaled by ``times``."""
        split, size = self._ask.split, self._size * times
        parts = np.ones(self._outputs, np.int64)
        if not split.can_split(max(self._fixed, FOOTER_BYTES)):
            return parts
        needed = np.maximum(2, split.count_parts(size - self._fixed, self._fixed))
        parts = np.where(size > split.max_bytes, needed, parts)
        rows = np.bincount(self._file, minlength=self._outputs)
        return np.minimum(parts, np.maximum(rows, 1))

    def cut_files(self, parts: Integers) -> SimulatedFiles:
        """Return the files after each was split into so many parts."""
        file, count = self._file.copy(), self._outputs
        for big in np.flatnonzero(parts > 1).tolist():
            rows = np.flatnonzero(file == big)
            if self._lanes is not None:
                rows = rows[sort_by_key(self._lanes[:, rows])]
            part = np.arange(len(rows)) * parts[big] // len(rows)
            file[rows[part > 0]] = count + part[part > 0] - 1
            count += int(parts[big]) - 1
        data = np.bincount(file, self._each, count)
        return SimulatedFiles(file=file, size=np.where(data > 0, self._fixed + data, 0.0))
