"""A k-d tree: cuts through columns that assign each row to a leaf, and so to a file.

In its leaf, each row is in one of sixteen parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Codes, Floats, Integers
from reconciler.layout.curves.lanes import Lane, row_blocks
from reconciler.layout.curves.rank_scale import Ranks, RankScale, rank_values
from reconciler.lazy_dataclass import dataclass

#: bits of the tie breakers that a cut inside one value compares
TIE_BITS: Final = 16

#: how often a leaf is halved into parts
DEPTH: Final = 4

_MAX_CELLS: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KdTree:
    """The nodes of the tree: node i sends a row to ``below[i]`` or ``above[i]``.

    A negative number n is the leaf ``~n``. A row goes below if its rank of ``column[i]``, followed
    by 16 bits of its tie breaker, is less than ``cut[i]``. ``scales`` compute the ranks.
    ``leaf_grid``: the leaf of every combination of ranks, if they are few and no cut needs ties.
    """

    scales: tuple[RankScale, ...]
    column: NDArray[np.int16]
    cut: NDArray[np.uint32]
    below: Codes
    above: Codes
    leaves: int
    leaf_grid: NDArray[np.uint16] | None = None

    @property
    def needs_ties(self) -> bool:
        """True if a cut separates rows with equal values."""
        return bool((self.cut & np.uint32((1 << TIE_BITS) - 1)).any())


def add_leaf_grid(tree: KdTree) -> KdTree:
    """Return the tree with a leaf grid, which is faster, if the tree is small."""
    shape = [len(scale.ranks) for scale in tree.scales]
    cells = int(np.prod([float(side) for side in shape]))
    if tree.needs_ties or cells > _MAX_CELLS:
        return tree
    grid = _walk_tree(tree, list(np.indices(shape, np.uint32).reshape(len(shape), -1)), None)
    return replace(tree, leaf_grid=grid)


def find_leaves(tree: KdTree, columns: Sequence[Any], ties: Lane | None) -> NDArray[np.uint16]:
    """Return the leaf of each row; without ties, rows with equal values stay together."""
    codes = [rank_values(scale, column) for scale, column in zip(tree.scales, columns, strict=True)]
    if tree.leaf_grid is None:
        return _walk_tree(tree, codes, ties)
    cell = np.zeros(len(codes[0]), np.int64)
    for scale, code in zip(tree.scales, codes, strict=True):
        cell *= len(scale.ranks)
        cell += code
    return tree.leaf_grid.take(cell)


def _walk_tree(
    tree: KdTree, codes: Sequence[NDArray[Any]], ties: Lane | None
) -> NDArray[np.uint16]:
    """Find the leaf of each row by walking the tree node by node."""
    part = 0 if ties is None else (ties >> np.uint64(64 - TIE_BITS)).astype(np.uint32)
    places = [(code.astype(np.uint32) << np.uint32(TIE_BITS)) | part for code in codes]
    leaf = np.zeros(len(codes[0]), np.uint16)
    waiting = [(0 if len(tree.cut) else ~0, np.arange(len(leaf), dtype=np.int32))]
    while waiting:
        node, rows = waiting.pop()
        if node < 0:
            leaf[rows] = ~node
            continue
        is_above = places[tree.column[node]][rows] >= tree.cut[node]
        waiting.append((int(tree.above[node]), rows[is_above]))
        waiting.append((int(tree.below[node]), rows[~is_above]))
    return leaf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafParts:
    """Sixteen parts of each leaf, so that readers can skip row groups.

    The nodes of one complete binary tree per leaf; node i has the children 2i + 1 and 2i + 2.
    Rows whose rank of ``column`` is at least ``cut`` go to the second child.
    """

    column: Integers
    cut: Ranks


def split_leaves(
    leaf: NDArray[np.uint16], ranks: Sequence[Ranks], leaves: int, weights: Floats
) -> LeafParts:
    """Return the parts fitted to a sample's leaves and ranks; ``weights``: one per column.

    Each part is halved along its widest column.
    """
    nodes = (1 << DEPTH) - 1
    column = np.zeros((leaves, nodes), np.int64)
    cut = np.zeros((leaves, nodes), np.uint16)
    values = np.stack(ranks).astype(np.int64)
    node = np.zeros(len(leaf), np.int64)
    for _ in range(DEPTH):
        group = leaf.astype(np.int64) * nodes + node
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        if not len(starts):
            break
        low = np.minimum.reduceat(values[:, order], starts, axis=1)
        high = np.maximum.reduceat(values[:, order], starts, axis=1)
        widest = ((high - low) * weights[:, np.newaxis]).argmax(axis=0)
        counts = np.diff(starts, append=len(order))
        value = values[np.repeat(widest, counts), order]
        by_value = np.lexsort((value, group[order]))
        middle = value[by_value][starts + counts // 2]
        at = group[order][starts]
        column.flat[at], cut.flat[at] = widest, middle
        node[order] = 2 * node[order] + 1 + (value >= np.repeat(middle, counts))
    return LeafParts(column=column.ravel(), cut=cut.ravel())


def find_parts(
    parts: LeafParts, leaf: NDArray[np.uint16], ranks: Sequence[Ranks]
) -> NDArray[np.uint64]:
    """Return the part of its leaf that each row is in, from 0 to 15."""
    numbers = np.empty(len(leaf), np.uint64)
    nodes = (1 << DEPTH) - 1
    for part in row_blocks(len(leaf)):
        values = np.stack([rank[part] for rank in ranks]).ravel()
        rows = np.arange(len(leaf[part]))
        first = leaf[part].astype(np.int64) * nodes
        node = np.zeros(len(rows), np.int64)
        for _ in range(DEPTH):
            at = first + node
            value = values.take(parts.column.take(at) * len(rows) + rows)
            node = 2 * node + 1 + (value >= parts.cut.take(at))
        numbers[part] = (node - nodes).astype(np.uint64)
    return numbers
