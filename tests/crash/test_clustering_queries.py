"""What the declared queries read is measured as a clustering completes, and kept in its instant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.errors import StorageError
from reconciler.executor.cluster import query_measurement
from reconciler.hudi.load import load_properties
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.state.measured_queries import PREDICTED_KEY, QUERIES_KEY, parse_measurements
from reconciler.state.write_history import read_write_history
from tests.crash.clustering_drill import list_leftovers, make_clustering_drill
from tests.crash.drill import Killed

TABLES = Path(__file__).parents[1] / "tables"
QUERIED = """\
  queries:
    - {name: a partition, where: "p = 'p0'"}
    - {name: one, where: "id = 12"}
    - {name: nobody, where: "id = -5 and p = 'p1'"}
    - {name: not understood, where: "hash(name) > 2"}
"""


def read(it):
    """The past clusterings of a table."""
    return read_write_history(
        it.storage, load_properties(it.storage), it.state().timeline
    ).clusterings


def measured_by_hand(it):
    """By base file: partition, the least and the greatest id, whether it has logs, its size."""
    scan = open_scan(it.storage, ReadRequest())
    found = {}
    for row in scan.slices.to_pylist():
        ids = pq.read_table(it.table / row["base"], columns=["id"])["id"].to_pylist()
        path = scan.partitions[0][row["partition"]].as_py()
        found[row["base"]] = (path, min(ids), max(ids), bool(row["logs"]), row["base_size"])
    return found


def test_queries_are_measured_beside_what_was_predicted(tmp_path):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=QUERIED)
    plan = it.plan()
    (table,) = plan.tables
    said = {"query": "one", "filesBefore": 9, "filesAfter": 2, "bytesBefore": 9, "bytesAfter": 8}
    plan = replace(plan, tables=(replace(table, predictions=({**said, "error": 0.1},)),))
    (outcome,) = it.apply(plan).tables[0].outcomes
    files = measured_by_hand(it)
    ones = [one for one in files.values() if one[1] <= 12 <= one[2]]

    assert [
        ("a partition", sum(one[0] == "p0" for one in files.values()), len(files), None),
        ("one", len(ones), len(files), 2),
        ("nobody", 0, len(files), None),
        ("not understood", len(files), len(files), None),
    ] == [
        (one.query, one.files, one.of_files, one.predicted_files)
        for one in outcome.rewritten.queries
    ]
    assert sum(one[4] for one in ones) == outcome.rewritten.queries[1].bytes
    assert outcome.rewritten.queries == parse_measurements(read(it)[-1].extra)


def test_slices_with_log_files_are_read_as_a_reader_reads_them(tmp_path):
    it = make_clustering_drill(TABLES / "v8_mor_part.zip", tmp_path / "t", more=QUERIED)
    (outcome,) = it.apply(it.plan()).tables[0].outcomes
    files = measured_by_hand(it)
    _, one_id, nobody, _ = outcome.rewritten.queries
    merged = [one[0] for one in files.values() if one[3]]

    assert merged
    assert nobody.of_files == len(files)
    # nothing but the path of their partition excludes slices with log files of this table
    assert nobody.files == sum(path == "p=p1" for path in merged)
    assert one_id.files >= len(merged)


def test_without_queries_nothing_is_read_and_nothing_said(tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t")
    monkeypatch.setattr(query_measurement, "find_reached_files", None)
    (outcome,) = it.apply(it.plan()).tables[0].outcomes

    assert ("completed", (), None) == (
        outcome.how,
        outcome.rewritten.queries,
        outcome.rewritten.unmeasured,
    )
    assert QUERIES_KEY not in read(it)[-1].extra


def test_where_too_many_files_stay_only_new_ones_are_measured(tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=QUERIED)
    monkeypatch.setattr(query_measurement, "MAX_FOOTERS", 0)
    (outcome,) = it.apply(it.plan()).tables[0].outcomes
    understood = outcome.rewritten.queries[3]

    assert outcome.rewritten.files_after == understood.of_files == understood.files
    assert understood.unread > 0


@pytest.mark.parametrize("problem", [StorageError("p0/f", "is busy"), ValueError("what?")])
def test_what_goes_wrong_in_measuring_stops_no_clustering(problem, tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=QUERIED)
    rows = it.rows()

    def fail(*_, **__):
        raise problem

    monkeypatch.setattr(query_measurement, "find_reached_files", fail)
    (outcome,) = it.apply(it.plan()).tables[0].outcomes

    assert "completed" == outcome.how
    assert outcome.rewritten.unmeasured == f"what the queries read could not be measured: {problem}"
    assert rows == it.rows()
    assert QUERIES_KEY not in read(it)[-1].extra


def test_who_dies_while_it_measures_is_finished_and_measured_by_the_next(tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=QUERIED)
    rows, plan = it.rows(), it.plan()

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(query_measurement, "find_reached_files", die)
        with pytest.raises(Killed):
            it.apply(plan)
    assert [] != list_leftovers(it.table)
    it.apply(plan)

    assert rows == it.rows()
    assert [] == list_leftovers(it.table)
    assert ["a partition", "one", "nobody", "not understood"] == [
        one.query for one in parse_measurements(read(it)[-1].extra)
    ]


def test_what_is_finished_by_another_plan_is_held_against_what_it_was_begun_for(
    tmp_path, monkeypatch
):
    it = make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=QUERIED)
    plan = it.plan()
    (table,) = plan.tables

    def predicting(files):
        said = {"query": "one", "filesBefore": 9, "bytesBefore": 9, "bytesAfter": 8, "error": 0.1}
        found = replace(table, predictions=({**said, "filesAfter": files},))
        return replace(plan, tables=(found,))

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(query_measurement, "find_reached_files", die)
        with pytest.raises(Killed):
            it.apply(predicting(2))
    (began,) = [one for one in it.state().pending_clusterings if one.is_ours]
    it.apply(predicting(7))
    extra = read(it)[-1].extra

    assert PREDICTED_KEY in began.extra
    assert PREDICTED_KEY not in extra
    assert {"one": 2} == {
        one.query: one.predicted_files
        for one in parse_measurements(extra)
        if one.predicted_files is not None
    }
