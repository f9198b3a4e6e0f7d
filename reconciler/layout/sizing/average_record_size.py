"""Compute the average record size by Hudi's rule, which differs between versions.

Source: AverageRecordSizeEstimator (1.x), UpsertPartitioner.averageBytesPerRecord (0.15.0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.write_history import PastWrite

#: the newest instants that 1.x examines (_hoodie.record.size.estimator.max.commits)
_MAX_INSTANTS: Final = 5
#: 1.x ignores replacecommits; 0.15.0 counts them, although its own comment denies it
_COUNTED_ACTIONS: Final = {
    "1.x": frozenset({Action.COMMIT, Action.DELTACOMMIT}),
    "0.15": frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT}),
}


def compute_average_size(
    history: Sequence[PastWrite],
    *,
    small: int,
    fallback: int = 1024,
    threshold: float = 1.0,
    rule: Literal["1.x", "0.15"] = "1.x",
) -> int:
    """Return the bytes of a record that Hudi's writers assume.

    They divide the bytes of the newest completed instant with more than ``threshold`` times
    ``small`` bytes by its records, rounded up. ``fallback``: the result if no instant is that big.
    ``history``: in the order of requested times. Of a deltacommit only base files count.
    """
    least = int(threshold * small)
    counted = [written for written in history if written.action in _COUNTED_ACTIONS[rule]]
    if rule == "1.x":
        counted = counted[-_MAX_INSTANTS:]
    for written in reversed(counted):
        total, records = _sum_bytes_and_records(written)
        if total > least and records > 0:
            return math.ceil(total / records)
    return fallback


def _sum_bytes_and_records(written: PastWrite) -> tuple[int, int]:
    if written.action is not Action.DELTACOMMIT:
        return int(written.bytes.sum()), int(written.rows.sum())
    is_base = written.is_base
    return int(written.bytes[is_base].sum()), int(written.rows[is_base].sum())
