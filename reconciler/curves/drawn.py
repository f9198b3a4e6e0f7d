"""Rows that are drawn as if at random, and the same ones every time."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.curves.lanes import Lane
from reconciler.curves.ties import ties
from reconciler.hudi.arrow import integers

#: rows that a part of what is drawn from gives at least, so that a small one is not left out
FEWEST: Final = 100


def spread(rows: int, wanted: int, seed: int) -> NDArray[np.int64]:
    """So many places among the rows, one in each stretch of the same length."""
    at = (np.arange(wanted) + _uniform(wanted, seed)) * (rows / wanted)
    found: NDArray[np.int64] = np.minimum(at.astype(np.int64), rows - 1)
    return found


def wanted_rows(rows: int, size: float, total: float) -> int:
    """How many of a sample of so many rows come from a part with its share of the bytes."""
    return max(FEWEST, math.ceil(rows * (size / total)))


def mixed(count: int, seed: int) -> Lane:
    """64 bits each that look random and are the same for the same seed."""
    return ties(integers(np.arange(count) + (seed << 40)), "")


def _uniform(count: int, seed: int) -> NDArray[np.float64]:
    return mixed(count, seed) / 2.0**64
