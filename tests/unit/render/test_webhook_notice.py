from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.executor.result import ApplyResult, StepOutcome, TableResult
from reconciler.plans.model import Finding, Note, ResumeStep, TablePlan
from reconciler.plans.plan import Plan
from reconciler.render.webhook_notice import (
    Notice,
    TableNotice,
    notice_json,
    plan_notices,
    result_notices,
    status_notices,
)
from reconciler.status.conditions import TableCondition
from reconciler.status.model import TableStatus

ILL = TableCondition(type="Healthy", status="False", reason="StuckInstant", message="clean 1 hangs")
STEPS = (ResumeStep(instant="1", action="clean", files=None, because="left"),)


def document(*tables: TableNotice, **values: Any) -> dict[str, Any]:
    given = {"command": "plan", "exit_code": 3, "total": 30, **values}
    return json.loads(notice_json(Notice(tables=tables, **given)))


def planned(name: str, **values: Any) -> TablePlan:
    return TablePlan(name=name, path=f"/{name}", spec={}, spec_digest="", **values)


def test_a_notice_is_a_line_for_a_chat_and_data_for_programs():
    drifted = TableNotice(name="a", path="/a", event="drift", because=("2 slices exceed it",))
    blocked = TableNotice(name="b", path="/b", event="blocked", because=("too many",))

    assert {
        "text": "reconciler plan (prod): 1 blocked, 1 drifted of 30 tables: "
        "b (blocked), a (drifted)",
        "event": "blocked",
        "command": "plan",
        "exitCode": 3,
        "environment": "prod",
        "planDigest": "sha256:1",
        "error": None,
        "tableCount": 30,
        "affectedCount": 2,
        "tables": [
            {"name": "b", "path": "/b", "event": "blocked", "because": ["too many"]},
            {"name": "a", "path": "/a", "event": "drift", "because": ["2 slices exceed it"]},
        ],
    } == document(drifted, blocked, environment="prod", plan_digest="sha256:1")


def test_an_error_of_the_whole_command_is_the_event():
    found = document(error=("stale", "the plan's digest is another"), total=0)

    assert "stale" == found["event"]
    assert "reconciler plan: stale: the plan's digest is another" == found["text"]
    assert "the plan's digest is another" == found["error"]
    assert [] == found["tables"]


def test_three_hundred_tables_make_no_flood():
    reasons = tuple(f"{i} {'x' * 10_000}" for i in range(100))
    many = [
        TableNotice(name=f"t{i:03}", path="/t", event="drift", because=reasons) for i in range(300)
    ]
    found = document(*many, total=400)

    assert (400, 300, 50) == (
        found["tableCount"],
        found["affectedCount"],
        len(found["tables"]),
    )
    assert found["text"].endswith("t009 (drifted), and 290 more")
    assert {5} == {len(table["because"]) for table in found["tables"]}
    assert {500} == {len(said) for table in found["tables"] for said in table["because"]}


def test_the_worst_tables_are_named():
    many = [TableNotice(name=f"t{i:03}", path="/t", event="drift") for i in range(60)]
    failed = TableNotice(name="z", path="/z", event="failed")

    assert "z" == document(*many, failed)["tables"][0]["name"]


@pytest.mark.parametrize(
    "name", ["<!channel>", "<@U1>", "@here", "@all", "[click](https://evil)", "`x`", "#1", "www.x"]
)
def test_a_name_is_neither_a_mention_nor_a_link(name):
    text = document(TableNotice(name=name, path="/t", event="drift"))["text"]

    assert not [mark for mark in "<>[]`" if mark in text]
    assert not [mark for mark in ("@h", "@a", "@U", "://", "#1", "www.") if mark in text]


def test_control_characters_and_surrogates_are_made_visible():
    hostile = TableNotice(name="a\x1b[1m\nb\udce9", path="/a\udce9", event="drift")
    data = notice_json(Notice(command="plan", exit_code=0, total=1, tables=(hostile,)))
    found = json.loads(data)

    assert data.isascii()
    assert r"a\x1b(1m b\udce9 (drifted)" in found["text"]
    assert r"/a\udce9" == found["tables"][0]["path"]


