"""How many of a few sorted marks are not above each of many values, for lanes of any number.

``numpy.searchsorted`` walks a tree for each value and waits for memory at each step. A table of
the marks before each cell of equal width leaves a step or two, done for all values at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.curves.lanes import Lane

#: of a column: the lane of a depth, of all rows or of those given
LaneReader = Callable[[int, NDArray[np.int64] | None], Lane]

_CELL_BITS: Final = 12  # bits
_BLOCK_ROWS: Final = 1 << 15  # at a time, so that everything stays in the cache
_TOP: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkSearch:
    """``count`` sorted marks, padded; marks before each cell of ``1 << shift`` from ``low`` on."""

    marks: Lane
    count: int
    before: NDArray[np.int32]
    low: np.uint64
    high: np.uint64
    shift: int
    steps: int


def build_search(marks: Lane) -> MarkSearch:
    """Marks made ready; they must be sorted."""
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


def count_marks(search: MarkSearch, values: Lane) -> NDArray[np.int64]:
    """Per value the number of marks that are not above it.

    >>> place(search(np.array([3, 5, 5, 9], np.uint64)), np.arange(2, 7, dtype=np.uint64)).tolist()
    [0, 1, 1, 3, 3]
    """
    found = np.empty(len(values), np.int64)
    for start in range(0, len(values), _BLOCK_ROWS):
        found[start : start + _BLOCK_ROWS] = _count_block(
            search, values[start : start + _BLOCK_ROWS]
        )
    return found


def _count_block(ready: MarkSearch, values: Lane) -> NDArray[np.int64]:
    cell = (np.clip(values, ready.low, ready.high) - ready.low) >> np.uint64(ready.shift)
    at = ready.before[cell.view(np.int64)].astype(np.int64)
    for step in range(ready.steps - 1, -1, -1):
        ahead = ready.marks[(1 << step) - 1 :].take(at, mode="clip")
        at += (ahead <= values).astype(np.int64) << step
    return np.minimum(at, ready.count)  # the padding is not above the greatest value there is


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrieLevel:
    """One lane of the marks of a :class:`Trie`.

    ``values`` are the different ones; ``codes`` says per mark its group, the marks that agree in
    the lanes before, and its value; ``groups`` says per mark which group begins there one deeper.
    """

    values: MarkSearch
    codes: NDArray[np.int64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkTrie:
    """Marks of several lanes, lane by lane."""

    levels: tuple[TrieLevel, ...]


def build_trie(marks: Lane) -> MarkTrie:
    """Marks made ready: an array of lanes by marks, sorted."""
    group = np.zeros(marks.shape[1], np.int64)
    depths = []
    for lane in marks:
        values, code = np.unique(lane, return_inverse=True)
        codes = group * (2 * len(values) + 2) + 2 * code + 1
        group = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        depths.append(TrieLevel(values=build_search(values), codes=codes, groups=group))
    return MarkTrie(levels=tuple(depths))


def count_trie_marks(trie: MarkTrie, count: int, read_lane: LaneReader) -> NDArray[np.int64]:
    """Per row the number of marks that are not above it; a lane is asked for where it decides.

    >>> marks = trie(np.array([[1, 1, 7], [2, 5, 0]], np.uint64))
    >>> lanes = np.array([[1, 1, 7, 9], [1, 4, 0, 0]], np.uint64)
    >>> place_deep(marks, 4, of_lanes(lanes)).tolist()
    [0, 1, 3, 3]
    """
    found = np.zeros(count, np.int64)
    if not trie.levels[0].values.count:
        return found
    rows: NDArray[np.int64] | None = None
    group = np.zeros(count, np.int64)
    for level, depth in enumerate(trie.levels):
        at, goes_on = _descend(depth, read_lane(level, rows), group)
        if rows is None:
            found, rows = at, np.flatnonzero(goes_on)
        else:
            found[rows] = at
            rows = rows[goes_on]
        group = depth.groups[at[goes_on] - 1]
        if not len(rows):
            break
    return found


def _descend(
    depth: TrieLevel, lane: Lane, group: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Marks not above each row as far as this lane tells, and for which rows the next one does."""
    values = depth.values
    nth = count_marks(values, lane)
    is_one = (nth > 0) & (values.marks[np.maximum(nth - 1, 0)] == lane)
    code = group * (2 * values.count + 2) + 2 * nth - is_one
    at = np.searchsorted(depth.codes, code, "right")
    goes_on = is_one & (at > 0)
    goes_on &= depth.codes[np.maximum(at - 1, 0)] == code
    return at, goes_on


def stored_lanes(lanes: Sequence[Lane] | Lane) -> LaneReader:
    """Lanes that are all there."""
    return lambda depth, rows: lanes[depth] if rows is None else lanes[depth][rows]
