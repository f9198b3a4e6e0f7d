from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reconciler import arrays, canonical_json
from reconciler.errors import PlanError
from reconciler.plans import columns
from reconciler.plans.decode import empty_named_files, empty_removed_files
from reconciler.plans.document import _read_canonical as read_canonical
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import (
    CleanStep,
    KeptFiles,
    LogAppend,
    NamedFiles,
    RemovedFiles,
    ResumeStep,
    RollbackStep,
    Selection,
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointStep


def removed(*paths: str) -> RemovedFiles:
    split = [path.rpartition("/") for path in sorted(paths)]
    folders = sorted({folder for folder, _, _ in split})
    size = len(split)
    return RemovedFiles(
        partition=columns.build_dictionary(
            np.array([folders.index(f) for f, _, _ in split], np.int32), folders
        ),
        name=arrays.to_arrow([name for _, _, name in split]),
        bytes=np.arange(size, dtype=np.int64),
        kind=np.zeros(size, np.int8),
        rule=np.zeros(size, np.int8),
        because=columns.build_dictionary(np.zeros(size, np.int32), ["superseded"]),
    )


def plan(*steps: Any, **fields: Any) -> Plan:
    table = TablePlan(
        **{
            "name": "t",
            "path": "/w/t",
            "spec": {},
            "spec_digest": compute_spec_digest({}),
            **fields,
        },
        steps=steps,
    )
    return Plan(created_at="2026-11-21T09:00:00+00:00", tool="hudi-reconciler 0", tables=(table,))


def clean(files: RemovedFiles, **fields: Any) -> CleanStep:
    return CleanStep(
        policy="KEEP_LATEST_COMMITS", earliest_instant_to_retain=None, files=files, **fields
    )


def resealed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A document that somebody changed and gave right digests again."""
    document = json.loads(dump_plan(plan(clean(removed("p=1/a", "p=1/b", "p=2/a")))))
    change(document)
    for table in document["tables"]:
        table["stepsDigest"] = canonical_json.digest_document(table["steps"])
    covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}
    document["digest"] = canonical_json.digest_document(covered)
    return canonical_json.to_bytes(document) + b"\n"


def rolls_back(document: dict[str, Any], *, name: str = "f", partition: str = "p=9") -> Any:
    """Add a rollback of one file, and give it."""
    step = {
        "kind": "rollback",
        "instant": "1",
        "action": "commit",
        "files": [{"name": name, "partition": partition}],
        "because": "it died",
    }
    document["tables"][0]["steps"].insert(0, step)
    return step


def partition(document: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return document["tables"][0]["steps"][0]["partitions"][number]


def test_the_document_is_exactly_this():
    found = dump_plan(plan(clean(removed("p=1/a"), delete_partitions=("p=0", "p=1"))))

    assert {
        "format": 1,
        "createdAt": "2026-11-21T09:00:00+00:00",
        "tool": "hudi-reconciler 0",
        "tables": [
            {
                "name": "t",
                "path": "/w/t",
                "spec": {},
                "error": None,
                "observed": None,
                "drift": [],
                "steps": [
                    {
                        "kind": "clean",
                        "policy": "KEEP_LATEST_COMMITS",
                        "earliestInstantToRetain": None,
                        "partitions": [
                            {"path": "p=0", "deletePartition": True, "files": []},
                            {
                                "path": "p=1",
                                "deletePartition": True,
                                "files": [
                                    {
                                        "name": "a",
                                        "bytes": 0,
                                        "kind": "base",
                                        "rule": "retention",
                                        "because": "superseded",
                                    }
                                ],
                            },
                        ],
                    }
                ],
                "kept": [],
                "predictions": [],
                "impact": {
                    "filesRemoved": 0,
                    "bytesRemoved": 0,
                    "bytesRewritten": 0,
                    "earliestReadable": {"before": None, "after": None},
                },
                "refusals": [],
                "warnings": [],
            }
        ],
    } == _without_digests(json.loads(found))


def _without_digests(document: dict[str, Any]) -> dict[str, Any]:
    del document["digest"]
    for table in document["tables"]:
        del table["specDigest"], table["stepsDigest"]
    return document


def test_a_spec_has_the_same_digest_wherever_its_table_lies():
    assert compute_spec_digest({"path": "/a", "retention": 1}) == compute_spec_digest(
        {"path": "/b", "retention": 1}
    )
    assert compute_spec_digest({"retention": 1}) != compute_spec_digest({"retention": 2})


def test_a_dictionary_with_a_value_twice_makes_one_partition():
    files = removed("p=1/a", "p=1/b")
    twice = columns.build_dictionary(np.array([0, 1], np.int32), ["p=1", "p=1"])
    odd = RemovedFiles(twice, files.name, files.bytes, files.kind, files.rule, files.because)

    assert dump_plan(plan(clean(files))) == dump_plan(plan(clean(odd)))


def test_rows_out_of_order_are_a_bug_of_the_planner():
    files = removed("p=1/a", "p=1/b")
    backwards = arrays.to_arrow(["b", "a"])
    odd = RemovedFiles(
        files.partition, backwards, files.bytes, files.kind, files.rule, files.because
    )

    with pytest.raises(ValueError, match="sorted"):
        dump_plan(plan(clean(odd)))


def named(*paths: str) -> NamedFiles:
    files = removed(*paths)
    return NamedFiles(partition=files.partition, name=files.name)


def test_names_out_of_order_are_a_bug_of_the_planner():
    files = replace(named("p=1/a", "p=1/b"), name=arrays.to_arrow(["b", "a"]))
    step = RollbackStep(instant="3", action="commit", files=files, because="")

    with pytest.raises(ValueError, match="sorted"):
        dump_plan(plan(step))


FOREIGN = RollbackStep(
    instant="5",
    action="deltacommit",
    files=empty_named_files(),
    writer="foreign",
    rollback="6",
    appends=(
        LogAppend(
            partition="p=1", file_id='f"}],"files":[', base_instant="1", logs=(".f_1.log.1",)
        ),
    ),
    because="",
)


def test_a_rollback_of_another_writers_write_is_read_as_it_was_written():
    (step,) = load_plan(dump_plan(plan(FOREIGN)), "plan.json").tables[0].steps

    assert (FOREIGN.writer, FOREIGN.rollback, FOREIGN.appends) == (
        step.writer,
        step.rollback,
        step.appends,
    )


def test_canonical_bytes_never_take_the_slow_path():
    steps = (
        ResumeStep(instant="1", action="clean", files=removed("p=1/x"), because='q"}]},{"'),
        ResumeStep(instant="2", action="clean", files=removed("p=1/y")),
        RollbackStep(
            instant="3",
            action="commit",
            files=named("p=1/z", 'p=2/"}],"instant":"'),
            because='"files":[{"name":"',
        ),
        RollbackStep(instant="4", action="replacecommit", files=empty_named_files(), because=""),
        FOREIGN,
        ResumeStep(instant="5", action="clean", files=removed("p=1/w")),
        SavepointStep(
            change="create",
            name='"files":[{"name":"',
            instant="5",
            until=None,
            files=1,
            bytes=2,
            because="b",
        ),
        clean(removed("p=1/a", "p=2/a"), delete_partitions=("p=3",)),
    )
    rows = removed("p=1/k")
    kept = KeptFiles(rows.partition, rows.name, rows.rule, rows.because)
    data = dump_plan(plan(*steps, kept=kept))

    assert read_canonical(data) is not None


REFUSED = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "an OpenTofu plan file": (b"PK\x03\x04\x14\x00tfplan", "ZIP archive"),
    "an OpenTofu plan as JSON": (b'{"format_version":"1.2","terraform_version":"1"}', "OpenTofu"),
    "a spec": (b"apiVersion: reconciler/v1\nkind: HudiTable\n", "is a spec"),
    "a spec as JSON": (b'{"apiVersion": "reconciler/v1"}', "is a spec"),
    "a result": (b'{"format":1,"planDigest":"sha256:0","tables":[]}', "result of an apply"),
    "the text": (b"a.b  COW\n\nPlan: 1 table.  digest sha256:00\n", "is a rendered plan"),
    "the comment": (b"<!-- reconciler:plan: -->\n### plan", "is a rendered plan"),
    "prose": (b"hello", "is not JSON"),
    "a list": (b"[]", "JSON but not a plan"),
    "another document": (b'{"a": 1}', 'has no "format"'),
    "packed": (gzip.compress(b"{}"), "gzip"),
    "binary": (b"Obj\x01\x00\x00", "binary"),
    "not UTF-8": (b'{"a": "\xff"}', "is not UTF-8 at byte 7"),
    "cut off": (b'{"createdAt":"2026', "is truncated"),
    "damaged": (b'{"a": 1 "b": 2}', "is damaged: Expecting ',' delimiter at line 1, column 9"),
    "a key twice": (b'{"a": 1, "a": 2}', 'has the key "a" twice'),
    "not a number": (b'{"format": NaN}', "NaN is not a JSON number"),
    "too deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "of the future": (b'{"format": 2}', "is a plan of format 2; this version reads format 1"),
    "half a surrogate": (
        dump_plan(plan()).replace(b"hudi-reconciler 0", rb"\ud800"),
        "half of a surrogate pair",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_plan_is_called_by_its_name(case: str):
    data, sentence = REFUSED[case]

    with pytest.raises(PlanError) as found:
        load_plan(data, "plan.json")
    assert str(found.value).startswith("plan.json: ")
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)


INDEX_STEP = {
    "kind": "index",
    "targets": ["zindex"],
    "columns": ["a"],
    "add": ["a"],
    "drop": [],
    "files": 1,
    "because": "declared",
}


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a field is missing": (lambda d: d["tables"][0].pop("path"), 'tables[0] has no "path"'),
    "a field is unknown": (
        lambda d: d["tables"][0].update(extra=1),
        "tables[0] has a field that format 1 does not have: 'extra'",
    ),
    "a number is a string": (
        lambda d: partition(d)["files"][0].update(bytes="1"),
        "tables[0].steps[0].partitions[0].files[0].bytes must be a whole number, not a string",
    ),
    "a number is a boolean": (
        lambda d: partition(d)["files"][0].update(bytes=True),
        "must be a whole number, not true or false",
    ),
    "a size is negative": (
        lambda d: partition(d)["files"][0].update(bytes=-1),
        "must be between 0 and 2^63",
    ),
    "a size is too big": (
        lambda d: partition(d)["files"][0].update(bytes=1 << 63),
        "must be between 0 and 2^63",
    ),
    "a rule is unknown": (
        lambda d: partition(d)["files"][0].update(rule="whim"),
        "must be one of retention, replaced, not 'whim'",
    ),
    "a kind is unknown": (
        lambda d: partition(d)["files"][0].update(kind="bases"),
        "must be one of base, log, cdc",
    ),
    "a name climbs out": (
        lambda d: partition(d)["files"][0].update(name="../../etc/passwd"),
        "must be the name of a file in its partition, not '../../etc/passwd'",
    ),
    "a name is dots": (
        lambda d: partition(d)["files"].insert(0, {**partition(d)["files"][0], "name": ".."}),
        "must be the name of a file in its partition",
    ),
    "a name is empty": (
        lambda d: partition(d)["files"].insert(0, {**partition(d)["files"][0], "name": ""}),
        "must be the name of a file in its partition",
    ),
    "a name has a backslash": (
        lambda d: partition(d)["files"][1].update(name="b\\c"),
        "must be the name of a file in its partition",
    ),
    "a partition is absolute": (
        lambda d: partition(d).update(path="/etc"),
        "must be the path of a partition inside the table, not '/etc'",
    ),
    "a partition climbs out": (
        lambda d: partition(d).update(path="p=1/../.."),
        "must be the path of a partition inside the table",
    ),
    "a partition is another store": (
        lambda d: partition(d, 1).update(path="s3://b/p"),
        "must be the path of a partition inside the table",
    ),
    "a partition is the timeline": (
        lambda d: partition(d).update(path=".hoodie/timeline"),
        "must be the path of a partition inside the table",
    ),
    "a table's path is relative": (
        lambda d: d["tables"][0].update(path="w/t"),
        "tables[0].path must be an absolute path or a URL",
    ),
    "a file is there twice": (
        lambda d: partition(d)["files"].insert(0, partition(d)["files"][0]),
        "lists file 'a' of table t twice",
    ),
    "files are out of order": (
        lambda d: partition(d)["files"].reverse(),
        "lists file 'a' of table t out of order",
    ),
    "a partition is there twice": (
        lambda d: partition(d, 1).update(path="p=1"),
        "lists partition 'p=1' of table t twice",
    ),
    "a partition is there for nothing": (
        lambda d: partition(d).update(files=[]),
        "lists partition 'p=1' of table t without files and does not delete it",
    ),
    "a file is in two steps": (
        lambda d: d["tables"][0]["steps"].append(d["tables"][0]["steps"][0]),
        "lists file 'p=1/a' of table t in two steps",
    ),
    "a table is there twice": (
        lambda d: d["tables"].append(d["tables"][0]),
        "lists table t twice",
    ),
    "a step is unknown": (
        lambda d: d["tables"][0]["steps"][0].update(kind="drop"),
        (
            "has kind 'drop'; known are resume, rollback, metadata, savepoint, deletePartition, "
            "cluster, compact, index, clean, orphans, archive"
        ),
    ),
    "a step is a text": (
        lambda d: d["tables"][0].update(steps=["clean"]),
        "tables[0].steps[0] must be an object, not a string",
    ),
    "an index step names no index": (
        lambda d: d["tables"][0]["steps"].append(INDEX_STEP | {"targets": []}),
        "steps[1].targets must have at least 1 item",
    ),
    "the format is a number with a fraction": (
        lambda d: d.update(format=1.0),
        "format must be a whole number, not a number with a fraction",
    ),
    "a rollback names a file elsewhere": (
        lambda d: rolls_back(d, name="../../x"),
        "must be the name of a file in its partition, not '../../x'",
    ),
    "a rollback names the folder above": (
        lambda d: rolls_back(d, name=".."),
        "must be the name of a file in its partition, not '..'",
    ),
    "a rollback names a partition elsewhere": (
        lambda d: rolls_back(d, partition="../t"),
        "must be the path of a partition inside the table, not '../t'",
    ),
    "a rollback names a file of the timeline": (
        lambda d: rolls_back(d, partition=".hoodie"),
        "must be the path of a partition inside the table, not '.hoodie'",
    ),
    "a rollback is of no instant": (
        lambda d: rolls_back(d).update(instant="x"),
        "must be an instant (digits), not 'x'",
    ),
    "a rollback names a file twice": (
        lambda d: rolls_back(d)["files"].append({"name": "f", "partition": "p=9"}),
        "lists file ('p=9', 'f') of table t twice",
    ),
    "a rollback names files out of order": (
        lambda d: rolls_back(d)["files"].append({"name": "e", "partition": "p=9"}),
        "lists file ('p=9', 'e') of table t out of order",
    ),
    "a file goes with a rollback and a clean": (
        lambda d: rolls_back(d, name="a", partition="p=1"),
        "lists file 'p=1/a' of table t in two steps",
    ),
    "an instant leads elsewhere": (
        lambda d: d["tables"][0]["steps"][0].update(earliestInstantToRetain="../1"),
        "must be an instant (digits), not '../1'",
    ),
    "the time has no offset": (
        lambda d: d.update(createdAt="2026-11-21T09:00:00"),
        "createdAt must be an ISO-8601 time with an offset",
    ),
    "the spec is another": (
        lambda d: d["tables"][0].update(spec={"retention": {"commits": 1}}),
        "has a spec of table t that does not match specDigest",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("layout", ["canonical", "indented"])
def test_a_resealed_plan_is_still_refused_when(case: str, layout: str):
    change, sentence = BROKEN[case]
    data = resealed(change)
    if layout == "indented":
        data = json.dumps(json.loads(data), indent=2).encode()

    with pytest.raises(PlanError) as found:
        load_plan(data, "plan.json")
    assert str(found.value).startswith("plan.json: ")
    assert sentence in str(found.value)


def test_an_edited_plan_is_refused():
    data = dump_plan(plan(clean(removed("p=1/a"))))

    with pytest.raises(PlanError, match="was edited after it was made"):
        load_plan(data.replace(b'"name":"a"', b'"name":"b"'), "plan.json")


def test_a_plan_whose_steps_digest_is_another_is_refused():
    document = json.loads(dump_plan(plan(clean(removed("p=1/a")))))
    document["tables"][0]["stepsDigest"] = canonical_json.digest_document([])
    covered = {k: document[k] for k in ("format", "tables")}
    document["digest"] = canonical_json.digest_document(covered)

    with pytest.raises(PlanError, match="do not match stepsDigest"):
        load_plan(canonical_json.to_bytes(document), "plan.json")


def test_a_byte_order_mark_is_no_damage():
    data = dump_plan(plan(clean(removed("p=1/a"))))

    assert data == dump_plan(load_plan(b"\xef\xbb\xbf" + data, "plan.json"))


def test_a_plan_without_tables_reads_back():
    nothing = Plan(created_at="2026-11-21T09:00:00+00:00", tool="x", tables=())

    assert nothing.tables == load_plan(dump_plan(nothing), "plan.json").tables


NONE_CHANGED = Selection(tables=0, total=30, by=("--changed-since origin/main",))


def test_a_plan_of_no_selected_table_reads_back_fast_and_carefully():
    nothing = Plan(
        created_at="2026-11-21T09:00:00+00:00", tool="x", tables=(), selection=NONE_CHANGED
    )
    data = dump_plan(nothing)
    careful = load_plan(json.dumps(json.loads(data), indent=2).encode(), "plan.json")

    assert read_canonical(data).selection == NONE_CHANGED
    assert careful.selection == NONE_CHANGED
    assert dump_plan(careful) == data


def test_the_digest_covers_the_selection():
    one = plan(clean(removed("p=1/a")))
    selected = replace(one, selection=Selection(tables=1, total=2, by=("--name t",)))

    assert one.digest != selected.digest


@pytest.mark.parametrize("tables", [0, 2, 3])
def test_as_many_tables_are_selected_as_are_listed(tables):
    def change(document: dict[str, Any]) -> None:
        document["selection"] = {"tables": tables, "of": 2, "by": [], "removed": []}

    with pytest.raises(PlanError, match=f"lists 1 table but its selection says {tables} of 2"):
        load_plan(resealed(change), "plan.json")


def test_no_more_tables_are_selected_than_there_are():
    def change(document: dict[str, Any]) -> None:
        document["selection"] = {"tables": 1, "of": 0, "by": [], "removed": []}

    with pytest.raises(PlanError, match="lists 1 table but its selection says 1 of 0"):
        load_plan(resealed(change), "plan.json")


def test_a_step_without_files_reads_back():
    data = dump_plan(plan(clean(empty_removed_files(), delete_partitions=("p=1",))))

    assert ("p=1",) == load_plan(data, "plan.json").tables[0].steps[0].delete_partitions
