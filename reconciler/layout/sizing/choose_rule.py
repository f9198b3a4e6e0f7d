"""Choose the assignment rule of a table from its spec and its past writes.

Hudi's rule assumes an average record size, which versions compute differently. Source:
AverageRecordSizeEstimator (1.x), UpsertPartitioner.averageBytesPerRecord (0.15.0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, assert_never

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.assignment_rules import (
    DEFAULT_RECORD_SIZE,
    AssignmentRule,
    FileSizeLimits,
    HudiRule,
    SteadyRule,
)
from reconciler.layout.sizing.record_size import (
    FooterSizes,
    PastWrite,
    RecordSize,
    estimate_record_size,
)

#: with fewer rows, the overhead of each column is a large part of every row's size
_ENOUGH_ROWS: Final = 1000
#: the newest instants that 1.x examines (_hoodie.record.size.estimator.max.commits)
_MAX_INSTANTS: Final = 5
#: 1.x ignores replacecommits; 0.15.0 counts them, although its own comment denies it
_COUNTED_ACTIONS: Final = {
    "1.x": frozenset({Action.COMMIT, Action.DELTACOMMIT}),
    "0.15": frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT}),
}


def choose_rule(
    mode: Literal["steady", "hudi"],
    sizes: FileSizeLimits,
    history: Sequence[PastWrite],
    *,
    footers: FooterSizes | None = None,
    declared: int = DEFAULT_RECORD_SIZE,
    version: Literal["1.x", "0.15"] = "1.x",
) -> AssignmentRule:
    """Return the assignment rule for ``files.assign`` with the best known record size.

    ``mode``: the value of ``files.assign``. ``history``: completed writes in the order of requested
    times. ``footers``: sizes of small files, used if history is not enough. ``declared``: bytes of
    a record if nothing is known. ``version``: the Hudi version to imitate. With fewer than a
    thousand known rows and Hudi's default as declared size, the steady rule measures the rows of
    the write itself.
    """
    match mode:
        case "hudi":
            size = compute_average_size(history, small=sizes.small, fallback=declared, rule=version)
            return HudiRule(sizes=sizes, average=size)
        case "steady":
            record = estimate_record_size(history, footers, fallback=declared)
            if record.per_row <= 0:
                because = "declared: footers report no bytes"
                record = RecordSize(fixed=record.fixed, per_row=float(declared), because=because)
            weighs = record.rows < _ENOUGH_ROWS and declared == DEFAULT_RECORD_SIZE
            return SteadyRule(sizes=sizes, record_size=record, needs_row_sizes=weighs)
        case _:
            assert_never(mode)


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
        is_counted = written.is_base | (written.action is not Action.DELTACOMMIT)
        total, records = int(written.bytes[is_counted].sum()), int(written.rows[is_counted].sum())
        if total > least and records > 0:
            return math.ceil(total / records)
    return fallback
