"""Which file slices an earlier clustering laid out as declared; pure."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.planners.candidates import Candidates
from reconciler.sizing.estimate import LOG_RATIO
from reconciler.spec.model import Clustering
from reconciler.state.layout import Layout, PastClustering

#: log files of a settled slice bring at most so much of what its base file has
_LIGHT: Final = 0.5


def layout_of(asked: Clustering) -> Layout:
    """How rows are to be ordered."""
    if not asked.columns:
        return Layout()
    return Layout(columns=asked.columns, curve=asked.curve, mapping=asked.mapping)


def is_laid(
    found: Candidates, past: tuple[PastClustering, ...], declared: Layout
) -> NDArray[np.bool_]:
    """Slices whose base file a clustering wrote as declared; packing needs no order of rows."""
    files = found.view.files
    done = {p.instant for p in past if not declared.columns or p.layout == declared}
    is_done = np.array([instant in done for instant in files.instants], np.bool_)
    if not len(files):
        return np.zeros(len(found), np.bool_)
    laid: NDArray[np.bool_] = is_done[files.instant[found.base_row]] & found.has_base
    return laid


def is_light(found: Candidates) -> NDArray[np.bool_]:
    """Slices whose log files don't say much else than their base file."""
    light: NDArray[np.bool_] = found.logs * LOG_RATIO <= found.base * _LIGHT
    return light
