"""Where a tree cuts: every leaf of the same size, and as few leaves as can be for a query.

Without queries a box is halved along the column in which it is widest, as a share of the rows.
With queries each cut is the one, of any column and any whole number of leaves, after which the
boxes of the values that the two sides hold meet the queries' boxes least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.curves.lanes import Lane
from reconciler.curves.ruler import stops_ruler
from reconciler.curves.sampled import Sampled
from reconciler.curves.tree import TIE_BITS, Tree, with_grid
from reconciler.curves.workload import Boxes

#: a cut moves to where another value begins if that is not farther, as a share of a leaf
SNAP: Final = 0.03
#: another column is cut if a cut is farther off than that, as a share of a leaf
FAR: Final = 0.1

_TIES: Final = np.uint64(TIE_BITS)
_LOOKED_AT: Final = 20_000  # rows of a node, and at least so many a leaf
_PER_LEAF: Final = 80
_CUTS: Final = 64  # that are compared, a column

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Per column: where each row stands (run and tie), and the shares of rows below and up to."""

    places: Sequence[Lane]
    lows: Floats
    highs: Floats
    sizes: Floats
    has_ties: bool
    boxes: Boxes | None


@dataclass(slots=True)
class _Growing:
    """Nodes so far; a cut is a run and a tie."""

    column: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    leaves: int = 0


def grow(
    seen: Sequence[Sampled],
    leaves: int,
    *,
    ties: Lane | None,
    sizes: Floats | None,
    boxes: Boxes | None,
) -> Tree:
    """A tree of so many leaves, or fewer where values do not tell rows apart and no ties do.

    ``ties`` are 64 bits a row of the sample that part rows of one value; ``sizes`` their bytes.
    """
    rows = seen[0].rows
    part = np.uint64(0) if ties is None else ties >> np.uint64(64 - TIE_BITS)
    sample = _Sample(
        places=[one.run.astype(np.uint64) << _TIES | part for one in seen],
        lows=np.stack([one.low() for one in seen]),
        highs=np.stack([one.high() for one in seen]),
        sizes=np.ones(rows) if sizes is None else sizes,
        has_ties=ties is not None,
        boxes=boxes,
    )
    growing = _Growing()
    waiting = [(np.arange(rows), leaves, -1, growing.below)]
    while waiting:
        node, count, parent, side = waiting.pop()
        cut = _cut(sample, node, count) if count > 1 else None
        if cut is None:
            _hang(side, parent, ~growing.leaves)
            growing.leaves += 1
            continue
        column, place, first = cut
        _hang(side, parent, len(growing.column))
        here = len(growing.column)
        growing.column.append(column)
        growing.cut.append(place)
        growing.below.append(0)
        growing.above.append(0)
        goes_above = sample.places[column][node] >= np.uint64(place)
        waiting.append((node[goes_above], count - first, here, growing.above))
        waiting.append((node[~goes_above], first, here, growing.below))
    return _finished(seen, growing)


def _hang(side: list[int], parent: int, node: int) -> None:
    if parent >= 0:  # all but the root
        side[parent] = node


def _cut(sample: _Sample, rows: Rows, leaves: int) -> tuple[int, int, int] | None:
    """The column, the place in it, and how many leaves are below; None where nothing differs."""
    best, least = None, np.inf
    for column, first in _candidates(sample, rows, leaves):
        place, off = _place(sample, rows, column, first, leaves)
        if off < least:
            best, least = (column, place, first), off
        if off <= FAR:
            break
    return best


