"""Reads that leave out files: the rows are those that Spark finds in all of them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.cli import app
from reconciler.reader import spark as reader
from reconciler.reader.model import SLICES, ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.skipping import SkipDecision
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.storage.open import open_storage
from tests.published_indexes import publish_index
from tests.spark.frames import PYSPARK, by_text
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

TABLES = Path(__file__).parents[1] / "tables"
TYPED = ["id", "s", "y", "f", "ls", "dec", "t", "d", "n", "st.a", "b", "u"]
PLAIN = ["id", "ts", "x", "name"]
TYPED_PREDICATES = [
    "id = 3",
    "id = 3.0 OR id IN (201, 500)",
    "id = '3'",
    "-1 < id AND id <= 1e0",
    "s LIKE 'abc%'",
    "s LIKE 'abca\uffff%'",
    "s NOT LIKE 'ab%'",
    "s <=> NULL",
    "y > 1.5",
    "y = double('NaN')",
    "y >= double('Infinity')",
    "y = -0.0",
    "y != 1",
    "f < 0.0",
    "ls > 'q'",
    "ls IS NOT NULL",
    "dec = 1.105",
    "dec BETWEEN 1 AND 1.5",
    "t < TIMESTAMP '2023-12-31 19:00:02'",
    "t >= '2024-01-01 01:00:00 UTC'",
    "d = '2024-01-05'",
    "d > TIMESTAMP '2024-01-04 00:00:00'",
    "n IS NULL",
    "n = 5 OR n = 99",
    "st.a BETWEEN 30 AND 33",
    "ST.A > 49 AND b",
    "NOT b AND id < 5",
    "u > '\uffff'",
    "u = '😀'",
    "concat(s, u) = 'aaz'",
    "id > 1000",
    "id = 3 AND rand() < 2",
]
PLAIN_PREDICATES = [
    "id = 3",
    "ts >= 9 AND name LIKE 'v%'",
    "(p = 'p0' AND id > 1000) OR (p = 'p2' AND id >= 200)",
    "p = 'p9'",
    "P != 'p1' AND x < 0.3",
]
pytestmark = PYSPARK


def table(name, folder, columns):
    unpack(TABLES / f"{name}.zip", folder)
    path = min(folder.rglob("hoodie.properties"), key=lambda found: len(found.parts)).parents[1]
    publish_index(path, columns)
    return path


@contextmanager
def settings(session, **values):
    """Some settings of a session while the block runs, dots written as two underscores."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    for name, value in names.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            session.conf.unset(name)


def ids_of(scan, storage):
    reading = SliceRowReader.from_scan(scan)
    return {
        found
        for row, partition in enumerate(scan.slices.column("partition").to_pylist())
        for batch in reading.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
        for found in batch.column("id").to_pylist()
    }


def lost(session, path, predicates):
    """By predicate the ids of rows that it is true for, to Spark, and that a read leaves out."""
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    whole = reader.make_data_frame(session, scan, storage.ref)
    rows = whole.selectExpr("id", *(f"({where})" for where in predicates)).collect()
    found, left_out = {}, 0
    for nth, where in enumerate(predicates, start=1):
        kept = reader.prune_by_condition(session, scan, where, storage).kept
        left_out += len(scan.slices) - len(kept.slices)
        found[where] = {row[0] for row in rows if row[nth]} - ids_of(kept, storage)
    return found, left_out


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_row_of_any_type_is_lost(ansi, sessions, tmp_path):
    session = sessions.with_conf(sql_session_timeZone="America/New_York")
    path = table("reading/every_type_1.2.0", tmp_path, TYPED)
    with settings(session, spark__sql__ansi__enabled=ansi):
        found, left_out = lost(session, path, TYPED_PREDICATES)

    assert {where: set() for where in TYPED_PREDICATES} == found
    assert left_out > 80


def test_no_row_of_slices_with_log_files_and_of_partitions_is_lost(spark, tmp_path):
    found, left_out = lost(spark, table("v8_mor_part", tmp_path, PLAIN), PLAIN_PREDICATES)

    assert {where: set() for where in PLAIN_PREDICATES} == found
    assert left_out > 5


@pytest.mark.parametrize(
    "asked", [{}, {"kind": "readOptimized"}, {"kind": "incremental", "begin": "20261121045646282"}]
)
def test_a_read_gives_the_same_rows_with_and_without_skipping(asked, spark, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    where = "id >= 302 AND ts < 12"
    frames = [
        reconciler.read(spark, path, where, columns=["id", "p"], skipping=skipping, **asked)
        for skipping in (True, False)
    ]
    few, every = ([list(row) for row in frame.collect()] for frame in frames)

    assert by_text(every) == by_text(few)
    assert len(every) > 1
    assert [2, 4] == [len(frame.inputFiles()) for frame in frames]


def test_the_index_is_read_where_there_is_a_condition_and_nowhere_else(spark, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    storage = RecordingStorage(open_storage(str(path)))
    scan = open_scan(storage, ReadRequest())
    before = len(storage.calls)
    reader.make_data_frame(spark, scan, storage.ref, index=storage)
    reader.make_data_frame(spark, scan, storage.ref, "id = 1")
    reader.make_data_frame(spark, scan, storage.ref, "p = 'p1'", index=storage)
    assert before == len(storage.calls)

    reader.make_data_frame(spark, scan, storage.ref, "id = 1", index=storage)
    assert ["list", "list", "read"] == [call.method for call in storage.calls[before:]]


# What a session makes of a condition.


def fates(found):
    every = tuple(SkipDecision)
    return [every[code].key for code in found.decisions.tolist()]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark__sql__legacy__typeCoercion__datetimeToString__enabled", "true"),
        ("spark__sql__parser__escapedStringLiterals", "true"),
        ("spark__sql__timestampType", "TIMESTAMP_NTZ"),
    ],
)
def test_a_session_that_reads_conditions_in_another_way_decides_alone(
    setting, value, spark, tmp_path
):
    storage = open_storage(str(table("v9_cow_part", tmp_path, PLAIN)))
    scan = open_scan(storage, ReadRequest())
    with settings(spark, **{setting: value}):
        found = reader.prune_by_condition(spark, scan, "id > 1000", storage)
    usual = reader.prune_by_condition(spark, scan, "id > 1000", storage)

    assert ["notUnderstood"] * 4 == fates(found)
    assert setting.replace("__", ".") in found.problems[0]
    assert ["index"] * 4 == fates(usual)


