"""Find which file slices an earlier clustering wrote as declared; pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.arrays import Mask
from reconciler.layout.sizing.record_size import LOG_RATIO
from reconciler.planners.cluster.candidates import CandidateSlices
from reconciler.spec.model import Clustering
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering

#: greatest size of a settled slice's log files, as a share of its base file
_MAX_LOG_SHARE: Final = 0.5


def declared_layout(clustering: Clustering) -> ClusteringLayout:
    """Return the declared row order."""
    if not clustering.columns:
        return ClusteringLayout()
    return ClusteringLayout(
        columns=clustering.columns, curve=clustering.curve, mapping=clustering.mapping
    )


def is_clustered(
    candidates: CandidateSlices, past: tuple[PastClustering, ...], declared: ClusteringLayout
) -> Mask:
    """Return which slices have a base file that a clustering wrote with the declared layout.

    A layout without columns accepts every clustering.
    """
    files = candidates.view.files
    done = {p.instant for p in past if not declared.columns or p.layout == declared}
    is_done = np.array([instant in done for instant in files.instants], np.bool_)
    if not len(files):
        return np.zeros(len(candidates), np.bool_)
    return is_done[files.instant[candidates.base_row]] & candidates.has_base


def has_few_logs(candidates: CandidateSlices) -> Mask:
    """Return which slices have few log bytes compared with their base file."""
    return candidates.logs * LOG_RATIO <= candidates.base * _MAX_LOG_SHARE
