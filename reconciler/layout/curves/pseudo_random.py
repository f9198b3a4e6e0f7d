"""Compute pseudo-random numbers that are the same every time.

A tie breaker is such a number per row, which separates rows with equal keys.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.layout.curves.lanes import (
    Lane,
    fixed_lanes,
    is_null,
    is_text,
    text_bytes,
    to_plain_array,
)

#: the fewest rows sampled from each part, so that small parts are represented
MIN_SAMPLE_ROWS: Final = 100

_FIRST: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND: Final = np.uint64(0x94D0_49BB_1331_11EB)
_STEP: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def pick_spread_rows(rows: int, count: int, seed: int) -> Integers:
    """Return ``count`` positions among ``rows``, one in each stretch of equal length."""
    at = (np.arange(count) + pseudo_random_bits(count, seed) / 2.0**64) * (rows / count)
    positions: Integers = np.minimum(at.astype(np.int64), rows - 1)
    return positions


def count_sample_rows(rows: int, size: float, total: float) -> int:
    """Return how many rows of a sample to take from a part with ``size`` of ``total`` bytes."""
    return max(MIN_SAMPLE_ROWS, math.ceil(rows * (size / total)))


def pseudo_random_bits(count: int, seed: int) -> Lane:
    """Return ``count`` pseudo-random numbers of 64 bits, determined by the seed."""
    return make_tie_breakers(to_arrow(np.arange(count) + (seed << 40)), "")


def make_tie_breakers(column: Any, name: str) -> Lane:
    """Return a hash of 64 bits of each whole value; record keys are unlikely to collide.

    Raises UnsupportedError for a column without an order.
    """
    column = to_plain_array(column)
    if not is_text(column.type):
        hashes = np.zeros(len(column), np.uint64)
        for lane in fixed_lanes(column, name):
            hashes = mix_bits(hashes ^ lane)
    else:
        hashes = hash_text(column)
    return np.where(is_null(column), np.uint64(0), hashes)


def hash_text(column: Any, *, byteswaps: bool = False) -> Lane:
    """Return a hash of each text; ``byteswaps``: read its bytes as little-endian words."""
    values = text_bytes(column)
    lengths = values.lengths()
    hashes = mix_bits(lengths)
    rows: Integers = np.flatnonzero(lengths)
    depth = 0
    while len(rows):
        lane = values.lane(depth, rows)
        hashes[rows] = mix_bits(hashes[rows] ^ (lane.byteswap() if byteswaps else lane))
        depth += 1
        rows = rows[lengths[rows] > np.uint64(8 * depth)]
    return hashes


def mix_bits(bits: Lane) -> Lane:
    """Mix bits so that each bit of the result depends on all of them (the end of splitmix64)."""
    bits = bits + _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    mixed: Lane = bits ^ (bits >> np.uint64(31))
    return mixed
