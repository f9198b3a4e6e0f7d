"""Sort a sampled column: its distinct values, and the first sorted row of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Floats, Integers, Mask, to_arrow
from reconciler.layout.curves.lanes import (
    Lane,
    fixed_lanes,
    is_null,
    is_text,
    text_bytes,
    to_plain_array,
)
from reconciler.layout.curves.mark_search import stored_lanes
from reconciler.lazy_dataclass import dataclass

_WORD: Final = 8
_LANE: Final = 64
_MAX_TEXT_LANES: Final = 128  # lanes of text: a kilobyte


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledColumn:
    """A sorted sample of a column; a run holds the rows with one value, the last run the nulls.

    ``run``: run of each row. ``starts``: run r occupies the sorted rows ``starts[r]`` to
    ``starts[r + 1]``. ``first``: a row of each run with values. ``valid``: number of rows with
    values.
    """

    name: str
    column: Any
    run: Integers
    starts: Integers
    first: Integers
    valid: int

    @property
    def rows(self) -> int:
        return len(self.run)

    @property
    def runs(self) -> int:
        return len(self.starts) - 1

    def shares(self) -> tuple[Floats, Floats]:
        """Return, for each row, the share of rows below its value and the share up to it.

        Infinity and minus infinity for null.
        """
        below, up_to = self.starts[:-1] / max(self.rows, 1), self.starts[1:] / max(self.rows, 1)
        below[len(self.first) :], up_to[len(self.first) :] = np.inf, -np.inf
        return below[self.run], up_to[self.run]


def sort_sample(column: Any, name: str) -> SampledColumn:
    """Sort a sample of a column; raises UnsupportedError for a column without an order."""
    column = to_plain_array(column)
    has_text = is_text(column.type)
    order, is_new = _sort_text_values(column) if has_text else _sort_fixed_values(column, name)
    valid = len(order)
    order = np.concatenate([order, np.flatnonzero(is_null(column))])
    is_new = np.concatenate([is_new, np.arange(len(order) - valid) == 0])
    begins = np.flatnonzero(is_new)
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(is_new) - 1
    return SampledColumn(
        name=name,
        column=column,
        run=run,
        starts=np.append(begins, len(order)),
        first=order[begins[begins < valid]],
        valid=valid,
    )


def _sort_fixed_values(column: Any, name: str) -> tuple[Integers, Mask]:
    """Return the sorted rows with values, and a mask of those that begin another value."""
    rows = np.flatnonzero(~is_null(column))
    lanes = [lane[rows] for lane in fixed_lanes(column, name)]
    order = sort_rows(lanes)
    is_new = np.zeros(len(rows), np.bool_)
    is_new[:1] = True
    for lane in lanes:
        is_new[1:] |= np.diff(lane[order]) != 0
    return rows[order], is_new


def _sort_text_values(column: Any) -> tuple[Integers, Mask]:
    column = column.cast(pa.large_binary())
    sorted_rows = pc.array_sort_indices(column, null_placement="at_end")
    order = np.frombuffer(sorted_rows.buffers()[1] or b"", np.uint64).astype(np.int64)
    order = order[: len(column) - column.null_count]
    ordered = text_bytes(column.take(to_arrow(order)))
    is_new = np.ones(len(order), np.bool_)
    same = np.flatnonzero(ordered.lengths()[1:] == ordered.lengths()[:-1])
    is_new[same + 1] = False
    depth = 0
    while len(same):
        same = same[ordered.lengths(same) > np.uint64(_WORD * depth)]
        differs = ordered.lane(depth, same) != ordered.lane(depth, same + 1)
        is_new[same[differs] + 1] = True
        same, depth = same[~differs], depth + 1
    return order, is_new


def read_marks(sample: SampledColumn, runs: Integers) -> Lane:
    """Return the values of some runs as marks: lanes by values, ascending.

    Text is truncated eight bytes after it differs from the mark before. Its last lane is its
    length, which distinguishes trailing zeros from the end of the text.
    """
    rows = sample.first[runs]
    if not is_text(sample.column.type):
        return np.stack([lane[rows] for lane in fixed_lanes(sample.column, sample.name)])
    values = text_bytes(sample.column.take(to_arrow(rows)))
    same = np.arange(max(len(rows) - 1, 0))
    lanes: list[Lane] = []
    while len(lanes) < _MAX_TEXT_LANES:
        lanes.append(values.lane(len(lanes)))
        if not len(same):
            break
        same = same[lanes[-1][same] == lanes[-1][same + 1]]
        same = same[values.lengths(same + 1) > np.uint64(_WORD * len(lanes))]
    length = np.minimum(values.lengths(), np.uint64(_WORD * len(lanes)))
    return np.stack([*lanes, length])


def make_lane_reader(column: Any, name: str, depths: int) -> Any:
    """Return a reader of a column's lanes, in the form of the marks, for ``count_trie_marks``."""
    if not is_text(column.type):
        return stored_lanes(fixed_lanes(column, name))
    values = text_bytes(column)

    def lane(depth: int, rows: Integers | None) -> Lane:
        return values.lengths(rows) if depth == depths - 1 else values.lane(depth, rows)

    return lane


def sort_rows(lanes: Sequence[Lane]) -> Integers:
    """Return the row numbers sorted by their lanes; equal rows keep their order.

    ``lanes``: the most significant one first.
    """
    if len(lanes) > 1:
        rows: Integers = np.lexsort(lanes[::-1])
        return rows
    lane = lanes[0]
    if not len(lane):
        return np.zeros(0, np.int64)
    low = lane.min()
    bits = (len(lane) - 1).bit_length()
    if (int(lane.max()) - int(low)).bit_length() + bits > _LANE:
        return np.argsort(lane, kind="stable")
    packed = (lane - low) << np.uint64(bits) | np.arange(len(lane), dtype=np.uint64)
    packed.sort()  # five times as fast as argsort
    packed &= np.uint64((1 << bits) - 1)
    places: Integers = packed.view(np.int64)
    return places
