"""Boundaries that give each bucket exactly its planned rows, to judge those from histograms."""

from __future__ import annotations

import numpy as np

from reconciler.layout.sizing.key_routing import RouteBoundaries


def find_exact_boundaries(hashes, inserts):
    """Return boundaries from all hashes of a partition's new rows: buckets get their exact rows.

    Rows with equal keys that would be in several buckets all go to the last of them.
    """
    assert len(hashes) == inserts.sum(), "the hashes are those of the planned rows"
    return RouteBoundaries(np.sort(hashes)[np.cumsum(inserts)[:-1]])
