"""Queries to declare: names, rates, and what is left out."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from reconciler.event_logs.application import ApplicationEvents, DamagedEventError
from reconciler.event_logs.proposal import format_runs, propose_queries
from reconciler.event_logs.reader import find_logs, read_workload
from reconciler.event_logs.report import report_workload
from reconciler.event_logs.scans import find_scans
from reconciler.event_logs.workload import (
    KnownTable,
    ObservedQuery,
    ObservedTable,
    ReadCounts,
    ScanRun,
    Workload,
    WorkloadBuilder,
)
from reconciler.index.predicates.parse import parse
from reconciler.prices import parse_runs
from reconciler.render.observed_queries import describe_others
from reconciler.storage.open import open_storage
from tests.event_logs.logs import Asked, describe, load_log, read_runs, write_log, write_query


def make_table(*shapes: str) -> ObservedTable:
    nothing = ReadCounts()
    return ObservedTable(
        location="/t",
        name=None,
        queries=tuple(
            ObservedQuery(shape=shape, where="a = 1", runs=1, bytes=9, files=1, columns=())
            for shape in shapes
        ),
        unconditioned=nothing,
        unknown=nothing,
        incremental=nothing,
        columns={},
    )


def count(*wheres: str, **more):
    builder = WorkloadBuilder([KnownTable(location="/t")])
    for where in wheres:
        run = ScanRun(
            location="file:/t",
            name=None,
            kind=more.get("kind", "hudi"),
            columns=("a",),
            predicate=parse(where) if where else None,
            bytes=10,
        )
        builder.add(run)
    return builder.freeze()[0]


def test_the_command_that_adopts_a_table_can_be_copied_whatever_its_path():
    table = replace(make_table("a = ?"), location="/lake/it's; new")
    logs = Workload(logs=1, bytes=9, queries=1, first_ms=None, last_ms=None, tables=(table,))
    command = describe_others(report_workload(logs, (), 10)).partition("with: ")[2]

    assert ["reconciler", "init", "--from", "/lake/it's; new", "-o", "FOLDER"] == (
        shlex.split(command)
    )


def test_names_say_what_is_asked_and_are_never_the_same():
    long = " and ".join(f"column_{nth} = ?" for nth in range(9))
    names = [one.query.name for one in propose_queries(make_table("a = ?", long, long), (), 1).new]

    assert names[0] == "a = ?"
    assert names[1].startswith("column_0 = ? and column_1 = ? and")
    assert names[2] == f"{names[1]} (2)"
    assert all(len(name) <= 64 for name in names)


@pytest.mark.parametrize("days", [1.0, 2.0, 30.0, 365.0, 70_000.0])
@pytest.mark.parametrize("runs", [1, 7, 95, 10**6])
def test_a_rate_is_one_that_a_spec_can_have(runs, days):

    assert runs / days == pytest.approx(parse_runs(format_runs(runs, days)), rel=0.06)


def test_the_value_in_the_middle_of_those_that_were_asked_is_taken():
    wheres = ["a = 10", "a = 9", "a = 9", "a = 100", "a = 11"]
    (query,) = count(*wheres).queries
    (lists,) = count("a in (1, 2, 3)", "a in (7, 8)", "a in (5, 6)").queries
    (texts,) = count("s = 'x'", "s = 'b'", "s = 'c'").queries

    assert ("a = 10", 5, 50) == (query.where, query.runs, query.bytes)
    assert "a in (7, 8)" == lists.where
    assert "s = 'c'" == texts.where


def test_other_kinds_of_reads_are_counted_apart():
    table = count("a = 1", "", "")
    changes = count("a = 1", kind="incremental")

    assert (3, 2, 1) == (table.runs, table.unconditioned.runs, len(table.queries))
    assert (0, 1, ()) == (changes.runs, changes.incremental.runs, changes.queries)


def test_files_count_for_the_known_table_above_them_only():
    builder = WorkloadBuilder([KnownTable(location="/lake/t")])
    places = (
        "file:/lake/t/p=1/x.parquet",
        "file:/lake/t",
        "file:/lake/t2/x",
        "file:/x",
        "s3://b/t",
    )
    found = [
        builder.add(ScanRun(location=place, name=None, kind="files", columns=(), predicate=None))
        for place in places
    ]

    assert [True, True, False, False, False] == found
    assert not builder.add(
        ScanRun(
            location="file:/l/t/.hoodie/metadata",
            name=None,
            kind="hudi",
            columns=(),
            predicate=None,
        )
    )


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {"nodeName": 1},
        {"nodeName": "Scan parquet ", "metrics": 3, "metadata": {"Location": 4}},
        {"nodeName": "Scan parquet ", "metrics": [{"name": "x", "accumulatorId": 1}],
         "metadata": {"Location": "nonsense"}, "children": 7},
        {"nodeName": "Scan X()", "metrics": [3], "children": [None, 4, {}]},
    ],
)  # fmt: skip
def test_a_plan_of_another_shape_has_no_scans(plan):

    assert () == find_scans(plan, "")


def test_a_plan_without_an_end_is_left():
    node = {"nodeName": "Union", "children": []}
    for _ in range(40):
        node = {"nodeName": "Union", "children": [node, node]}

    assert () == find_scans(node, "")


@pytest.mark.parametrize(
    "event",
    [
        {"executionId": "x"},
        {"executionId": 1, "time": 10**17, "modifiedConfigs": 3, "sparkPlanInfo": 7},
    ],
)
def test_an_event_of_another_shape_is_damage_or_nothing(event):
    name = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    line = json.dumps({"Event": name, **event}, separators=(",", ":")).encode()
    found = []
    application = ApplicationEvents(lambda *query: found.append(query))
    if isinstance(event["executionId"], str):
        with pytest.raises(DamagedEventError):
            application.read_line(line)
    else:
        application.read_line(line)
    application.finish()

    assert [] == found


def test_a_plan_that_runs_again_reads_the_same_bytes_again(tmp_path):
    asked = Asked("[(id#1L = 3)]", "id:bigint", 1, 400)
    write_log(tmp_path / "log", "/t", [asked])
    start, updates, end = (tmp_path / "log").read_bytes().splitlines()[1:]
    again = [line.replace(b'"executionId":0', b'"executionId":1') for line in (start, end)]
    runs = read_runs([start, updates, end, *again])

    assert [400, 400] == [run.bytes for (run,) in runs]


def test_timestamps_are_read_in_the_zone_of_the_session():
    asked = Asked("[(at#1 = 2026-07-01 12:00:00)]", "at:timestamp")
    (start, _, end) = write_query(0, "/t", asked, 1_795_000_000_000)
    wheres = []
    for system, session in (("UTC", None), ("UTC", "Asia/Tokyo"), ("PST8", None), (None, None)):
        properties = {"user.timezone": system} if system else {}
        event = {"Event": "SparkListenerEnvironmentUpdate", "System Properties": properties}
        changed = {"spark.sql.session.timeZone": session} if session else {}
        events = [event, {**start, "modifiedConfigs": changed}, end]
        lines = [json.dumps(one, separators=(",", ":")).encode() for one in events]
        wheres += [describe(run) for (run,) in read_runs(lines)]

    assert wheres == [
        "at = timestamp '2026-07-01 12:00:00Z'",
        "at = timestamp '2026-07-01 03:00:00Z'",
        "",
        "",
    ]


def test_logs_in_a_store_are_read():
    location = "memory://event-logs/app"
    storage = open_storage(location)
    lines = load_log("1.2.0").splitlines(keepends=True)
    storage.create("2026/local-1", b"".join(lines[:90]))
    storage.create("local-2", b"".join(lines[:90]))
    counts = [
        read_workload(find_logs(place, open_storage), ()).queries
        for place in (location, f"{location}/local-2", f"{location}/2026/")
    ]

    assert counts[0] == 2 * counts[1] == 2 * counts[2] > 20


@pytest.mark.parametrize(
    ("above", "expected"), [("InMemoryTableScan", 1), ("SubqueryAdaptiveBroadcast", 0), ("Sort", 2)]
)
def test_rows_from_a_cache_and_copies_of_subqueries_are_not_read_again(above, expected):
    start, _, end = write_query(0, "/t", Asked("[(id#1L = 3)]", "id:bigint"), 1_795_000_000_000)
    scan = start["sparkPlanInfo"]
    plan = {"nodeName": above, "simpleString": above, "children": [scan, scan]}
    lines = [
        json.dumps({**one, "executionId": nth}, separators=(",", ":")).encode()
        for nth in range(2)
        for one in ({**start, "sparkPlanInfo": plan}, end)
    ]

    assert expected == len(read_runs(lines))
