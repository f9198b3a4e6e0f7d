"""Divide a layout's keys into equal ranges, one per file, and find the file of each row."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Codes, Floats, Integers
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.mark_search import (
    MarkSearch,
    MarkTrie,
    build_marks,
    count_lane_marks,
    stored_lanes,
)
from reconciler.layout.curves.sorted_sample import sort_rows
from reconciler.lazy_dataclass import dataclass

#: a boundary moves to the start of a key within this distance, as a share of a file
SNAP: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileBoundaries:
    """The first key of every file except the first; its lanes end with the tie breaker."""

    search: MarkSearch | MarkTrie
    count: int
    needs_ties: bool


def find_boundaries(
    keys: Lane, files: int, *, ties: Lane | None = None, sizes: Floats | None = None
) -> FileBoundaries:
    """Divide a sample's keys (lanes by rows) into ranges with the same bytes each.

    A boundary is at the start of a key if one is near enough; otherwise it separates rows with
    equal keys by their tie breakers. Without ``ties``, rows with equal keys stay together, so there
    may be fewer files. ``sizes``: bytes of each row.
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
    firsts = lanes[:, at]
    firsts[-1, snaps] = 0
    needs_ties = bool(firsts[-1].any())
    firsts = np.unique(firsts if needs_ties else firsts[:-1], axis=1)
    return FileBoundaries(search=build_marks(firsts), count=firsts.shape[1], needs_ties=needs_ties)


def make_leaf_boundaries(leaves: int, shift: int) -> FileBoundaries:
    """Return one file per leaf, for keys of one lane with the leaf above ``shift`` bits."""
    firsts = (np.arange(1, leaves, dtype=np.uint64) << np.uint64(shift))[np.newaxis]
    return FileBoundaries(search=build_marks(firsts), count=firsts.shape[1], needs_ties=False)


def _nearest_key_starts(before: Floats, begins: Integers, wanted: Floats) -> Integers:
    """Return the start of a key that is nearest to each wanted sum of sizes."""
    fills = before[begins]
    after = np.clip(np.searchsorted(fills, wanted), 1, max(len(begins) - 1, 1))
    after = np.minimum(after, len(begins) - 1)
    left = np.maximum(after - 1, 0)
    is_left = wanted - fills[left] <= fills[after] - wanted
    return begins[np.where(is_left, left, after)]


def find_files(boundaries: FileBoundaries, keys: Lane, ties: Lane | None = None) -> Codes:
    """Return the file of each row, counted from 0."""
    tie = np.zeros(keys.shape[1], np.uint64) if ties is None else ties
    lanes = stored_lanes([*keys, tie])
    return count_lane_marks(boundaries.search, keys.shape[1], lanes).astype(np.int32)