def test_a_plan_reports_errors_refusals_and_changes():
    plan = Plan(
        created_at="",
        tool="",
        tables=(
            planned("gone", error="is not there"),
            planned("held", refusals=(Note("suspend", "suspend: true"),), steps=STEPS),
            planned("part", refusals=(Note("columns", "no x", step="cluster"),), steps=STEPS),
            planned("moved", steps=STEPS, drift=(Finding("retention.commits", 1, 2, "2 exceed"),)),
            planned("left", steps=STEPS),
            planned("fine"),
        ),
    )

    assert [
        ("gone", "failed", ("is not there",)),
        ("held", "blocked", ("suspend: true",)),
        ("part", "blockedInPart", ("no x",)),
        ("moved", "drift", ("retention.commits: 2 exceed",)),
        ("left", "drift", ("left",)),
    ] == [(t.name, t.event, t.because) for t in plan_notices(plan)]


def test_a_status_reports_tables_out_of_sync_or_unhealthy():
    tables = [
        TableStatus(name="gone", path="/", sync="error", error="is not there"),
        TableStatus(name="held", path="/", sync="blocked", because=("suspend: true",)),
        TableStatus(name="part", path="/", sync="blocked in part", because=("no x",)),
        TableStatus(name="moved", path="/", sync="drifted", because=("2 exceed",)),
        TableStatus(
            name="both", path="/", sync="drifted", because=("2 exceed",), conditions=(ILL,)
        ),
        TableStatus(
            name="ill", path="/", sync="unmanaged", because=("no retention",), conditions=(ILL,)
        ),
        TableStatus(name="nobody's", path="/", sync="unmanaged", because=("no retention",)),
        TableStatus(name="fine", path="/", sync="in sync"),
        TableStatus(name="doubt", path="/", sync="unknown", because=("no statistics",)),
    ]

    assert [
        ("gone", "failed", ("is not there",)),
        ("held", "blocked", ("suspend: true",)),
        ("part", "blockedInPart", ("no x",)),
        ("moved", "drift", ("2 exceed",)),
        ("both", "unhealthy", ("2 exceed", "StuckInstant: clean 1 hangs")),
        ("ill", "unhealthy", ("StuckInstant: clean 1 hangs",)),
    ] == [(t.name, t.event, t.because) for t in status_notices(tables)]


def test_an_apply_reports_what_was_not_done_as_reviewed():
    wrong = StepOutcome(kind="clean", how="completed", differences=(Note("p=1", "a is missing"),))
    stays = StepOutcome(kind="clean", how="completed", partitions_left=(Note("", "not empty"),))
    result = ApplyResult(
        plan_digest="sha256:1",
        tables=(
            TableResult(name="gone", path="/", error="is not there", code=1),
            TableResult(name="held", path="/", code=3, refusals=(Note("lock", "no lock"),)),
            TableResult(
                name="some", path="/", code=3, refusals=(Note("columns", "no x", step="cluster"),)
            ),
            TableResult(name="late", path="/", error="the spec changed", code=4),
            TableResult(name="busy", path="/", error="ann has the lock", code=6),
            TableResult(name="half", path="/", outcomes=(wrong,)),
            TableResult(name="part", path="/", outcomes=(stays,)),
            TableResult(name="fine", path="/", unchanged=True),
            TableResult(name="done", path="/"),
        ),
    )

    assert [
        ("gone", "failed", ("is not there",)),
        ("held", "blocked", ("no lock",)),
        ("some", "blockedInPart", ("no x",)),
        ("late", "stale", ("the spec changed",)),
        ("busy", "busy", ("ann has the lock",)),
        ("half", "partial", ("a is missing",)),
        ("part", "stale", ("the table: not empty",)),
    ] == [(t.name, t.event, t.because) for t in result_notices(result)]
