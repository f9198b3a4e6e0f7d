from __future__ import annotations

import json
import re

import numpy as np
import pytest

from reconciler import arrays, canonical_json
from reconciler.errors import PlanError
from reconciler.executor.result import ApplyResult, FileReasons, StepOutcome, TableResult
from reconciler.plans import columns
from reconciler.plans.document import load_plan
from reconciler.plans.model import Note, Selection
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal


def rows(*because: str) -> FileReasons:
    reasons = sorted(set(because))
    return FileReasons(
        columns.build_dictionary(np.zeros(len(because), np.int32), ["p=1"]),
        arrays.to_arrow([f"f{i}" for i in range(len(because))]),
        columns.build_dictionary(np.array([reasons.index(b) for b in because], np.int32), reasons),
    )


def result(*tables: TableResult, seconds: float = 0.0) -> ApplyResult:
    return ApplyResult(plan_digest="sha256:0", tables=tables, seconds=seconds)


def table(name: str = "t", **fields) -> TableResult:
    return TableResult(name=name, path=f"/w/{name}", **fields)


DONE = StepOutcome(
    kind="clean",
    how="completed",
    instant="20261121041500123",
    removed=12410,
    bytes=1981000000000,
    seconds=72.0,
    earliest_instant_to_retain="20261114041000000",
)


def test_a_completed_clean_takes_two_lines_and_a_summary():
    assert [
        "t  done  /w/t",
        "  clean 20261121041500123  removed 12 410 files, 1.8 TiB, in 1.2 minutes",
        "      published earliest instant to retain: 20261114041000000",
        "",
        "Result: 1 table: 1 done; 12 410 files removed (1.8 TiB) in 1.2 minutes.",
        "Plan digest: sha256:0",
    ] == result_text(result(table(outcomes=(DONE,)), seconds=72.0), Terminal()).splitlines()


def test_a_result_of_some_tables_shows_the_total():
    by = ("--changed-since main",)
    one = ApplyResult(
        plan_digest="sha256:0",
        tables=(table(unchanged=True),),
        selection=Selection(tables=1, total=30, by=by),
    )
    none = ApplyResult(plan_digest="sha256:0", selection=Selection(tables=0, total=30, by=by))

    assert (
        "Result: 1 of 30 tables: 1 unchanged; no files removed.\nPlan digest: sha256:0\n"
        == (result_text(one, Terminal()).partition("\n\n")[2])
    )
    assert "Result: 0 of 30 tables; no files removed.\nPlan digest: sha256:0\n" == (
        result_text(none, Terminal())
    )
    assert "### reconciler apply · 0 of 30 tables\n" in result_markdown(none)
    assert {"tables": 0, "of": 30, "by": ["--changed-since main"], "removed": []} == (
        json.loads(result_json(none))["selection"]
    )
    assert "selection" not in json.loads(result_json(result(table())))


def test_skipped_files_are_counted_by_reason():
    stayed = StepOutcome(
        kind="clean", how="nothing", left_out=rows("a savepoint", "gone", "a savepoint")
    )
    found = result_text(result(table(outcomes=(stayed,))), Terminal())

    assert "! skipped  3 files of the plan\n      2 files: a savepoint\n" in found
    assert "      1 file: gone\n" in found
    assert found.endswith(
        "Exit code 4: part of the reviewed plan no longer holds and was skipped; plan\n  again "
        "to see what is left.\n"
    )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("adopted", "completed by another writer"),
        ("undone", "nothing was left to do, so the pending instant was removed"),
        ("inflight", "it stays inflight until the next apply"),
        ("nothing", "nothing left to do"),
    ],
)
def test_every_outcome_has_its_text(how, says):
    outcome = StepOutcome(kind="resume", how=how, instant="1")

    assert says in " ".join(result_text(result(table(outcomes=(outcome,))), Terminal()).split())


def test_the_worst_table_comes_first():
    found = result_text(
        result(table("fine", unchanged=True), table("bad", error="the disk is full", code=1)),
        Terminal(),
    )

    assert found.index("bad  failed") < found.index("fine  unchanged")
    assert "! error  the disk is full" in found
    assert "Exit code 1: " in found


def test_a_stale_table_without_outcomes_is_skipped():
    stale = TableResult(name="moved", path="/t/moved", error="its spec is another now", code=4)
    found = result_text(ApplyResult(plan_digest="sha256:0", tables=(stale,)), Terminal())

    assert found.startswith("moved  skipped  /t/moved\n")
    assert "Result: 1 table: 1 skipped; no files removed" in found


def test_the_json_names_every_skipped_file():
    outcome = StepOutcome(
        kind="clean",
        how="inflight",
        failed=rows("denied"),
        partitions_left=(Note("p=2", "it holds others"),),
    )
    data = result_json(result(table(outcomes=(outcome,))))
    found = json.loads(data)

    assert data == canonical_json.to_bytes(found) + b"\n"
    assert 5 == found["exitCode"]
    assert [{"partition": "p=1", "name": "f0", "because": "denied"}] == found["tables"][0][
        "outcomes"
    ][0]["failed"]
    assert [{"path": "p=2", "because": "it holds others"}] == found["tables"][0]["outcomes"][0][
        "partitionsLeft"
    ]


def test_a_result_is_not_taken_for_a_plan():
    with pytest.raises(PlanError, match=r"^r\.json: is the result of an apply"):
        load_plan(result_json(result(table())), "r.json")


def test_no_text_of_others_moves_the_cursor():
    found = result_text(result(table("a\x1b[2J", error="b\r\x9b31m", code=1)), Terminal())

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"how": "undone", "instant": "1", "removed": 2, "bytes": 2048},
            "rollback 1  rolled back the dead write; removed 2 files, 2.0 KiB, that no reader",
        ),
        (
            {"how": "undone", "instant": "1", "gone": 1},
            "rollback 1  rolled back the dead write; it had no files, 1 file already",
        ),
        ({"how": "nothing", "gone": 2}, "rollback  nothing left to do, 2 files already removed"),
        (
            {"how": "nothing", "left_out": rows("it came late")},
            "rollback  the write is not rolled back",
        ),
    ],
)
def test_a_rollback_shows_what_happened_to_the_write(fields, said):
    outcome = StepOutcome(kind="rollback", **fields)
    lines = result_text(result(table(outcomes=(outcome,))), Terminal()).splitlines()

    assert said in " ".join(line.strip() for line in lines).replace("  the", "  the")
    assert (4 if "left_out" in fields else 0) == outcome.exit_code


def test_a_rolled_back_instant_is_not_a_written_one():
    outcome = StepOutcome(kind="rollback", how="undone", instant="1", removed=2, bytes=3)
    found = json.loads(result_json(result(table(outcomes=(outcome,)))))["tables"][0]

    assert ([], 2, 3) == (found["instants"], found["filesRemoved"], found["bytesRemoved"])
    assert ("rollback", "undone", "1") == tuple(
        found["outcomes"][0][key] for key in ("kind", "how", "instant")
    )
