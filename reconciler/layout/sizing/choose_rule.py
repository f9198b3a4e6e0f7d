"""Choose the assignment rule of a table from its spec and its past writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, assert_never

from reconciler.layout.sizing.assignment_rules import (
    DEFAULT_RECORD_SIZE,
    AssignmentRule,
    FileSizeLimits,
    HudiRule,
    SteadyRule,
)
from reconciler.layout.sizing.average_record_size import compute_average_size
from reconciler.layout.sizing.record_size import RecordSize, estimate_record_size
from reconciler.layout.sizing.write_history import FooterSizes, PastWrite

#: with fewer rows, the overhead of each column is a large part of every row's size
_ENOUGH_ROWS: Final = 1000


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
            average = compute_average_size(
                history, small=sizes.small, fallback=declared, rule=version
            )
            return HudiRule(sizes=sizes, average=average)
        case "steady":
            record = _estimate_size(history, footers, declared)
            weighs = record.rows < _ENOUGH_ROWS and declared == DEFAULT_RECORD_SIZE
            return SteadyRule(sizes=sizes, record_size=record, needs_row_sizes=weighs)
        case _:
            assert_never(mode)


def _estimate_size(
    history: Sequence[PastWrite], footers: FooterSizes | None, declared: int
) -> RecordSize:
    found = estimate_record_size(history, footers, fallback=declared)
    if found.per_row > 0:
        return found
    because = "declared: footers report no bytes"
    return replace(found, per_row=float(declared), because=because, rows=0)
