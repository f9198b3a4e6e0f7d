"""The value ranges of base files on some columns, as ranks and on other scales; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask, to_numpy
from reconciler.planners.value_scales import scale_values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRanges:
    """Value ranges of base files on some columns, one element per file of the table.

    ``lower``, ``upper``: float64, columns by files, as ranks; NaN if unknown. ``rows``: int64 per
    file. ``scales``: ``lower`` and ``upper`` on other scales with the same order. Elements of log
    files have no meaning.
    """

    lower: Floats
    upper: Floats
    rows: Integers
    scales: tuple[tuple[Floats, Floats], ...] = ()

    @classmethod
    def build(cls, bounds: Sequence[tuple[Any, Any]], rows: Integers) -> Self:
        """Build ranges from two Arrow arrays per column: least and greatest value of each file.

        Nulls mean no statistic. The two arrays have the same, ordered type.
        """
        both = [pa.concat_arrays([lower, upper]) for lower, upper in bounds]
        ranks = [_rank_values(values) for values in both]
        others = [scale_values(values, of) for values, of in zip(both, ranks, strict=True)]
        pairs = [_split_bounds(ranks, len(rows))]
        for nth in range(2 if any(others) else 0):
            found = [o[nth] if o else of for o, of in zip(others, ranks, strict=True)]
            pairs.append(_split_bounds(found, len(rows)))
        (lower, upper), *rest = pairs
        return cls(lower=lower, upper=upper, rows=rows, scales=tuple(rest))

    @property
    def is_known(self) -> Mask:
        """Return per file whether a range of it is known."""
        known = ~np.isnan(self.lower) & ~np.isnan(self.upper)
        return np.asarray(known.any(axis=0), np.bool_)


def _rank_values(values: Any) -> Floats:
    ranks = pc.rank(values, tiebreaker="dense")  # nulls rank last
    found = to_numpy(ranks).astype(np.float64)
    found[to_numpy(pc.is_null(values, nan_is_null=True))] = np.nan
    return found


def _split_bounds(columns: Sequence[Floats], files: int) -> tuple[Floats, Floats]:
    """Split values into those of lower and of upper bounds, columns by files."""
    both = np.array(columns, np.float64).reshape(len(columns), 2, files)
    return both[:, 0], both[:, 1]
