"""The rule of a table by what is declared of its files and what past writes tell."""

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

#: of fewer rows, what every column of a file has beside its values is a good part of each
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
    """How rows are assigned, by ``files.assign`` and record sizes as far as they are known.

    ``history``: completed writes in the order of requested times; ``footers``: of small files,
    which tell where history does not; ``declared``: bytes of a record where nothing tells;
    ``version``: the Hudi whose writers are imitated. Where neither a thousand rows tell nor anybody
    has declared another size than Hudi's default, a steady write weighs its own rows.
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
    because = "declared: footers tell of no bytes"
    return replace(found, per_row=float(declared), because=because, rows=0)
