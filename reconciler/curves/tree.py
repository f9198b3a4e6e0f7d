"""A tree of cuts through columns: which leaf, and so which file, each row belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.curves.lanes import Lane
from reconciler.curves.ruler import Ranks, Ruler, ranks

#: a cut inside one value: 16 bits of the rows' ties
TIE_BITS: Final = 16

_MOST_CELLS: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Node i sends a row to ``below[i]`` or ``above[i]``; a negative one is the leaf ``~i``.

    Below are those whose rank of ``column[i]``, with their tie as its fraction of 16 bits, is
    below ``cut[i]``. The ranks are the ``rulers``', which count cuts. ``grid`` has the leaf of
    every combination of ranks, where no cut needs ties and they are few.
    """

    rulers: tuple[Ruler, ...]
    column: NDArray[np.int16]
    cut: NDArray[np.uint32]
    below: NDArray[np.int32]
    above: NDArray[np.int32]
    leaves: int
    grid: NDArray[np.uint16] | None = None

    @property
    def needs_ties(self) -> bool:
        """Whether a cut goes through rows of one value."""
        return bool((self.cut & np.uint32((1 << TIE_BITS) - 1)).any())


def with_grid(tree: Tree) -> Tree:
    """The same tree, faster where it is small."""
    shape = [len(ruler.at) for ruler in tree.rulers]
    cells = int(np.prod([float(side) for side in shape]))
    if tree.needs_ties or cells > _MOST_CELLS:
        return tree
    found = _walked(tree, list(np.indices(shape, np.uint32).reshape(len(shape), -1)), None)
    return Tree(
        rulers=tree.rulers,
        column=tree.column,
        cut=tree.cut,
        below=tree.below,
        above=tree.above,
        leaves=tree.leaves,
        grid=found,
    )


def leaf_of(tree: Tree, columns: Sequence[Any], ties: Lane | None) -> NDArray[np.uint16]:
    """The leaf of each row; without ties, rows that a cut would part stay together."""
    codes = [ranks(ruler, column) for ruler, column in zip(tree.rulers, columns, strict=True)]
    if tree.grid is not None:
        return tree.grid.take(_cells(tree, codes))
    return _walked(tree, codes, ties)


def _cells(tree: Tree, codes: Sequence[Ranks]) -> NDArray[np.int64]:
    cell = np.zeros(len(codes[0]), np.int64)
    for ruler, code in zip(tree.rulers, codes, strict=True):
        cell *= len(ruler.at)
        cell += code
    return cell


def _walked(tree: Tree, codes: Sequence[NDArray[Any]], ties: Lane | None) -> NDArray[np.uint16]:
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
