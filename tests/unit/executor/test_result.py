"""One number for what became of many tables."""

from __future__ import annotations

import pytest

from reconciler.arrays import to_arrow
from reconciler.executor.result import (
    ApplyResult,
    FileReasons,
    StepOutcome,
    TableResult,
)
from reconciler.plans.model import Note


def make_reasons(*because: str) -> FileReasons:
    return FileReasons(
        partition=to_arrow(["p"] * len(because)).dictionary_encode(),
        name=to_arrow([str(n) for n in range(len(because))]),
        because=to_arrow(because).dictionary_encode(),
    )


def make_table(code: int = 0, *outcomes: StepOutcome) -> TableResult:
    return TableResult(name="t", path="/t", code=code, outcomes=outcomes)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (StepOutcome(kind="clean", how="completed"), 0),
        (StepOutcome(kind="clean", how="nothing", gone=3), 0),
        (StepOutcome(kind="clean", how="completed", left_out=make_reasons("why")), 4),
        (StepOutcome(kind="clean", how="completed", partitions_left=(Note("p", "why"),)), 4),
        (StepOutcome(kind="clean", how="inflight", failed=make_reasons("why")), 5),
        (StepOutcome(kind="clean", how="completed", differences=(Note("x", "why"),)), 5),
    ],
)
def test_an_outcome_has_a_code(outcome, expected):
    assert outcome.exit_code == expected


def test_a_result_is_as_bad_as_its_worst_table():
    stale = StepOutcome(kind="clean", how="completed", left_out=make_reasons("why"))
    result = ApplyResult(
        plan_digest="d", tables=(make_table(), make_table(0, stale), make_table(3))
    )

    assert result.exit_code == 3
    assert [one.status for one in result.tables] == ["done", "stale", "blocked"]


def test_reasons_come_most_frequent_first():
    assert make_reasons("b", "a", "b").count_reasons() == (("b", 2), ("a", 1))
