"""Rows that are drawn as if at random, and the same ones every time."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import to_integer_array
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.tie_breakers import make_tie_breakers

#: rows that a part of what is drawn from gives at least, so that a small one is not left out
MIN_SAMPLE_ROWS: Final = 100


def pick_spread_rows(rows: int, count: int, seed: int) -> NDArray[np.int64]:
    """So many places among the rows, one in each stretch of the same length."""
    at = (np.arange(count) + _uniform_shares(count, seed)) * (rows / count)
    found: NDArray[np.int64] = np.minimum(at.astype(np.int64), rows - 1)
    return found


def count_sample_rows(rows: int, size: float, total: float) -> int:
    """How many of a sample of so many rows come from a part with its share of the bytes."""
    return max(MIN_SAMPLE_ROWS, math.ceil(rows * (size / total)))


def pseudo_random_bits(count: int, seed: int) -> Lane:
    """64 bits each that look random and are the same for the same seed."""
    return make_tie_breakers(to_integer_array(np.arange(count) + (seed << 40)), "")


def _uniform_shares(count: int, seed: int) -> NDArray[np.float64]:
    return pseudo_random_bits(count, seed) / 2.0**64
