"""Exclude the slices that pending instants use; pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.planners.cluster.slice_verdicts import SliceVerdicts
from reconciler.planners.newest_slices import CandidateSlices

_HOLDER_SENTENCES: Final = {
    "pendingCompaction": "compaction {} is going to rewrite its file group",
    "pendingLogCompaction": "log compaction {} is going to rewrite its log files",
    "pendingClustering": "clustering {} is going to rewrite its file group",
    "pendingWrite": "{} has written to its file group and is still pending",
}


def exclude_pending(
    candidates: CandidateSlices, verdicts: SliceVerdicts, *, but_writes: bool
) -> None:
    """Exclude slices of pending services and writes; ``but_writes``: those of writes stay.

    Hudi's rule (``when: always``) takes slices that a pending write has written to.
    """
    is_held = candidates.holder >= 0
    for rule, word in _HOLDER_SENTENCES.items():
        if rule == "pendingWrite" and but_writes:
            continue
        codes = [code for code, (by, _) in enumerate(candidates.holders) if by == rule]
        verdicts.decide(
            rule,
            is_held & np.isin(candidates.holder, codes),
            lambda code, word=word: word.format(candidates.holders[code][1]),  # type: ignore[misc]
            candidates.holder,
        )
