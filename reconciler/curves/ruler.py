"""A column's values as small whole numbers: which quantile of a sample each is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves.lanes import NAN, Flags, Lane, doubles, fixed, is_null, plain
from reconciler.curves.sampled import Sampled, lanes_of, marks_of
from reconciler.curves.search import Search, Trie, place, place_deep, search, trie

Ranks = NDArray[np.uint16]

#: quantiles of a column; more change nothing that a file's or a row group's statistics show
QUANTILES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ruler:
    """``at`` is the rank from each mark on: of what is below all, between each, above, and null.

    ``kind`` is the type of the sample's column, to which others are cast; ``lanes`` those of a
    mark.
    """

    name: str
    kind: pa.DataType
    seek: Search | Trie
    lanes: int
    at: Ranks


def quantile_ruler(seen: Sampled, bits: int) -> Ruler:
    """Ranks from 0 to ``2**bits - 1``, each value's the share of sampled rows below it.

    Values of a share of their own get a rank of their own; NaN has the next to last rank or less,
    null the last or less, and neither shares it with another value.
    """
    top, rows = 1 << bits, max(seen.rows, 1)
    runs = _quantile_runs(seen, min(QUANTILES, top - 3))
    at = seen.starts[runs] * top // rows
    null = min(max(seen.valid * top // rows, 2), top - 1)
    marks = marks_of(seen, runs)
    if not pa.types.is_floating(seen.column.type):
        return _ruler(seen, marks, [0], np.minimum(at, null - 1), [null])
    is_number = marks[0] < NAN
    nan = min(max(_numbers(seen) * top // rows, 1), top - 2)
    marks = np.append(marks[:, is_number], [[NAN]], axis=1)
    return _ruler(seen, marks, [0], np.minimum(at[is_number], nan - 1), [nan, max(null, nan + 1)])


def stops_ruler(seen: Sampled, runs: NDArray[np.int64]) -> Ruler:
    """Ranks that count the given runs that a value has reached; null reaches one more."""
    runs = runs[runs < len(seen.first)]
    return _ruler(seen, marks_of(seen, runs), np.arange(len(runs) + 2))


def _ruler(seen: Sampled, marks: Lane, *at: Sequence[int] | NDArray[np.int64]) -> Ruler:
    one = len(marks) == 1
    return Ruler(
        name=seen.name,
        kind=seen.column.type,
        seek=search(marks[0]) if one else trie(marks),
        lanes=len(marks),
        at=np.concatenate(at).astype(np.uint16),
    )


def _numbers(seen: Sampled) -> int:
    """Rows with a value that is not NaN."""
    last = seen.first[-1:]
    is_nan = bool(np.isnan(doubles(seen.column)[last]).any())
    return int(seen.starts[len(seen.first) - 1]) if is_nan else seen.valid


def _weights(seen: Sampled) -> NDArray[np.int64]:
    """Rows of each run with values."""
    return np.diff(seen.starts)[: len(seen.first)]


def _quantile_runs(seen: Sampled, most: int) -> NDArray[np.int64]:
    """Runs where quantiles begin, all where they are few; the run after a heavy one too."""
    count = len(seen.first)
    if count <= most:
        return np.arange(count)
    step = seen.valid / most
    places = (np.arange(1, most) * step).astype(np.int64)
    found = np.searchsorted(seen.starts, places, "right") - 1
    heavy = found[_weights(seen)[found] > step]
    runs = np.union1d(found, heavy + 1)
    return runs[runs < count]


def ranks(ruler: Ruler, column: Any) -> Ranks:
    """The rank of each value; raises ArrowInvalid for one that the sample's type cannot hold."""
    column = plain(column)
    if column.type != ruler.kind:
        column = plain(column.cast(ruler.kind))
    return ruler.at[_placed(ruler, column, is_null(column))]


def _placed(ruler: Ruler, column: Any, nulls: Flags) -> NDArray[np.int64]:
    match ruler.seek:
        case Search():
            found = place(ruler.seek, fixed(column, ruler.name)[0])
        case Trie():
            lanes = lanes_of(column, ruler.name, ruler.lanes)
            found = place_deep(ruler.seek, len(column), lanes)
    if nulls.any():
        found[nulls] = len(ruler.at) - 1
    return found
