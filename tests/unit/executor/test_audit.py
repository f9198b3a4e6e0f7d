"""The lines of an audit file: valid, complete, and harmless whatever names they carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import StaleError
from reconciler.executor.audit import AuditLog
from reconciler.executor.origin import Origin
from reconciler.executor.outcomes import DeletionOutcome, LeftPartition, SavepointOutcome
from reconciler.executor.result import StepOutcome, TableResult
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import Impact, Note, TablePlan
from reconciler.transaction.process import Process
from tests.unit.render.test_result import DONE, rows

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas/audit.v1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DIGEST = f"sha256:{64 * '1'}"
OPTIONAL = {"step", "repaired", "rebuilt", "savepoint", "deletion"}


class Clock:
    def now_ms(self) -> int:
        return 1_795_268_714_007

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def make_audit_log(lines: list[bytes], **origin: Any) -> AuditLog:
    who = Process(
        who="root",
        host="ci-7/4f2a/pid:[1]",
        pid=1,
        started="",
        tool="hudi-reconciler 0.1.0",
        is_running=lambda *_: True,
    )
    return AuditLog(
        append=lines.append,
        clock=Clock(),
        run_id="5f0c",
        process=who,
        origin=Origin(**origin),
        plan_digest=DIGEST,
    )


def make_planned_table(name: str = "sales.orders", path: str = "s3://lake/orders") -> TablePlan:
    return TablePlan(
        name=name,
        path=path,
        spec={},
        spec_digest=compute_spec_digest({}),
        impact=Impact(files_removed=3, bytes_removed=7),
    )


def make_result(**fields) -> TableResult:
    return TableResult(name="sales.orders", path="s3://lake/orders", **fields)


def read_lines(lines: list[bytes]) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines]
    for document in found:
        VALIDATOR.validate(document)
    return found


COMMON = {
    "format": 1,
    "at": "2026-11-21T13:45:14.007+00:00",
    "run": "5f0c",
    "actor": "ann",
    "host": "ci-7",
    "tool": "hudi-reconciler 0.1.0",
    "environment": "prod",
    "specCommit": "abcdef1-dirty",
    "planDigest": DIGEST,
}
TABLE = {
    "table": "sales.orders",
    "path": "s3://lake/orders",
    "specDigest": compute_spec_digest({}),
    "stepsDigest": "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
    "planned": {"files": 3, "bytes": 7, "bytesRewritten": 0},
}


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_is_closed_and_described():
    objects = [node for node in SCHEMA["$defs"].values() if "properties" in node]

    assert all(node["additionalProperties"] is False for node in objects)
    assert all(
        sorted(node["required"]) == sorted(node["properties"].keys() - OPTIONAL) for node in objects
    )
    assert all(node["description"] for node in objects)
    assert all(of["description"] for node in objects for of in node["properties"].values())


def test_the_schema_has_every_kind_of_step():
    kinds = SCHEMA["$defs"]["step"]["properties"]["kind"]["enum"]

    assert list(get_args(get_type_hints(StepOutcome)["kind"])) == kinds


def test_savepoints_and_deleted_partitions_are_recorded():
    lines: list[bytes] = []
    savepoint = SavepointOutcome(
        change="remove", name="audit", until=None, files=2, bytes=9, left="it is gone"
    )
    deletion = DeletionOutcome(
        partitions=("p=1",),
        groups=1,
        files=1,
        bytes=9,
        left=(LeftPartition(path="p=2", because="busy"),),
    )
    steps = (
        StepOutcome(kind="savepoint", how="completed", savepoint=savepoint),
        StepOutcome(kind="deletePartition", how="completed", deletion=deletion),
    )
    make_audit_log(lines).finished(make_planned_table(), make_result(outcomes=steps))
    [finished] = read_lines(lines)

    assert "audit" == finished["steps"][0]["savepoint"]["name"]
    assert ["p=1"] == finished["steps"][1]["deletion"]["partitions"]


def test_a_table_takes_two_lines():
    lines: list[bytes] = []
    journal = make_audit_log(lines, actor="ann", spec_commit="abcdef1-dirty", environment="prod")
    journal.started(make_planned_table())
    journal.finished(make_planned_table(), make_result(outcomes=(DONE,), seconds=72.00049))
    started, finished = read_lines(lines)

    assert {**COMMON, **TABLE, "event": "started"} == started
    assert {
        **COMMON,
        **TABLE,
        "event": "finished",
        "status": "done",
        "exitCode": 0,
        "seconds": 72.0,
        "instants": ["20261121041500123"],
        "filesRemoved": 12410,
        "bytesRemoved": 1981000000000,
        "refusals": [],
        "warnings": [],
        "error": None,
        "steps": [
            {
                "kind": "clean",
                "how": "completed",
                "instant": "20261121041500123",
                "earliestInstantToRetain": "20261114041000000",
                "filesRemoved": 12410,
                "bytesRemoved": 1981000000000,
                "filesGone": 0,
                "leftOut": [],
                "rewritten": None,
                "indexed": None,
                "archived": None,
                "failed": [],
                "partitionsRemoved": [],
                "partitionsLeft": [],
                "differences": [],
                "warnings": [],
                "seconds": 72.0,
            }
        ],
    } == finished


def test_every_file_that_stayed_is_listed_by_its_reason():
    step = StepOutcome(
        kind="clean",
        how="inflight",
        left_out=rows("a savepoint", "a reader", "a savepoint"),
        failed=rows("denied"),
        partitions_left=(Note("p=2", "it holds others"),),
        differences=(Note("metadataListing", "a ghost"),),
    )
    lines: list[bytes] = []
    make_audit_log(lines).finished(make_planned_table(), make_result(outcomes=(step,)))
    (found,) = read_lines(lines)[0]["steps"]

    assert [
        {"because": "a reader", "files": ["p=1/f1"]},
        {"because": "a savepoint", "files": ["p=1/f0", "p=1/f2"]},
    ] == found["leftOut"]
    assert [{"because": "denied", "files": ["p=1/f0"]}] == found["failed"]
    assert [{"path": "p=2", "because": "it holds others"}] == found["partitionsLeft"]
    assert ("partial", 5) == (read_lines(lines)[0]["status"], read_lines(lines)[0]["exitCode"])


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"unchanged": True}, "unchanged", 0),
        ({"error": "its spec was edited", "code": 4}, "stale", 4),
        ({"refusals": (Note("suspend", "stop"),), "code": 3}, "blocked", 3),
        ({"error": "the lock is held", "code": 6}, "busy", 6),
        ({"error": "the disk is full", "code": 1, "outcomes": (DONE,)}, "failed", 1),
    ],
)
def test_every_end_is_told(fields, status, code):
    lines: list[bytes] = []
    make_audit_log(lines).finished(make_planned_table(), make_result(**fields))
    (found,) = read_lines(lines)

    assert (status, code) == (found["status"], found["exitCode"])
    assert fields.get("error") == found["error"]


def test_what_was_interrupted_says_what_was_done():
    lines: list[bytes] = []
    make_audit_log(lines).interrupted(make_planned_table(), make_result(outcomes=(DONE,)))
    (found,) = read_lines(lines)

    assert ("finished", "interrupted", None) == (
        found["event"],
        found["status"],
        found["exitCode"],
    )
    assert 12410 == found["filesRemoved"]


def test_a_plan_that_is_refused_as_a_whole_takes_one_line():
    lines: list[bytes] = []
    make_audit_log(lines).refused(StaleError("the plan's digest is another"))
    (found,) = read_lines(lines)

    assert ("refused", 4, "the plan's digest is another") == (
        found["event"],
        found["exitCode"],
        found["error"],
    )


HOSTILE = [
    "\n",
    "\r\n",
    "\x1b[2J",
    "\x9b31m",
    "\u2028",
    "\u202e",
    '"}\n{"',
    "\ud800",
    "\x00",
    "\x7f",
    "é",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), min_size=6, max_size=6))
def test_no_name_of_others_breaks_a_line_or_moves_a_cursor(texts):
    name, path, actor, rule, because, error = texts
    lines: list[bytes] = []
    journal = make_audit_log(lines, actor=actor, environment=rule)
    table = make_planned_table(name, path)
    journal.started(table)
    said = make_result(error=error, code=1, refusals=(Note(rule, because),))
    journal.finished(table, said)

    assert 2 == len(lines)
    for line in lines:
        assert line.endswith(b"\n")
        assert all(0x20 <= byte < 0x7F for byte in line[:-1])
    assert (name, path, actor) == tuple(
        json.loads(lines[0])[key] for key in ("table", "path", "actor")
    )
