"""Savepoints in plans, results and statuses, as text."""

from __future__ import annotations

import json
from dataclasses import replace

from reconciler.executor.outcomes import SavepointOutcome
from reconciler.executor.result import StepOutcome
from reconciler.plans.model import Impact
from reconciler.plans.savepoint_step import SavepointReport, SavepointStep
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.savepoints import describe_savepoint
from reconciler.render.terminal import Terminal
from reconciler.render.webhook_notice import result_notices
from reconciler.status.model import SavepointStatus
from tests.unit.render import test_plan_markdown as plans
from tests.unit.render import test_result as results

CREATE = SavepointStep(
    change="create",
    name="q3",
    instant="20260930235911204",
    until="2027-01-31",
    files=1204,
    bytes=2048,
    because="the newest commit completed by 2026-09-30T23:59:59Z",
)
REMOVE = replace(CREATE, change="remove", because="its until, 2027-01-31, has passed")
OTHER = SavepointReport(
    instant="20260815101500123",
    is_completed=True,
    made_by="etl",
    comment="before the backfill",
    made_ms=1786788900123,
    files=310,
    bytes=4096,
)
DONE = SavepointOutcome(change="create", name="q3", until="2027-01-31", files=12, bytes=2048)


def text(*steps, **more):
    made = plans.table("t", steps=steps, impact=Impact(), **more)
    return plan_text(plans.plan(made), Terminal()).splitlines()


def test_a_new_savepoint_shows_its_files_its_end_and_its_commit():
    lines = text(CREATE)

    assert "Applying makes 1 savepoint and removes no files." == lines[1]
    at = lines.index("  + savepoint  q3 pins 1 204 files, 2.0 KiB, until 2027-01-31")
    assert [
        "      20260930235911204 (2026-09-30 23:59): the newest commit completed by",
        "        2026-09-30T23:59:59Z",
    ] == lines[at + 1 : at + 3]
    assert "Plan: 1 table: 1 to change; no files to remove, 1 savepoint to make." == lines[-2]


def test_a_savepoint_without_an_end_stays_while_it_is_declared():
    lines = text(replace(CREATE, until=None))

    assert any(line.endswith("2.0 KiB, while it is declared") for line in lines)


def test_a_removed_savepoint_shows_why():
    lines = text(REMOVE)

    assert "Applying removes 1 savepoint and removes no files." == lines[1]
    assert "  - savepoint  q3 no longer pins 1 204 files, 2.0 KiB" in lines
    assert any("its until, 2027-01-31, has passed" in line for line in lines)


def test_a_savepoint_of_another_tool_shows_its_maker_and_what_only_it_keeps():
    lines = text(CREATE, other_savepoints=(OTHER,))

    at = next(number for number, line in enumerate(lines) if "= savepoint" in line)
    found = " ".join(line.strip() for line in lines[at : at + 2])
    assert (
        "= savepoint  20260815101500123 (2026-08-15 10:15) by etl, made 2026-08-15: before the "
        "backfill; it alone keeps 310 files, 4.0 KiB" == found
    )


def test_a_savepoint_of_another_tool_is_shown_of_an_unchanged_table_too():
    half = replace(OTHER, is_completed=False, made_by=None, comment=None, made_ms=None, files=0)
    lines = text(other_savepoints=(half,))

    found = " ".join(line.strip() for line in lines)
    assert "of another tool, half made; it keeps nothing that the retention does not keep" in found


def test_names_of_others_cannot_break_the_terminal_or_the_comment():
    hostile = replace(CREATE, name="\x1b[2J</details>`", because="`\n<b>")
    other = replace(OTHER, comment="\x1b[2J\n", made_by="\x07")
    made = plans.table("t", steps=(hostile,), other_savepoints=(other,))
    assert "\x1b" not in plan_text(plans.plan(made), Terminal())
    assert "\x1b" not in plan_markdown(plans.plan(made))


def outcome(**more):
    how = more.pop("how", "completed")
    done = replace(DONE, **more)
    instant = None if how == "nothing" else "20260930235911204"
    return StepOutcome(kind="savepoint", how=how, instant=instant, savepoint=done)


def shown(one):
    return result_text(results.result(results.table(outcomes=(one,))), Terminal())


def test_a_result_tells_what_was_made_and_removed():
    made, removed = shown(outcome()), shown(outcome(change="remove"))

    assert "savepoint 20260930235911204  made q3, which pins 12 files, 2.0 KiB" in made
    assert "Result: 1 table: 1 done; 1 savepoint made." in made
    assert "removed q3, which pinned 12 files, 2.0 KiB" in removed
    assert "1 savepoint removed." in removed


def test_a_result_tells_what_was_done_before():
    assert "savepoint  q3 was made before" in shown(outcome(how="nothing"))
    assert "savepoint  q3 was removed before" in shown(outcome(how="nothing", change="remove"))


def test_a_step_that_fell_out_is_told_everywhere():
    one = outcome(how="nothing", left="plan again")
    result = results.result(results.table(outcomes=(one,)))

    assert 4 == result.exit_code
    assert "q3 is not made: plan again" in shown(one)
    assert "q3 is not made: plan again" in result_markdown(result)
    assert [("savepoint q3: plan again",)] == [n.because for n in result_notices(result)]


def test_the_json_of_other_steps_has_no_savepoint():
    ours = outcome()
    document = json.loads(result_json(results.result(results.table(outcomes=(results.DONE, ours)))))
    clean, savepoint = document["tables"][0]["outcomes"]

    assert "savepoint" not in clean
    assert {
        "change": "create",
        "name": "q3",
        "until": "2027-01-31",
        "files": 12,
        "bytes": 2048,
        "leftOut": None,
    } == savepoint["savepoint"]


def test_the_instant_of_a_removed_savepoint_was_not_written():
    ours = results.table(outcomes=(outcome(), outcome(change="remove")))

    assert ("20260930235911204",) == ours.instants


def status(**more):
    fields = {"instant": "20260815101500123", "is_completed": True, "files": 3, "bytes": 9}
    return SavepointStatus(**{**fields, "pinned_files": 0, "pinned_bytes": 0, **more})


def test_the_status_of_a_savepoint_names_its_maker_its_age_and_what_only_it_keeps():
    found = describe_savepoint(
        status(
            pinned_files=2,
            pinned_bytes=1024,
            made_by="etl",
            comment="before",
            age_seconds=7200,
            freed_files=1,
            freed_bytes=512,
        )
    )

    assert (
        "20260815101500123 (2026-08-15 10:15) pins 2 files, 1.0 KiB, besides the newest file "
        "slices; it alone keeps 1 file, 512 bytes; made 2 hours ago by etl: before" == found
    )


def test_the_status_of_a_savepoint_of_ours_begins_with_its_name():
    found = describe_savepoint(status(name="q3", made_by="ann", comment="reconciler savepoint"))

    assert (
        "q3, 20260815101500123 (2026-08-15 10:15) pins only files of the newest file slices; made "
        "by ann" == found
    )


def test_a_half_made_savepoint_pins_what_is_unknown():
    assert describe_savepoint(status(is_completed=False)).endswith(
        "is unfinished: the files it will pin are unknown"
    )
