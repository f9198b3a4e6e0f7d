"""A number a row that looks random and is always the same: what parts rows of one key."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.curves.lanes import Lane, fixed, is_null, is_text, plain, text

_FIRST: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND: Final = np.uint64(0x94D0_49BB_1331_11EB)
_STEP: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def ties(column: Any, name: str) -> Lane:
    """64 bits of each value, all of it counted: of record keys no two rows are likely to agree.

    Raises UnsupportedError for a column without an order.
    """
    column = plain(column)
    if not is_text(column.type):
        found = np.zeros(len(column), np.uint64)
        for lane in fixed(column, name):
            found = _mixed(found ^ lane)
    else:
        found = _of_text(column)
    return np.where(is_null(column), np.uint64(0), found)


def _of_text(column: Any) -> Lane:
    values = text(column)
    lengths = values.lengths()
    found = _mixed(lengths)
    rows: NDArray[np.int64] = np.flatnonzero(lengths)
    depth = 0
    while len(rows):
        found[rows] = _mixed(found[rows] ^ values.lane(depth, rows))
        depth += 1
        rows = rows[lengths[rows] > np.uint64(8 * depth)]
    return found


def _mixed(bits: Lane) -> Lane:
    """Every bit of the result depends on every bit given (the finish of splitmix64)."""
    bits = bits + _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    found: Lane = bits ^ (bits >> np.uint64(31))
    return found