def test_variables_and_quoted_columns_are_what_spark_makes_of_them(spark, tmp_path):
    storage = open_storage(str(table("v9_cow_part", tmp_path, PLAIN)))
    scan = open_scan(storage, ReadRequest())
    variable = "name = '${some.name}'"
    with settings(spark, some__name="v400_11"):
        frame = reader.make_data_frame(spark, scan, storage.ref, variable, index=storage)
        assert [400] == [row["id"] for row in frame.select("id").collect()]
    double_quoted = 'name >= "name" AND id > 400'
    ansi = {"spark__sql__ansi__enabled": "true"}
    ansi["spark__sql__ansi__doubleQuotedIdentifiers"] = "true"
    with settings(spark, **ansi):
        frame = reader.make_data_frame(spark, scan, storage.ref, double_quoted, index=storage)
        assert [403] == [row["id"] for row in frame.select("id").collect()]


# Row groups.


def rows_scanned(frame):
    """The rows that Spark's parquet reader gave, once the frame's own were asked for."""
    jdf = frame._jdf
    jdf.queryExecution().executedPlan().executeCollect()
    scan = jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    return scan.metrics().apply("numOutputRows").value()


def test_row_groups_that_cannot_match_are_read_by_neither_way(spark, tmp_path):
    path = table("v9_cow_nopart", tmp_path, PLAIN)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    base = scan.slices.column("base")[0].as_py()
    rows = pq.read_table(path / base).slice(0, 0)
    made = pa.table({
        field.name: pa.array(
            [*range(30)] if field.name == "id" else [None] * 30, field.type
        ) for field in rows.schema
    })  # fmt: skip
    pq.write_table(made, path / base, row_group_size=10)
    (path / f".{base}.crc").unlink()
    slices = scan.slices.slice(0, 1)
    size = SLICES.get_field_index("base_size")
    there = pa.array([(path / base).stat().st_size], pa.int64())
    scan = replace(scan, slices=slices.set_column(size, SLICES.field(size), there))
    direct = reader.make_data_frame(spark, scan, storage.ref, "id = 12", index=storage)
    python = reader.prune_by_condition(spark, scan, "id = 12", storage).kept

    assert 10 == rows_scanned(direct)
    assert [12] == [row["id"] for row in direct.collect()]
    assert {*range(10, 20)} == ids_of(python, storage)


# The command.


def run(*arguments):
    return app.run([str(argument) for argument in arguments])


@pytest.mark.usefixtures("spark")
def test_the_command_explains_how_every_file_was_decided(tmp_path, capfd):
    path = table("v9_cow_part", tmp_path, PLAIN)
    where = "p > 'p0' AND id > 302"
    assert 0 == run("read", path, "--explain", "--format", "json", "--where", where)
    found = json.loads(capfd.readouterr().out)

    assert [("all", 4), ("partitions", 3), ("index", 2)] == [
        (stage["stage"], stage["baseFiles"]) for stage in found["stages"]
    ]
    assert [("partition", False, 1), ("index", False, 1), ("matches", True, 2)] == [
        (group["decision"], group["isRead"], len(group["files"])) for group in found["decided"]
    ]
    assert [2, 2, 2] == [found["rowGroups"][name] for name in ("files", "lookedAt", "keptGroups")]

    assert 0 == run("read", path, "--explain", "--where", where)
    text = capfd.readouterr().out
    assert "  skipped  1 slice (" in text
    assert "): by the index no row can match\n      p1/fd50d379" in text
    assert "      after the index: 2 base files (" in text
    assert "      row groups: 2 of 2 may match (" in text

    assert 0 == run("read", path, "--explain", "--no-skipping", "--where", where)
    assert "  read  3 slices (" in (text := capfd.readouterr().out)
    assert "skipping is switched off" in text


@pytest.mark.usefixtures("spark")
def test_the_command_reads_the_same_rows_with_and_without_skipping(tmp_path, capfd):
    path = table("v9_cow_part", tmp_path, PLAIN)
    answers = []
    for more in ([], ["--no-skipping"]):
        options = ["--columns", "id", "--format", "json", *more]
        assert 0 == run("read", path, "--where", "id > 302", *options)
        answers.append(sorted(capfd.readouterr().out.splitlines()))

    assert ['{"id":305}', '{"id":400}', '{"id":403}'] == answers[0] == answers[1]
