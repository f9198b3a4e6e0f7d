"""A tree of cuts through columns: which leaf, and so which file, each row belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.rank_scale import Ranks, RankScale, rank_values

#: a cut inside one value: 16 bits of the rows' ties
TIE_BITS: Final = 16

_MAX_CELLS: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KdTree:
    """Node i sends a row to ``below[i]`` or ``above[i]``; a negative one is the leaf ``~i``.

    Below are those whose rank of ``column[i]``, with their tie as its fraction of 16 bits, is
    below ``cut[i]``. The ranks are the ``scales``', which count cuts. ``leaf_grid`` has the leaf of
    every combination of ranks, where no cut needs ties and they are few.
    """

    scales: tuple[RankScale, ...]
    column: NDArray[np.int16]
    cut: NDArray[np.uint32]
    below: NDArray[np.int32]
    above: NDArray[np.int32]
    leaves: int
    leaf_grid: NDArray[np.uint16] | None = None

    @property
    def needs_ties(self) -> bool:
        """Whether a cut goes through rows of one value."""
        return bool((self.cut & np.uint32((1 << TIE_BITS) - 1)).any())


def add_leaf_grid(tree: KdTree) -> KdTree:
    """The same tree, faster where it is small."""
    shape = [len(ruler.ranks) for ruler in tree.scales]
    cells = int(np.prod([float(side) for side in shape]))
    if tree.needs_ties or cells > _MAX_CELLS:
        return tree
    found = _walk_tree(tree, list(np.indices(shape, np.uint32).reshape(len(shape), -1)), None)
    return KdTree(
        scales=tree.scales,
        column=tree.column,
        cut=tree.cut,
        below=tree.below,
        above=tree.above,
        leaves=tree.leaves,
        leaf_grid=found,
    )


def find_leaves(tree: KdTree, columns: Sequence[Any], ties: Lane | None) -> NDArray[np.uint16]:
    """The leaf of each row; without ties, rows that a cut would part stay together."""
    codes = [rank_values(ruler, column) for ruler, column in zip(tree.scales, columns, strict=True)]
    if tree.leaf_grid is not None:
        return tree.leaf_grid.take(_cell_numbers(tree, codes))
    return _walk_tree(tree, codes, ties)


def _cell_numbers(tree: KdTree, codes: Sequence[Ranks]) -> NDArray[np.int64]:
    cell = np.zeros(len(codes[0]), np.int64)
    for ruler, code in zip(tree.scales, codes, strict=True):
        cell *= len(ruler.ranks)
        cell += code
    return cell


def _walk_tree(
    tree: KdTree, codes: Sequence[NDArray[Any]], ties: Lane | None
) -> NDArray[np.uint16]:
    """Node by node, each with the rows that come to it."""
    part = 0 if ties is None else (ties >> np.uint64(64 - TIE_BITS)).astype(np.uint32)
    places = [(code.astype(np.uint32) << np.uint32(TIE_BITS)) | part for code in codes]
    found = np.zeros(len(codes[0]), np.uint16)
    waiting = [(0 if len(tree.cut) else ~0, np.arange(len(found), dtype=np.int32))]
    while waiting:
        node, rows = waiting.pop()
        if node < 0:
            found[rows] = ~node
            continue
        is_above = places[tree.column[node]][rows] >= tree.cut[node]
        waiting.append((int(tree.above[node]), rows[is_above]))
        waiting.append((int(tree.below[node]), rows[~is_above]))
    return found
