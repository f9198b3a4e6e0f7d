"""The rule of a table by what is declared of its files and what past writes tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, assert_never

from reconciler.sizing.average import average_record_size
from reconciler.sizing.estimate import RecordSize, record_size
from reconciler.sizing.history import Footers, Written
from reconciler.sizing.rules import RECORD_SIZE, ByHudi, Rule, Sizes, Steady

#: of fewer rows, what every column of a file has beside its values is a good part of each
_ENOUGH: Final = 1000


def rule_for(
    way: Literal["steady", "hudi"],
    sizes: Sizes,
    history: Sequence[Written],
    *,
    footers: Footers | None = None,
    declared: int = RECORD_SIZE,
    version: Literal["1.x", "0.15"] = "1.x",
) -> Rule:
    """How rows are assigned, by ``files.assign`` and record sizes as far as they are known.

    ``history``: completed writes in the order of requested times; ``footers``: of small files,
    which tell where history does not; ``declared``: bytes of a record where nothing tells;
    ``version``: the Hudi whose writers are imitated. Where neither a thousand rows tell nor anybody
    has declared another size than Hudi's default, a steady write weighs its own rows.
    """
    match way:
        case "hudi":
            average = average_record_size(
                history, small=sizes.small, fallback=declared, rule=version
            )
            return ByHudi(sizes=sizes, average=average)
        case "steady":
            record = _told(history, footers, declared)
            weighs = record.rows < _ENOUGH and declared == RECORD_SIZE
            return Steady(sizes=sizes, record=record, weighs=weighs)
        case _:
            assert_never(way)


def _told(history: Sequence[Written], footers: Footers | None, declared: int) -> RecordSize:
    found = record_size(history, footers, fallback=declared)
    if found.per_row > 0:
        return found
    because = "declared: footers tell of no bytes"
    return replace(found, per_row=float(declared), because=because, rows=0)
