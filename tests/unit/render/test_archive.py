"""An archival for people: in a plan, and what became of it."""

from __future__ import annotations

import json

import pytest

from reconciler.executor.outcomes import ArchiveOutcome, LeftInstant
from reconciler.executor.result import StepOutcome
from reconciler.plans.archive_step import ArchivedInstant, ArchiveStep, Leftover
from reconciler.render.archive_step import step_lines
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal
from tests.unit.render.test_result import result, table

TIMES = ("20260101041500000", "20260102041500000", "20260103041500000")
STEP = ArchiveStep(
    keep="2..3",
    commits=5,
    instants=tuple(
        ArchivedInstant(time, action)
        for time, action in zip(TIMES, ("commit", "clean", "commit"), strict=True)
    ),
    metadata_table=(ArchivedInstant(TIMES[0], "deltacommit"),),
    leftovers=(Leftover(f".hoodie/.temp/{TIMES[0]}", "it is old"),),
    because="5 commits are active, and at most 3 may be",
)
LEFT = (
    LeftInstant(TIMES[1], "a savepoint needs it"),
    LeftInstant(TIMES[2], "a savepoint needs it"),
)


def show(step, *, full=False):
    return " ".join(" ".join(step_lines(step, Terminal(), "", full=full)).split())


def show_outcome(done, how="completed"):
    outcome = StepOutcome(kind="archive", how=how, archived=done)
    return result(table(outcomes=(outcome,)))


def test_a_step_says_how_many_instants_of_which_kinds_go_and_why():
    assert (
        "~ archive 2 commits, 1 clean, 2026-01-01 04:15 to 2026-01-03 04:15; timeline.keep is 2..3 "
        "5 commits are active, and at most 3 may be "
        "and 1 instant of the metadata table's own timeline "
        "removes .hoodie/.temp/20260101041500000: it is old"
    ) == show(STEP)


def test_the_full_plan_lists_every_instant():
    shown = show(STEP, full=True)

    assert all(f"- {time}" in shown for time in TIMES)
    assert f"- metadata table: {TIMES[0]} deltacommit" in shown


@pytest.mark.parametrize(
    ("done", "says"),
    [
        (ArchiveOutcome(instants=3), "archive archived 3 instants"),
        (
            ArchiveOutcome(instants=1, metadata_table=2, merges=1, leftovers=1),
            "instants of the metadata table, merged small files 1 time, removed 1 leftover",
        ),
        (ArchiveOutcome(metadata_table=2), "archive archived 2 instants of the metadata table"),
        (ArchiveOutcome(gone=2), "archive nothing left to do, 2 instants already archived"),
        (
            ArchiveOutcome(left=LEFT),
            "left to do ! skipped 2 instants of the plan 2 instants: a savepoint needs it",
        ),
    ],
)
def test_an_outcome_says_what_was_archived_and_what_stays(done, says):
    assert says in " ".join(result_text(show_outcome(done), Terminal()).split())


def test_programs_get_the_figures():
    (told,) = json.loads(result_json(show_outcome(ArchiveOutcome(instants=3, left=LEFT))))["tables"]
    (outcome,) = told["outcomes"]

    assert 4 == told["exitCode"]
    assert (3, 2) == (outcome["archived"]["instants"], len(outcome["archived"]["leftOut"]))


def test_a_comment_says_what_stays_active():
    shown = result_markdown(show_outcome(ArchiveOutcome(instants=1, left=LEFT)))

    assert "1 instant archived" in shown
    assert "not archived: 2 instants: a savepoint needs it" in shown
