"""The value ranges of base files on some columns, as ranks and on other scales; pure.

Ranks have no distances: the bounds of files that cover nearly the same values spread over half of
all ranks. As numbers these bounds are close together; on a logarithmic scale they are also close
if a few values are far greater than the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask, to_numpy
from reconciler.lazy_dataclass import dataclass

#: bytes of a text that are converted to a number
_LETTERS: Final = 7


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
        others = [scale_values(values, rank) for values, rank in zip(both, ranks, strict=True)]
        pairs = [_split_bounds(ranks, len(rows))]
        for nth in range(2 if any(others) else 0):
            scaled = [o[nth] if o else rank for o, rank in zip(others, ranks, strict=True)]
            pairs.append(_split_bounds(scaled, len(rows)))
        (lower, upper), *rest = pairs
        return cls(lower=lower, upper=upper, rows=rows, scales=tuple(rest))

    @property
    def is_known(self) -> Mask:
        """Return per file whether a range of it is known."""
        known = ~np.isnan(self.lower) & ~np.isnan(self.upper)
        return np.asarray(known.any(axis=0), np.bool_)


def _rank_values(values: Any) -> Floats:
    ranks = pc.rank(values, tiebreaker="dense")  # nulls rank last
    numbers = to_numpy(ranks).astype(np.float64)
    numbers[to_numpy(pc.is_null(values, nan_is_null=True))] = np.nan
    return numbers


def _split_bounds(columns: Sequence[Floats], files: int) -> tuple[Floats, Floats]:
    """Split values into those of lower and of upper bounds, columns by files."""
    both = np.array(columns, np.float64).reshape(len(columns), 2, files)
    return both[:, 0], both[:, 1]


def scale_values(values: Any, ranks: Floats) -> list[Floats]:
    """Return the values as numbers and by magnitude, float64, NaN if the rank is NaN.

    Returns an empty list if the values are not numbers or the scales merge different values.

    >>> found = scale_values(pa.array([1, None, 1000, -1000]), np.array([2.0, np.nan, 3.0, 1.0]))
    >>> [scale.round(1).tolist() for scale in found]
    [[1.0, nan, 1000.0, -1000.0], [0.9, nan, 7.6, -7.6]]
    >>> scale_values(pa.array(["a", "b"]), np.array([1.0, 2.0]))[0].tolist() != [1.0, 2.0]
    True
    """
    numbers = _to_numbers(values, ranks)
    if numbers is None:
        return []
    numbers[np.isnan(ranks)] = np.nan
    sizes = np.abs(numbers[~np.isnan(numbers) & (numbers != 0)])
    with np.errstate(over="ignore", invalid="ignore"):  # a scale without distances is dropped
        by_size = np.arcsinh(numbers / sizes.min()) if len(sizes) else numbers
        keep = [scale for scale in (numbers, by_size) if _is_faithful(scale, ranks)]
    return keep if len(keep) == 2 else keep * 2  # noqa: PLR2004 (both, or one for both)


def _to_numbers(values: Any, ranks: Floats) -> Floats | None:
    kind, types = values.type, pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return to_numpy(values.cast(pa.float64(), safe=False)).copy()
    if types.is_string(kind) or types.is_large_binary(kind) or types.is_binary(kind):
        return _text_to_numbers(values.cast(pa.large_binary()), ranks)
    return None


def _text_to_numbers(values: Any, ranks: Floats) -> Floats | None:
    """Convert texts to numbers from the bytes after their common prefix."""
    known = np.flatnonzero(~np.isnan(ranks))
    if not len(known):
        return None
    order = known[np.argsort(ranks[known])]
    first, last = values[int(order[0])].as_py(), values[int(order[-1])].as_py()
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    start = values.offset
    ends = np.frombuffer(values.buffers()[1], np.int64)[start : start + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"\0", np.uint8)
    numbers = np.zeros(len(values))
    for letter in range(_LETTERS):
        at = ends[:-1] + same + letter
        digit = np.where(at < ends[1:], data[np.minimum(at, len(data) - 1)], 0)
        numbers = numbers * 256 + digit
    return numbers


def _is_faithful(scale: Floats, ranks: Floats) -> bool:
    """Return whether the scale rises wherever ranks differ and its range is finite."""
    known = np.flatnonzero(~np.isnan(ranks))
    order = known[np.argsort(ranks[known], kind="stable")]
    ordered = scale[order]
    if len(ordered) and not np.isfinite(ordered[-1] - ordered[0]):
        return False
    return bool(((np.diff(ordered) > 0) | (np.diff(ranks[order]) == 0)).all())
