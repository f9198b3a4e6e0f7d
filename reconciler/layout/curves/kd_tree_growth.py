"""Grow a k-d tree with leaves of equal size, so that queries read as few leaves as possible.

Without queries, a node is halved along the column in which it is widest, as a share of the rows.
With queries, each cut is chosen among all columns and whole numbers of leaves: the one after which
the value ranges of both sides meet the fewest queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from reconciler.arrays import Floats, Integers
from reconciler.layout.curves.kd_tree import TIE_BITS, KdTree, add_leaf_grid
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.query_workload import QueryBoxes
from reconciler.layout.curves.rank_scale import make_step_scale
from reconciler.layout.curves.sorted_sample import SampledColumn
from reconciler.lazy_dataclass import dataclass

#: a cut moves to the start of a value within this distance, as a share of a leaf
SNAP_DISTANCE: Final = 0.03
#: another column is tried if a cut misses its target by more, as a share of a leaf
FAR_DISTANCE: Final = 0.1

_TIE_SHIFT: Final = np.uint64(TIE_BITS)
#: rows of a node to examine, or _ROWS_PER_LEAF per leaf if that is more
_MAX_NODE_ROWS: Final = 20_000
_ROWS_PER_LEAF: Final = 80
_MAX_CUTS: Final = 64  # cuts to compare per column
_BELOW, _ABOVE = 2, 3  # columns of a table of nodes

Rows = Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A sample, per column.

    ``places``: run and tie breaker of each row. ``lows``, ``highs``: shares of the rows below and
    up to each row's value. ``sizes``: bytes of each row.
    """

    places: Sequence[Lane]
    lows: Floats
    highs: Floats
    sizes: Floats
    has_ties: bool
    boxes: QueryBoxes | None


def grow_tree(
    samples: Sequence[SampledColumn],
    leaves: int,
    *,
    ties: Lane | None,
    sizes: Floats | None,
    boxes: QueryBoxes | None,
) -> KdTree:
    """Return a tree with ``leaves`` leaves, or fewer if neither values nor ties separate the rows.

    ``ties``: tie breakers of 64 bits that separate rows with equal values. ``sizes``: bytes of each
    row. ``boxes``: the queries to optimize for.
    """
    rows = samples[0].rows
    part = np.uint64(0) if ties is None else ties >> np.uint64(64 - TIE_BITS)
    shares = [column.shares() for column in samples]
    sample = _Sample(
        places=[column.run.astype(np.uint64) << _TIE_SHIFT | part for column in samples],
        lows=np.stack([below for below, _ in shares]),
        highs=np.stack([up_to for _, up_to in shares]),
        sizes=np.ones(rows) if sizes is None else sizes,
        has_ties=ties is not None,
        boxes=boxes,
    )
    nodes: list[list[int]] = []  # of each node: column, cut, and the nodes below and above
    grown = 0
    waiting = [(np.arange(rows), leaves, [0, 0, 0, 0], _BELOW)]
    while waiting:
        members, count, parent, side = waiting.pop()
        cut = _choose_cut(sample, members, count) if count > 1 else None
        if cut is None:
            parent[side] = ~grown
            grown += 1
            continue
        column, place, first = cut
        parent[side] = len(nodes)
        nodes.append([column, place, 0, 0])
        goes_above = sample.places[column][members] >= np.uint64(place)
        waiting.append((members[goes_above], count - first, nodes[-1], _ABOVE))
        waiting.append((members[~goes_above], first, nodes[-1], _BELOW))
    return _build_tree(samples, np.array(nodes, np.int64).reshape(-1, 4), grown)


def _choose_cut(sample: _Sample, rows: Rows, leaves: int) -> tuple[int, int, int] | None:
    """Return the column to cut, the cut, and the leaves below it; None if all rows are equal."""
    best, least = None, np.inf
    for column, first in _list_candidates(sample, rows, leaves):
        place, off = _place_cut(sample, rows, column, first, leaves)
        if off < least:
            best, least = (column, place, first), off
        if off <= FAR_DISTANCE:
            break
    return best


