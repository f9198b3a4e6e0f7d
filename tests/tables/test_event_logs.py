"""Event logs that real Spark wrote while it read tables of real Hudi."""

from __future__ import annotations

import json
from random import Random

import pytest

from reconciler.errors import StorageError
from reconciler.event_logs.proposal import propose_queries
from reconciler.event_logs.reader import find_logs, read_workload
from reconciler.event_logs.workload import MAX_WHERE, KnownTable
from reconciler.index.predicates.parse import parse
from reconciler.spec.model import Query
from reconciler.storage.open import open_storage
from tests.event_logs.asked import ASKED, NOTHING, UNKNOWN
from tests.event_logs.logs import VERSIONS, describe, load_log, read_runs
from tests.selection import rounds

DAMAGES = rounds("LOGS_DAMAGED", few=3, many=1000)
COW = KnownTable(location="/lake/cow")
#: both tables by path and by name, and an update
QUERIES = 4 * len(ASKED) + 1


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "local-1").write_bytes(load_log("1.2.0"))
    return tmp_path


def read(folder, *known):
    return read_workload(find_logs(str(folder), open_storage), known)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_query_is_read_as_it_was_asked_by_path_and_by_name(version):
    runs = [found[0] for found in read_runs(load_log(version).splitlines())]
    # 1.x shows the update, which reads the table in Spark's plan
    runs = [run for run in runs if describe(run) != "id = 5"]
    expected = [expected for _, expected in ASKED]
    count = len(ASKED)

    assert 4 * count == len(runs)
    for nth, (place, name) in enumerate(
        [("cow", None), ("cow", "sales.cow"), ("mor", None), ("mor", "sales.mor")]
    ):
        part = runs[nth * count : (nth + 1) * count]
        assert expected == [describe(run) for run in part]
        assert {f"/lake/{place}"} == {run.location.removeprefix("file:") for run in part}
        assert {"hudi"} == {run.kind for run in part}
        assert name in (None, part[0].name)
        assert all({"id", "name"} <= {*run.columns} for run in part)
        # the relation that 0.15.0 has for merge-on-read tables counts no bytes
        has_bytes = version != "0.15.0" or place == "cow"
        assert has_bytes == any(run.bytes for run in part)


def test_what_is_read_parses_to_the_same_predicate():
    wheres = {expected for _, expected in ASKED} - {UNKNOWN, NOTHING}
    runs = [found[0] for found in read_runs(load_log("1.2.0").splitlines())]
    read = {describe(run): run.predicate for run in runs}

    assert len(wheres) > 20
    for where in wheres:
        parsed, known = parse(where), read[where]
        if "between" not in where and "NaN" not in where:
            assert parsed == known, where


def test_queries_are_grouped_counted_and_ordered(logs):
    workload = read(logs, COW)
    (cow, mor) = workload.tables
    shapes = {query.shape: query for query in cow.queries}

    assert (1, QUERIES, ()) == (workload.logs, workload.queries, workload.problems)
    assert ("/lake/cow", "sales.cow") == (cow.location, cow.name)
    assert ("/lake/mor", "sales.mor") == (mor.location, mor.name)
    assert [query.bytes for query in cow.queries] == sorted(
        (query.bytes for query in cow.queries), reverse=True
    )
    assert "customer = 5" == shapes["customer = ?"].where  # of 5, 5, 12 and 12
    assert 4 == shapes["customer = ?"].runs
    assert 4 == shapes["customer > ?"].runs + shapes["customer between ? and ?"].runs
    assert cow.runs == sum(query.runs for query in cow.queries) + 12 + 4
    assert cow.columns["id"] == cow.runs - 2  # the subquery reads one column


def test_tables_are_found_by_every_spelling_of_their_place_and_by_their_name(logs):
    count = len(ASKED) + 1  # one query reads the table twice
    by_path = [KnownTable(location=place) for place in ("/lake//cow/", "file:///lake/cow")]
    by_name = KnownTable(location="s3://elsewhere/cow", catalog_name="Sales.Cow")
    runs = [[table.runs for table in read(logs, known).tables[:2]] for known in (*by_path, by_name)]

    assert [[2 * count, 2 * count + 1], [2 * count, 2 * count + 1], [count, count]] == runs


def test_declared_queries_stay_and_are_not_proposed_again(logs):
    (cow, _) = read(logs, COW).tables
    declared = (
        Query(name="mine", where="customer = 4711"),
        Query(name="id = ?", where="name = 'x' and ts = 3", runs="3/week"),
    )
    proposal = propose_queries(cow, declared, days=2.0, limit=4)
    names = [one.query.name for one in proposal.new]
    merged = proposal.add_to(declared)

    assert 4 == len(names) == len({*names, "mine", "id = ?"}) - 2
    assert "customer = ?" not in names
    assert [("mine", 4)] == [(name, found.runs) for name, found in proposal.declared]
    assert (declared[0].where, "2/day") == (merged[0].where, merged[0].runs)
    assert declared[1] == merged[1]
    assert len(cow.queries) == 4 + 1 + proposal.others


