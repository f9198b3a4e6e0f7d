"""Count the sorted marks that are not above each of many values, for any number of lanes.

``numpy.searchsorted`` halves the range for each value and waits for memory at each step. Here the
range is divided into cells of equal width, with a table of the marks before each cell. That leaves
a step or two, done for all values at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.layout.curves.lanes import Lane, row_blocks
from reconciler.lazy_dataclass import dataclass

#: returns the lane at a depth, of all rows or of the given ones
LaneReader = Callable[[int, Integers | None], Lane]

_CELL_BITS: Final = 12  # bits
_TOP: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkSearch:
    """Sorted marks, ready for searches.

    ``marks``: padded with the greatest number; ``count`` of them are real. ``before``: the marks
    before each cell; cells are ``1 << shift`` wide and begin at ``low``. ``steps``: number of steps
    of the search inside a cell.
    """

    marks: Lane
    count: int
    before: Codes
    low: np.uint64
    high: np.uint64
    shift: int
    steps: int


def build_search(marks: Lane) -> MarkSearch:
    """Prepare sorted marks for searches."""
    low, high = (marks[0], marks[-1]) if len(marks) else (np.uint64(0), np.uint64(0))
    span = int(high) - int(low)
    shift = max(span.bit_length() - _CELL_BITS, 0)
    cells = low + (np.arange((span >> shift) + 1, dtype=np.uint64) << np.uint64(shift))
    before = np.searchsorted(marks, cells, "left")
    most = int(np.diff(before, append=len(marks)).max()) if len(marks) else 0
    steps = most.bit_length()
    padded = np.concatenate([marks, np.full(1 << steps, _TOP)])
    return MarkSearch(
        marks=padded,
        count=len(marks),
        before=before.astype(np.int32),
        low=low,
        high=high,
        shift=shift,
        steps=steps,
    )


def count_marks(search: MarkSearch, values: Lane) -> Integers:
    """Return, for each value, the number of marks that are not above it.

    >>> search = build_search(np.array([3, 5, 5, 9], np.uint64))
    >>> count_marks(search, np.arange(2, 7, dtype=np.uint64)).tolist()
    [0, 1, 1, 3, 3]
    """
    counts = np.empty(len(values), np.int64)
    for part in row_blocks(len(values)):
        counts[part] = _count_block(search, values[part])
    return counts


def _count_block(search: MarkSearch, values: Lane) -> Integers:
    cell = (np.clip(values, search.low, search.high) - search.low) >> np.uint64(search.shift)
    at = search.before[cell.view(np.int64)].astype(np.int64)
    for step in range(search.steps - 1, -1, -1):
        ahead = search.marks[(1 << step) - 1 :].take(at, mode="clip")
        at += (ahead <= values).astype(np.int64) << step
    return np.minimum(at, search.count)  # the padding is not above the greatest number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrieLevel:
    """One lane of the marks of a :class:`MarkTrie`.

    A group holds the marks that agree in all lanes before. ``values``: the distinct values of this
    lane. ``codes``: the group and the value of each mark. ``groups``: the group of each mark at the
    next level.
    """

    values: MarkSearch
    codes: Integers
    groups: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkTrie:
    """Marks with several lanes, one level per lane."""

    levels: tuple[TrieLevel, ...]


def build_trie(marks: Lane) -> MarkTrie:
    """Prepare sorted marks, an array of lanes by marks, for searches."""
    group = np.zeros(marks.shape[1], np.int64)
    depths = []
    for lane in marks:
        values, code = np.unique(lane, return_inverse=True)
        codes = group * (2 * len(values) + 2) + 2 * code + 1
        group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        depths.append(TrieLevel(values=build_search(values), codes=codes, groups=group))
    return MarkTrie(levels=tuple(depths))


def build_marks(marks: Lane) -> MarkSearch | MarkTrie:
    """Prepare sorted marks with any number of lanes, an array of lanes by marks, for searches."""
    is_plain = len(marks) == 1 or not marks.shape[1]
    return build_search(marks[0]) if is_plain else build_trie(marks)


def count_lane_marks(marks: MarkSearch | MarkTrie, count: int, read_lane: LaneReader) -> Integers:
    """Return, for each row, the number of marks that are not above it.

    A lane is read only for the rows for which it decides.

    >>> marks = build_marks(np.array([[1, 1, 7], [2, 5, 0]], np.uint64))
    >>> lanes = np.array([[1, 1, 7, 9], [1, 4, 0, 0]], np.uint64)
    >>> count_lane_marks(marks, 4, stored_lanes(lanes)).tolist()
    [0, 1, 3, 3]
    """
    if isinstance(marks, MarkSearch):
        return count_marks(marks, read_lane(0, None))
    counts = np.zeros(count, np.int64)
    rows: Integers | None = None
    group = np.zeros(count, np.int64)
    for level, depth in enumerate(marks.levels):
        at, goes_on = _descend(depth, read_lane(level, rows), group)
        if rows is None:
            counts, rows = at, np.flatnonzero(goes_on)
        else:
            counts[rows] = at
            rows = rows[goes_on]
        group = depth.groups[at[goes_on] - 1]
        if not len(rows):
            break
    return counts


def _descend(depth: TrieLevel, lane: Lane, group: Integers) -> tuple[Integers, Mask]:
    """Return the marks not above each row by this lane, and the rows that need the next lane."""
    values = depth.values
    nth = count_marks(values, lane)
    is_one = (nth > 0) & (values.marks[np.maximum(nth - 1, 0)] == lane)
    code = group * (2 * values.count + 2) + 2 * nth - is_one
    at = np.searchsorted(depth.codes, code, "right")
    goes_on = is_one & (at > 0)
    goes_on &= depth.codes[np.maximum(at - 1, 0)] == code
    return at, goes_on


def stored_lanes(lanes: Sequence[Lane] | Lane) -> LaneReader:
    """Return a reader of lanes that are all in memory."""
    return lambda depth, rows: lanes[depth] if rows is None else lanes[depth][rows]
