"""Rank a column's values: small whole numbers that say which quantile of a sample each is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Integers
from reconciler.layout.curves.lanes import (
    NAN,
    Lane,
    double_values,
    is_null,
    to_plain_array,
)
from reconciler.layout.curves.mark_search import (
    MarkSearch,
    MarkTrie,
    build_marks,
    count_lane_marks,
)
from reconciler.layout.curves.sorted_sample import SampledColumn, make_lane_reader, read_marks
from reconciler.lazy_dataclass import dataclass

Ranks = NDArray[np.uint16]

#: quantiles of a column; more do not improve the statistics of files and row groups
MAX_QUANTILES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankScale:
    """The marks between ranks of one column.

    ``ranks``: the rank below all marks, from each mark on, and last that of null. ``kind``: the
    type of the sample's column, to which other columns are cast. ``lanes``: number per mark.
    """

    name: str
    kind: pa.DataType
    search: MarkSearch | MarkTrie
    lanes: int
    ranks: Ranks


def make_quantile_scale(sample: SampledColumn, bits: int) -> RankScale:
    """Return a scale with ranks from 0 to ``2**bits - 1``: the share of sampled rows below a value.

    Frequent values get a rank of their own. NaN has at most the next to last rank and null at most
    the last one; neither shares its rank with another value.
    """
    top, rows = 1 << bits, max(sample.rows, 1)
    runs = _quantile_runs(sample, min(MAX_QUANTILES, top - 3))
    at = sample.starts[runs] * top // rows
    null = min(max(sample.valid * top // rows, 2), top - 1)
    marks = read_marks(sample, runs)
    if not pa.types.is_floating(sample.column.type):
        return _make_scale(sample, marks, [0], np.minimum(at, null - 1), [null])
    is_number = marks[0] < NAN
    nan = min(max(_count_numbers(sample) * top // rows, 1), top - 2)
    marks = np.append(marks[:, is_number], [[NAN]], axis=1)
    return _make_scale(
        sample, marks, [0], np.minimum(at[is_number], nan - 1), [nan, max(null, nan + 1)]
    )


def make_step_scale(sample: SampledColumn, runs: Integers) -> RankScale:
    """Return a scale that counts the given runs that a value has reached; null reaches one more."""
    runs = runs[runs < len(sample.first)]
    return _make_scale(sample, read_marks(sample, runs), np.arange(len(runs) + 2))


def _make_scale(sample: SampledColumn, marks: Lane, *at: Sequence[int] | Integers) -> RankScale:
    return RankScale(
        name=sample.name,
        kind=sample.column.type,
        search=build_marks(marks),
        lanes=len(marks),
        ranks=np.concatenate(at).astype(np.uint16),
    )


def _count_numbers(sample: SampledColumn) -> int:
    """Return the number of rows with a value other than NaN."""
    last = sample.first[-1:]
    is_nan = bool(np.isnan(double_values(sample.column)[last]).any())
    return int(sample.starts[len(sample.first) - 1]) if is_nan else sample.valid


def _quantile_runs(sample: SampledColumn, most: int) -> Integers:
    """Return the runs at which quantiles begin, and the run after each frequent value.

    All runs if they are few.
    """
    count = len(sample.first)
    if count <= most:
        return np.arange(count)
    step = sample.valid / most
    places = (np.arange(1, most) * step).astype(np.int64)
    begins = np.searchsorted(sample.starts, places, "right") - 1
    heavy = begins[np.diff(sample.starts)[begins] > step]
    runs = np.union1d(begins, heavy + 1)
    return runs[runs < count]


def rank_values(scale: RankScale, column: Any) -> Ranks:
    """Return the rank of each value.

    Raises ArrowInvalid for a value that does not fit the type of the sample.
    """
    column = to_plain_array(column)
    if column.type != scale.kind:
        column = to_plain_array(column.cast(scale.kind))
    lanes = make_lane_reader(column, scale.name, scale.lanes)
    places = count_lane_marks(scale.search, len(column), lanes)
    places[is_null(column)] = len(scale.ranks) - 1
    return scale.ranks[places]