def _candidates(sample: _Sample, rows: Rows, leaves: int) -> list[tuple[int, int]]:
    """Cuts to try, best first: the chosen one, then the middle along the others, widest first."""
    lows, highs = sample.lows[:, rows], sample.highs[:, rows]
    wide = highs.max(axis=1, initial=0) - lows.min(axis=1, initial=1)
    wide[lows.max(axis=1, initial=0) == lows.min(axis=1, initial=1)] = 0
    widest = [(int(column), leaves // 2) for column in np.argsort(-wide, kind="stable")]
    if sample.boxes is None or not len(rows):
        return widest
    step = max(len(rows) // max(_LOOKED_AT, _PER_LEAF * leaves), 1)
    best = _cheapest(sample, sample.boxes, rows[::step], leaves)
    return widest if best is None else [best, *widest]


def _cheapest(sample: _Sample, boxes: Boxes, rows: Rows, leaves: int) -> tuple[int, int] | None:
    """The cut with the least leaves read; None where the queries do not tell."""
    low, high = sample.lows[:, rows].min(axis=1), sample.highs[:, rows].max(axis=1)
    boxes = boxes.meeting(low[:, np.newaxis], high[:, np.newaxis])
    total = float(boxes.weights.sum()) * leaves
    firsts = np.unique(np.linspace(1, leaves - 1, min(leaves - 1, _CUTS)).round().astype(np.int64))
    best, found = total * (1 - 1e-9), None
    for column in range(len(low)):
        order = rows[np.argsort(sample.places[column][rows])]
        filled = np.cumsum(sample.sizes[order])
        bounds = np.searchsorted(filled, filled[-1] * firsts / leaves) + 1
        bounds = np.concatenate([[0], np.clip(bounds, 1, len(order) - 1)])
        if len(order) < 2 or (np.diff(bounds) <= 0).any():  # noqa: PLR2004 - nothing to cut
            continue
        below, above = _hulls(sample.lows[:, order], sample.highs[:, order], bounds)
        cost = firsts * boxes.met(*below) + (leaves - firsts) * boxes.met(*above)
        nth = int(cost.argmin())
        if cost[nth] < best:
            best, found = float(cost[nth]), (column, int(firsts[nth]))
    return found


def _hulls(
    lows: Floats, highs: Floats, bounds: Rows
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """What is below and above each bound but the first: lowest and highest, columns by bounds."""
    low = np.minimum.reduceat(lows, bounds, axis=1)
    high = np.maximum.reduceat(highs, bounds, axis=1)
    below = np.minimum.accumulate(low, axis=1), np.maximum.accumulate(high, axis=1)
    above = (
        np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1],
    )
    return (below[0][:, :-1], below[1][:, :-1]), (above[0][:, 1:], above[1][:, 1:])


def _place(sample: _Sample, rows: Rows, column: int, first: int, leaves: int) -> tuple[int, float]:
    """Where ``first`` of the leaves are below, and by how much of a leaf it is off.

    A cut is where a value begins if that is near, or if there are no ties.
    """
    places = sample.places[column][rows]
    order = np.argsort(places)
    places = places[order]
    filled = np.concatenate([[0.0], np.cumsum(sample.sizes[rows][order])])
    if not len(places):
        return 0, np.inf
    leaf = filled[-1] / leaves
    wanted = leaf * first
    nth = min(int(np.searchsorted(filled, wanted)), len(places) - 1)
    run = places[nth] >> _TIES
    begin, end = np.searchsorted(places, [run << _TIES, (run + np.uint64(1)) << _TIES])
    near = [at for at in (int(begin), int(end)) if 0 < at < len(places)]
    off = {at: abs(float(filled[at]) - wanted) / leaf for at in near}
    nearest = min(near, key=off.__getitem__, default=nth)
    if nearest in off and (off[nearest] <= SNAP or not sample.has_ties):
        return int(places[nearest] >> _TIES) << TIE_BITS, off[nearest]
    inside = sample.has_ties and places[nth] > places[0]
    return int(places[nth]), 0.0 if inside else np.inf


def _finished(seen: Sequence[Sampled], growing: _Growing) -> Tree:
    """The nodes with ranks for runs."""
    column = np.array(growing.column, np.int16)
    cut = np.array(growing.cut, np.uint64)
    runs, tie = (cut >> _TIES).astype(np.int64), cut & np.uint64((1 << TIE_BITS) - 1)
    rank = np.zeros(len(cut), np.uint64)
    rulers = []
    for nth, one in enumerate(seen):
        own = column == nth
        stops = np.union1d(runs[own], runs[own & (tie > 0)] + 1)
        rulers.append(stops_ruler(one, stops))
        stops = stops[stops < len(one.first)]
        rank[own] = np.searchsorted(stops, runs[own]) + 1
    tree = Tree(
        rulers=tuple(rulers),
        column=column,
        cut=(rank << _TIES | tie).astype(np.uint32),
        below=np.array(growing.below, np.int32),
        above=np.array(growing.above, np.int32),
        leaves=growing.leaves,
    )
    return with_grid(tree)
