"""Keys in ranges of the same size: which file each row goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.mark_search import (
    MarkSearch,
    MarkTrie,
    build_search,
    build_trie,
    count_marks,
    count_trie_marks,
    stored_lanes,
)
from reconciler.layout.curves.sorted_sample import sort_rows

#: a cut moves to where another key begins if that is not farther, as a share of a file
SNAP: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileBoundaries:
    """The first key, lane by lane and the tie last, of every file but the first one."""

    search: MarkSearch | MarkTrie
    count: int
    needs_ties: bool


def find_boundaries(
    keys: Lane, files: int, *, ties: Lane | None = None, sizes: NDArray[np.float64] | None = None
) -> FileBoundaries:
    """The ranges of a sample's keys (lanes by rows) that have the same bytes each.

    A cut is where another key begins, if one does near enough; else it parts rows of one key by
    their ties. Without ties rows of one key stay together, so that there may be fewer files.
    """
    tie = np.zeros(keys.shape[1], np.uint64) if ties is None else ties
    order = sort_rows([*keys, tie])
    lanes = np.concatenate([keys[:, order], tie[np.newaxis, order]])
    filled = np.cumsum(np.ones(len(order)) if sizes is None else sizes[order])
    total = float(filled[-1]) if len(order) else 0.0
    before = np.concatenate([[0.0], filled])
    differs = (np.diff(lanes[:-1], axis=1) != 0).any(axis=0)
    begins = np.flatnonzero(np.concatenate([[True], differs, [True]])[: len(order) + 1])
    wanted = total * np.arange(1, files) / files
    nearest = _nearest_key_starts(before, begins, wanted)
    inside = np.minimum(np.searchsorted(before, wanted), max(len(order) - 1, 0))
    is_near = np.abs(before[nearest] - wanted) <= SNAP * total / files
    snaps = is_near | (ties is None)
    at = np.where(snaps, nearest, inside)
    keeps = (at > 0) & (at < len(order))
    at, snaps = at[keeps], snaps[keeps]
    found = lanes[:, at]
    found[-1, snaps] = 0
    needs_ties = bool(found[-1].any())
    found = np.unique(found if needs_ties else found[:-1], axis=1)
    return _build_boundaries(found, needs_ties=needs_ties)


def make_leaf_boundaries(leaves: int, shift: int) -> FileBoundaries:
    """A file a leaf, for keys of one lane that have the leaf above ``shift`` bits."""
    return _build_boundaries(
        (np.arange(1, leaves, dtype=np.uint64) << np.uint64(shift))[np.newaxis]
    )


def _nearest_key_starts(
    before: NDArray[np.float64], begins: NDArray[np.int64], wanted: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The place where a key begins that is nearest to each wanted fill."""
    fills = before[begins]
    after = np.clip(np.searchsorted(fills, wanted), 1, max(len(begins) - 1, 1))
    after = np.minimum(after, len(begins) - 1)
    left = np.maximum(after - 1, 0)
    is_left = wanted - fills[left] <= fills[after] - wanted
    return begins[np.where(is_left, left, after)]


def _build_boundaries(found: Lane, *, needs_ties: bool = False) -> FileBoundaries:
    seek = build_search(found[0]) if len(found) == 1 or not found.shape[1] else build_trie(found)
    return FileBoundaries(search=seek, count=found.shape[1], needs_ties=needs_ties)


def find_files(
    boundaries: FileBoundaries, keys: Lane, ties: Lane | None = None
) -> NDArray[np.int32]:
    """The file of each row, from 0 on."""
    match boundaries.search:
        case MarkSearch():
            found = count_marks(boundaries.search, keys[0])
        case MarkTrie():
            tie = np.zeros(keys.shape[1], np.uint64) if ties is None else ties
            found = count_trie_marks(boundaries.search, keys.shape[1], stored_lanes([*keys, tie]))
    return found.astype(np.int32)