def test_a_log_in_parts_and_one_in_progress_are_one_log_each(tmp_path):
    lines = load_log("1.2.0").splitlines(keepends=True)
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    for nth in range(4):
        part = lines[nth * len(lines) // 4 : (nth + 1) * len(lines) // 4]
        (folder / f"events_{nth + 1}_app-1").write_bytes(b"".join(part))
    with (folder / "events_4_app-1").open("ab") as newest:
        newest.write(lines[-1][:100])
    workload = read(tmp_path)

    assert (1, QUERIES, ()) == (workload.logs, workload.queries, workload.problems)


def test_one_file_may_be_named(logs):

    assert QUERIES == read(logs / "local-1").queries


@pytest.mark.parametrize("text", [b"", None])
def test_a_folder_without_logs_is_an_error(tmp_path, text):
    if text is not None:
        (tmp_path / "empty").write_bytes(text)
    with pytest.raises(StorageError, match=r"has no event log; name the folder of the applicati"):
        find_logs(str(tmp_path), open_storage)
    with pytest.raises(StorageError, match=r"nowhere: is not there; name the folder of event"):
        find_logs(str(tmp_path / "nowhere"), open_storage)


def test_files_that_are_no_logs_are_named_once(logs):
    (logs / "notes.txt").write_bytes(b"hello\n" * 100)
    (logs / "old.lzf").write_bytes(b"ZV\x00\x00\x00")
    (logs / "some.lz4").write_bytes(b"hello\n" * 100)
    (logs / "json").write_bytes(b'{"Event":1}\n[]\n')
    workload = read(logs)

    assert QUERIES == workload.queries
    assert workload.problems == (
        "json: is no event log of Spark",
        "notes.txt: is no event log of Spark",
        (
            "old.lzf: logs compressed with lzf are not read; set spark.eventLog.compression.codec "
            "to zstd or lz4"
        ),
        "some.lz4: has a damaged lz4 block; what comes before was read",
    )


def test_a_shortened_condition_never_becomes_a_predicate():
    whole = {describe(run) for found in read_runs(load_log("1.2.0").splitlines()) for run in found}
    chance = Random(1)
    lines = [line for line in load_log("1.2.0").splitlines() if b"DataFilters" in line]
    for line in chance.sample(lines, 40):
        event = json.loads(line)
        _shorten(event["sparkPlanInfo"], chance)
        end = {**event, "Event": event["Event"].replace("Start", "End")}
        text = [json.dumps(one, separators=(",", ":")).encode() for one in (event, end)]
        text[0] = text[0].replace(b"SQLAdaptiveExecutionUpdate", b"SQLExecutionStart")
        for found in read_runs(text):
            assert {describe(run) for run in found} <= whole | {UNKNOWN, NOTHING}


def _shorten(node, chance):
    for key in ("DataFilters", "PartitionFilters"):
        text = node["metadata"].get(key, "[]")
        if text != "[]":
            node["metadata"][key] = text[: chance.randrange(len(text))] + "..."
    if node["nodeName"] == "Filter":
        text = node["simpleString"]
        node["simpleString"] = text[: chance.randrange(len("Filter "), len(text))] + "..."
    for child in node["children"]:
        _shorten(child, chance)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_damage_makes_a_log_unreadable_or_its_queries_others(version, tmp_path):
    data, chance = load_log(version), Random(f"damage {version}")
    whole = read_counts(tmp_path, data)
    for _ in range(DAMAGES // len(VERSIONS) + 1):
        damaged = bytearray(data)
        kind = chance.choice(("cut", "flipped", "emptied"))
        at = chance.randrange(len(data))
        if kind == "cut":
            del damaged[at:]
        elif kind == "flipped":
            damaged[at] ^= 1 << chance.randrange(8)
        else:
            damaged[at : at + 5000] = bytes(len(damaged[at : at + 5000]))
        found = read_counts(tmp_path, bytes(damaged))
        assert len(found[1]) <= 1
        assert all("local-1" in problem for problem in found[1])
        assert found[0] <= whole[0] + 1


def read_counts(folder, data):
    (folder / "local-1").write_bytes(data)
    workload = read(folder)
    return workload.queries, workload.problems


def test_a_list_of_thousands_is_counted_but_not_proposed(tmp_path):
    line = next(
        line for line in load_log("1.2.0").splitlines() if b"[customer#" in line and b" IN " in line
    )
    values = b",".join(b"%d" % nth for nth in range(MAX_WHERE))
    (tmp_path / "local-1").write_bytes(line.replace(b" IN (1,2,3)", b" IN (%s)" % values) + b"\n")
    (table,) = read(tmp_path).tables

    assert (1, 1, ()) == (table.runs, table.unknown.runs, table.queries)
