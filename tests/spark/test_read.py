"""What a DataFrame of a table holds, without any Hudi: as real Hudi read the table itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import reconciler
from reconciler.cli import app
from reconciler.reader import spark as reader
from reconciler.reader.model import SLICES, ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.reader.spark_types import to_spark_schema
from reconciler.storage.open import open_storage
from tests.spark.frames import PYSPARK, arrow, by_text, in_order, plan, types
from tests.trees import unpack

TABLES = Path(__file__).parents[1] / "tables"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in TABLES.glob("*.expected.json"))
QUERIES = {"snapshot": "snapshot", "read_optimized": "readOptimized"}
pytestmark = PYSPARK


def table(name, folder):
    unpack(TABLES / f"{name}.zip", folder)
    return min(folder.rglob("hoodie.properties"), key=lambda path: len(path.parts)).parents[1]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "v8_mor_partial"])
def test_the_rows_are_those_that_hudi_read(name, spark, tmp_path):
    expected = json.loads((TABLES / f"{name}.expected.json").read_text())
    path = table(name, tmp_path)

    asked = {query: kind for query, kind in QUERIES.items() if expected.get(query)}
    for query, kind in asked.items():
        answer = expected[query]
        frame = reconciler.read(spark, path, columns=answer["cols"], kind=kind)
        assert by_text(answer["rows"]) == by_text([list(row) for row in frame.collect()])
    assert asked


@pytest.mark.parametrize("name", ["every_type_1.2.0", "every_type_0.15.0", "columns_added_1.2.0"])
def test_both_ways_give_the_same_values_and_types(name, sessions, tmp_path):
    session = sessions.with_conf(sql_session_timeZone="America/New_York")
    storage = open_storage(str(table(f"reading/{name}", tmp_path)))
    scan = open_scan(storage, ReadRequest())
    flag = SLICES.get_field_index("evolves")
    forced = scan.slices.set_column(flag, SLICES.field(flag), pa.array([True] * len(scan.slices)))
    ways = [scan, replace(scan, slices=forced)]
    direct, through_python = (reader.make_data_frame(session, way, storage.ref) for way in ways)
    reading = SliceRowReader.from_scan(scan)
    alone = [
        batch
        for row, partition in enumerate(scan.slices.column("partition").to_pylist())
        for batch in reading.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
    ]

    assert "MapInArrow" not in plan(direct)
    assert "FileScan" not in plan(through_python)
    assert to_spark_schema(scan.schema) == types(direct)
    assert types(direct) == types(through_python)
    expected = in_order(pa.Table.from_batches(alone))
    assert expected == in_order(arrow(direct, scan.schema))
    assert expected == in_order(arrow(through_python, scan.schema))


def test_time_travel_and_increments_give_what_the_slices_give(spark, tmp_path):
    path = table("v8_mor_part", tmp_path)
    storage = open_storage(str(path))
    newest = open_scan(storage, ReadRequest()).as_of
    requests = [
        {"as_of": newest},
        {"kind": "incremental", "begin": "20261121050547683"},
    ]
    for asked in requests:
        scan = open_scan(storage, ReadRequest(**asked))
        reading = SliceRowReader.from_scan(scan)
        expected = [
            batch
            for at, partition in enumerate(scan.slices.column("partition").to_pylist())
            for batch in reading.read(
                get_slice_files(scan, at), scan.get_partition_values(partition), storage
            )
        ]
        found = reconciler.read(spark, path, **asked)
        rows = arrow(found, scan.schema)
        assert in_order(pa.Table.from_batches(expected, scan.schema)) == in_order(rows)
        assert expected


# The command, on the same session.


def run(*arguments):
    return app.run([str(argument) for argument in arguments])


@pytest.mark.usefixtures("spark")
def test_the_command_writes_json_csv_and_text(tmp_path, capfd):
    path = table("v9_keygen", tmp_path)
    assert 0 == run("read", path, "--columns", "id,p,name", "--format", "json", "--where", "id > 1")
    lines = sorted(capfd.readouterr().out.splitlines())
    assert ['{"id":2,"p":"é=1","name":"n2"}', '{"id":3,"p":null,"name":null}'] == lines

    assert 0 == run("read", path, "--columns", "id,name", "--format", "csv")
    header, *rows = capfd.readouterr().out.splitlines()
    assert ("id,name", ["1,n1", "2,n2", "3,"]) == (header, sorted(rows))

    assert 0 == run("read", path, "--columns", "id", "--columns", "p", "--limit", "1")
    out, err = capfd.readouterr()
    assert ["id", "p"] == out.splitlines()[0].split()
    assert 3 == len(out.splitlines())
    assert "showing the first 1 row; use --limit N for more rows" in err


@pytest.mark.usefixtures("spark")
def test_the_command_explains_which_partitions_a_condition_leaves(tmp_path, capfd):
    path = table("v8_mor_part", tmp_path)
    assert 0 == run("read", path, "--explain", "--format", "json", "--where", "p = 'p1'")
    found = json.loads(capfd.readouterr().out)

    assert (1, 3) == (found["keptPartitions"], found["partitions"])
    assert (0, 1) == (found["directSlices"], found["pythonSlices"])
    assert ["logs"] == [group["reason"] for group in found["throughPython"]]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("damage", ["log", "base"])
def test_the_command_tells_of_damage_in_one_line(damage, tmp_path, capfd):
    path = table("v8_mor_part", tmp_path)
    pattern = ".*.log.*" if damage == "log" else "*.parquet"
    for file in [f for f in path.rglob(pattern) if ".hoodie" not in f.parts]:
        file.write_bytes(b"x" * file.stat().st_size)

    assert 1 == run("read", path, "--format", "json", "--columns", "id")
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert 1 == len(errors)
    assert ".log." in errors[0] if damage == "log" else ".parquet" in errors[0]
    assert "Traceback" not in errors[0]


@pytest.mark.usefixtures("spark")
def test_the_command_warns_of_a_log_file_that_lost_its_end_and_reads_the_rest(tmp_path, capfd):
    path = table("v9_mor_part", tmp_path)
    scan = open_scan(open_storage(str(path)), ReadRequest())
    logs = next(logs for logs in scan.slices.column("logs").to_pylist() if logs)
    (path / logs[-1]).write_bytes((path / logs[-1]).read_bytes()[:-1])

    assert 0 == run("read", path, "--format", "json", "--columns", "id")
    out, err = capfd.readouterr()
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert out
    assert 1 == len(warnings)
    assert f"warning: {logs[-1]}: has " in warnings[0]
