"""Split the rows of each leaf into sixteen parts, so that readers can skip row groups.

Each part is halved along its widest column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.curves.rank_scale import Ranks

#: how often a leaf is halved
DEPTH: Final = 4

_BLOCK_ROWS: Final = 1 << 15  # rows at a time, so that all arrays stay in the CPU cache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafParts:
    """The nodes of one complete binary tree per leaf; node i has the children 2i + 1 and 2i + 2.

    Rows whose rank of ``column`` is at least ``cut`` go to the second child.
    """

    column: NDArray[np.int64]
    cut: Ranks


def split_leaves(
    leaf: NDArray[np.uint16], ranks: Sequence[Ranks], leaves: int, weights: NDArray[np.float64]
) -> LeafParts:
    """Return the parts fitted to a sample's leaves and ranks; ``weights``: of each column."""
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
    found = np.empty(len(leaf), np.uint64)
    nodes = (1 << DEPTH) - 1
    for start in range(0, len(leaf), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        values = np.stack([rank[part] for rank in ranks]).ravel()
        rows = np.arange(len(leaf[part]))
        first = leaf[part].astype(np.int64) * nodes
        node = np.zeros(len(rows), np.int64)
        for _ in range(DEPTH):
            at = first + node
            value = values.take(parts.column.take(at) * len(rows) + rows)
            node = 2 * node + 1 + (value >= parts.cut.take(at))
        found[part] = (node - nodes).astype(np.uint64)
    return found