def _list_candidates(sample: _Sample, rows: Rows, leaves: int) -> list[tuple[int, int]]:
    """Return cuts to try, best first: the cheapest for the queries, then the middle per column.

    Columns come in the order of their width. A cut is a column and a number of leaves below.
    """
    lows, highs = sample.lows[:, rows], sample.highs[:, rows]
    wide = highs.max(axis=1, initial=0) - lows.min(axis=1, initial=1)
    wide[lows.max(axis=1, initial=0) == lows.min(axis=1, initial=1)] = 0
    widest = [(int(column), leaves // 2) for column in np.argsort(-wide, kind="stable")]
    if sample.boxes is None or not len(rows):
        return widest
    step = max(len(rows) // max(_MAX_NODE_ROWS, _ROWS_PER_LEAF * leaves), 1)
    best = _cheapest_cut(sample, sample.boxes, rows[::step], leaves)
    return widest if best is None else [best, *widest]


def _cheapest_cut(
    sample: _Sample, boxes: QueryBoxes, rows: Rows, leaves: int
) -> tuple[int, int] | None:
    """Return the cut after which queries read the fewest leaves; None if all are equal."""
    low, high = sample.lows[:, rows].min(axis=1), sample.highs[:, rows].max(axis=1)
    boxes = boxes.select_meeting(low[:, np.newaxis], high[:, np.newaxis])
    total = float(boxes.weights.sum()) * leaves
    firsts = np.unique(
        np.linspace(1, leaves - 1, min(leaves - 1, _MAX_CUTS)).round().astype(np.int64)
    )
    best, cut = total * (1 - 1e-9), None
    for column in range(len(low)):
        order = rows[np.argsort(sample.places[column][rows])]
        filled = np.cumsum(sample.sizes[order])
        bounds = np.searchsorted(filled, filled[-1] * firsts / leaves) + 1
        bounds = np.concatenate([[0], np.clip(bounds, 1, len(order) - 1)])
        if len(order) < 2 or (np.diff(bounds) <= 0).any():  # noqa: PLR2004 - nothing to cut
            continue
        below, above = _hulls(sample.lows[:, order], sample.highs[:, order], bounds)
        cost = firsts * boxes.meeting_weights(*below)
        cost += (leaves - firsts) * boxes.meeting_weights(*above)
        nth = int(cost.argmin())
        if cost[nth] < best:
            best, cut = float(cost[nth]), (column, int(firsts[nth]))
    return cut


def _hulls(
    lows: Floats, highs: Floats, bounds: Rows
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return the value ranges below and above each bound except the first: columns by bounds."""
    low = np.minimum.reduceat(lows, bounds, axis=1)
    high = np.maximum.reduceat(highs, bounds, axis=1)
    below = np.minimum.accumulate(low, axis=1), np.maximum.accumulate(high, axis=1)
    above = (
        np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1],
    )
    return (below[0][:, :-1], below[1][:, :-1]), (above[0][:, 1:], above[1][:, 1:])


def _place_cut(
    sample: _Sample, rows: Rows, column: int, first: int, leaves: int
) -> tuple[int, float]:
    """Return the cut with ``first`` leaves below it, and how far it misses, in leaves.

    The cut is at the start of a value if one is near, or if there are no tie breakers.
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
    run = places[nth] >> _TIE_SHIFT
    begin, end = np.searchsorted(places, [run << _TIE_SHIFT, (run + np.uint64(1)) << _TIE_SHIFT])
    near = [at for at in (int(begin), int(end)) if 0 < at < len(places)]
    off = {at: abs(float(filled[at]) - wanted) / leaf for at in near}
    nearest = min(near, key=off.__getitem__, default=nth)
    if nearest in off and (off[nearest] <= SNAP_DISTANCE or not sample.has_ties):
        return int(places[nearest] >> _TIE_SHIFT) << TIE_BITS, off[nearest]
    inside = sample.has_ties and places[nth] > places[0]
    return int(places[nth]), 0.0 if inside else np.inf


def _build_tree(samples: Sequence[SampledColumn], nodes: Integers, leaves: int) -> KdTree:
    """Build the tree from the nodes, with ranks in place of runs."""
    column = nodes[:, 0].astype(np.int16)
    cut = nodes[:, 1].astype(np.uint64)
    runs, tie = (cut >> _TIE_SHIFT).astype(np.int64), cut & np.uint64((1 << TIE_BITS) - 1)
    rank = np.zeros(len(cut), np.uint64)
    scales = []
    for nth, sample in enumerate(samples):
        own = column == nth
        stops = np.union1d(runs[own], runs[own & (tie > 0)] + 1)
        scales.append(make_step_scale(sample, stops))
        stops = stops[stops < len(sample.first)]
        rank[own] = np.searchsorted(stops, runs[own]) + 1
    tree = KdTree(
        scales=tuple(scales),
        column=column,
        cut=(rank << _TIE_SHIFT | tie).astype(np.uint32),
        below=nodes[:, _BELOW].astype(np.int32),
        above=nodes[:, _ABOVE].astype(np.int32),
        leaves=leaves,
    )
    return add_leaf_grid(tree)
