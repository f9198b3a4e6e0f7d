"""Predict how many files along a Hilbert or Z-order curve a box meets; pure.

Files are pieces of the curve, and their bounds are the least boxes around them. How many a box
meets depends much on their number: four pieces of a curve through two columns are nearly quarters,
three are not. So the pieces of a few random rows are looked at. On skewed and correlated columns
the result was within a fifth of what real files gave, mostly within a tenth
(tests/unit/planners/cluster/test_curve_pieces.py).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from reconciler.arrays import Floats
from reconciler.layout.curves.curve_keys import hilbert_keys, interleave_bits
from reconciler.layout.curves.pseudo_random import pseudo_random_bits
from reconciler.layout.curves.row_layout import sort_by_key

#: curves whose pieces are no boxes
CURVES: Final = {"hilbert": hilbert_keys, "z-order": interleave_bits}
#: the most pieces that are looked at, and the most columns
MAX_PIECES: Final = 32
MAX_COLUMNS: Final = 5
#: random rows, and the bits of their ranks
_ROWS: Final = 1024
_BITS: Final = 10
#: pieces, boxes and blocks that are processed together
_MAX_CELLS: Final = 2**20


def count_met_pieces(curve: str, files: int, sides: Floats) -> Floats:
    """Return how many of so many files along a curve boxes meet on average.

    ``curve``: one of ``CURVES``. ``files``: at most ``MAX_PIECES``. ``sides``: the share of the
    rows in a box's range of each column, (columns, boxes, blocks). Where a box lies is unknown.
    """
    lower, upper, samples = _bound_pieces(curve, len(sides), files)
    met = np.empty(sides.shape[1:])
    step = max(_MAX_CELLS // max(lower.shape[1] * sides.shape[1], 1), 1)
    for first in range(0, sides.shape[2], step):
        some = sides[:, :, first : first + step, None]
        share = np.ones(())
        for low, high, side in zip(lower, upper, some, strict=True):
            room = np.maximum(1 - side, 1e-9)  # a box begins somewhere between 0 and this
            within = np.minimum(high, room) - np.maximum(low - side, 0.0)
            share = share * np.clip(within / room, 0.0, 1.0)
        met[:, first : first + step] = share.sum(axis=-1) / samples
    return met


@cache
def _bound_pieces(curve: str, columns: int, files: int) -> tuple[Floats, Floats, int]:
    """Return the bounds of the pieces of some samples of random rows, and how many samples.

    The bounds are (columns, pieces), from 0 to 1. Few pieces depend more on the rows, so they get
    more samples.
    """
    samples = max(MAX_PIECES // files, 1)
    starts = np.arange(files) * _ROWS // files
    bounds = []
    for sample in range(samples):
        rows = [
            np.argsort(np.argsort(pseudo_random_bits(_ROWS, sample * MAX_COLUMNS + column)))
            for column in range(columns)
        ]
        ranks = [(row * 2**_BITS // _ROWS).astype(np.uint16) for row in rows]
        along = np.stack(rows)[:, sort_by_key(CURVES[curve](ranks, _BITS))] / _ROWS
        ends = (
            np.minimum.reduceat(along, starts, axis=1),
            np.maximum.reduceat(along, starts, axis=1),
        )
        bounds.append(ends)
    lower, upper = (np.concatenate(part, axis=1) for part in zip(*bounds, strict=True))
    return lower, upper, samples
