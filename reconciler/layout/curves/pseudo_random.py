"""Pick pseudo-random rows: the same ones every time."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.tie_breakers import make_tie_breakers

#: the fewest rows sampled from each part, so that small parts are represented
MIN_SAMPLE_ROWS: Final = 100


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
