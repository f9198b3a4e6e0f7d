"""``reconciler write`` without Spark: what is refused before it starts, and small sources."""

from __future__ import annotations

import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.cli import executor_choice, run_write
from reconciler.cli.executor_choice import Work, choose_by_size
from tests.command import run
from tests.rewrite_jobs import TABLES
from tests.trees import Tree, unpack

HEAD = "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t}\nspec:\n"
LOCK = "  concurrency: {lock: {provider: none}}\n"
NEW = "  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id]"
NO_SCHEMA = ", schema: {type: record, name: r, fields: []}}\n"

CASES = {
    "no lock": ("v9_tz_utc", "", ["a.csv"], 3, "concurrency.lock is missing"),
    "no zone": ("v9_cow_part", LOCK, ["a.csv"], 3, "spec.timezone has to name it"),
    "another zone": (
        "v9_cow_part", LOCK + "  timezone: Asia/Tokyo\n", ["a.csv"], 3,
        "the writers are at UTC by the times of the timeline's files, but timezone: Asia/Tokyo is",
    ),
    "another zone and no rows": (
        "v9_cow_part", LOCK + "  timezone: Asia/Tokyo\n",
        ["--operation", "delete-partition", "--partition", "a"], 3, "declare timezone: UTC",
    ),
    "other keys": (
        "v9_tz_utc", LOCK + NEW.replace("[id]", "[name]") + "}\n", ["a.csv"], 1,
        "spec.table.recordKey is name",
    ),
    "another type": (
        "v9_tz_utc", LOCK + NEW.replace("COPY_ON_WRITE", "MERGE_ON_READ") + "}\n", ["a.csv"], 1,
        "spec.table.type is MERGE_ON_READ, and the table at",
    ),
    "change data of log files": (
        "v9_cdc_mor", LOCK + "  timezone: UTC\n", ["a.csv"], 1, "keeps change data",
    ),
    "change data": ("v9_cdc_cow", LOCK + "  timezone: UTC\n", ["a.csv"], 1, "keeps change data"),
    "no table": ("none", LOCK, ["a.csv"], 1, "and the spec has no table block to create one"),
    "no columns": ("none", LOCK + NEW + NO_SCHEMA, ["a.csv"], 1, "is no Avro schema of a table"),
    "nothing to delete from": (
        "none", LOCK + NEW + "}\n", ["a.csv", "--operation", "delete"], 1, "to delete from",
    ),
    "no source": ("v9_tz_utc", LOCK, ["gone.csv"], 1, "gone.csv"),
    "unknown format": ("v9_tz_utc", LOCK, ["a.what"], 64, "--source-format"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_needs_no_rows_is_refused_before_spark_starts(name, tmp_path, monkeypatch, capsys):
    table, spec, arguments, code, message = CASES[name]
    monkeypatch.setattr(run_write, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))
    if table != "none":
        unpack(TABLES / f"{table}.zip", tmp_path)
    (tmp_path / "t.yaml").write_text(f"{HEAD}  path: {table}\n{spec}")
    for source in ("a.csv", "a.what"):
        (tmp_path / source).write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    before = Tree.from_folder(tmp_path)

    assert code == run("write", "t.yaml", *arguments)
    assert message in capsys.readouterr().err
    assert before == Tree.from_folder(tmp_path)


NEW_SPEC = (
    HEAD
    + """\
  path: orders
  concurrency: {lock: {provider: filesystem}}
  table: {type: KIND, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}
"""
)
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [{"name": n, "type": ["null", t]} for n, t in
               {"id": "long", "p": "string", "ts": "long", "x": "string"}.items()],
}  # fmt: skip


@pytest.fixture
def orders(tmp_path, monkeypatch):
    """A folder with a spec, in which no Spark can start."""
    monkeypatch.setattr(run_write, "open_spark_session", lambda *_, **__: pytest.fail("Spark"))
    monkeypatch.setattr(executor_choice, "is_spark_running", lambda: False)
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_rows(capsys):
    assert 0 == run("read", "orders", "--columns", "id,p,x", "--format", "json")
    return sorted(tuple(json.loads(line).values()) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_small_sources_are_written_without_java(kind, orders, capsys, monkeypatch):
    monkeypatch.setattr("reconciler.writer.sources.local._PART_BYTES", 1)  # a row group each
    (orders / "t.yaml").write_text(NEW_SPEC.replace("KIND", kind))
    columns = {"id": [1, 2, 3], "p": ["a", "b", "b"], "ts": [1, 1, 1], "x": ["one", "two", None]}
    pq.write_table(pa.table(columns), orders / "first.parquet", row_group_size=1)
    with (orders / "second.avro").open("wb") as file:
        fastavro.writer(file, AVRO, [{"id": 2, "p": "b", "ts": 2, "x": "TWO"}])
    pq.write_table(pa.table({"id": [1, 9], "p": ["a", "a"]}), orders / "gone.parquet")

    assert 0 == run("write", "t.yaml", "first.parquet")
    said = capsys.readouterr()
    assert "rows   3 new" in said.out
    assert "in this process: " in said.err
    assert "of 1 source file, below 256.0 MiB; --executor spark to use Spark\n" in said.err
    assert 0 == run("write", "t.yaml", "second.avro", "--executor", "local")
    assert "1 changed" in capsys.readouterr().out
    assert [(1, "a", "one"), (2, "b", "TWO"), (3, "b", None)] == read_rows(capsys)
    assert 0 == run("write", "t.yaml", "gone.parquet", "--operation", "delete")
    assert "1 deleted" in capsys.readouterr().out
    assert [(2, "b", "TWO"), (3, "b", None)] == read_rows(capsys)


def test_a_configured_spark_reads_parquet_in_its_own_way(orders, capsys, monkeypatch):
    (orders / "t.yaml").write_text(NEW_SPEC.replace("KIND", "COPY_ON_WRITE"))
    pq.write_table(pa.table({"id": [1], "p": ["a"], "ts": [1]}), orders / "rows.parquet")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.ansi.enabled=true pyspark-shell")
    with pytest.raises(pytest.fail.Exception):
        run("write", "t.yaml", "rows.parquet")
    assert "on Spark: PYSPARK_SUBMIT_ARGS configures Spark\n" in capsys.readouterr().err


def test_a_change_of_a_large_table_goes_to_spark(orders, capsys, monkeypatch):
    (orders / "t.yaml").write_text(NEW_SPEC.replace("KIND", "COPY_ON_WRITE"))
    columns = {"id": [1, 2], "p": ["a", "b"], "ts": [1, 1], "x": ["one", "two"]}
    pq.write_table(pa.table(columns), orders / "rows.parquet")
    assert 0 == run("write", "t.yaml", "rows.parquet")
    capsys.readouterr()
    monkeypatch.setattr(executor_choice, "MOST_BYTES_HERE", 400_000)
    monkeypatch.setenv("SPARK_CONF_DIR", "conf")  # may name a cluster

    with pytest.raises(pytest.fail.Exception):
        run("write", "t.yaml", "rows.parquet")
    said = capsys.readouterr().err
    assert "on Spark: " in said
    assert (
        "of 1 source file and of files they may change, above 390.6 KiB; --executor local" in said
    )
    assert 0 == run("write", "t.yaml", "rows.parquet", "--operation", "insert")


def test_without_a_cluster_a_change_of_a_large_table_stays_here(orders, capsys, monkeypatch):
    (orders / "t.yaml").write_text(NEW_SPEC.replace("KIND", "COPY_ON_WRITE"))
    columns = {"id": [1, 2], "p": ["a", "b"], "ts": [1, 1], "x": ["one", "two"]}
    pq.write_table(pa.table(columns), orders / "rows.parquet")
    assert 0 == run("write", "t.yaml", "rows.parquet")
    capsys.readouterr()
    monkeypatch.setattr(executor_choice, "MOST_BYTES_HERE", 400_000)
    monkeypatch.setattr("reconciler.runtime.count_cores", lambda: 2)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)

    assert 0 == run("write", "t.yaml", "rows.parquet", "--then", "reconcile")
    said = capsys.readouterr().err
    assert said.index("looked up keys") < said.index("planning the table")
    assert "; no cluster is configured, and Spark would have the same cores; --exec" in said
    assert "looked up keys in the files, because the table has no record index of all keys" in said
    assert "files: 2 searched\n" in said


@pytest.mark.parametrize(
    ("cores", "fits_threads", "is_local"),
    [(2, True, True), (8, True, True), (9, True, False), (None, True, False), (2, False, False)],
)
def test_large_work_stays_where_spark_has_no_other_cores(cores, fits_threads, is_local):
    work = Work.from_bytes(1 << 40, "to write", fits_threads=fits_threads)

    assert is_local == choose_by_size(work, cores).is_local


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda at: (at / "x.csv").write_text("id\n1\n"), "the sources are csv"),
        (
            lambda at: pq.write_table(
                pa.table({"id": pa.array([1], pa.uint64())}), at / "x.parquet"
            ),
            "only it has a type for the source column id (uint64)",
        ),
        (
            lambda at: pq.write_table(pa.table({"id": [1], "ID": [1]}), at / "x.parquet"),
            "x.parquet has names that differ in their case only",
        ),
    ],
)
def test_sources_that_only_spark_reads_are_said(make, reason, orders, capsys):
    (orders / "t.yaml").write_text(NEW_SPEC.replace("KIND", "COPY_ON_WRITE"))
    (orders / "new").mkdir()
    make(orders / "new")
    with pytest.raises(pytest.fail.Exception):
        run("write", "t.yaml", "new")
    assert f"on Spark: {reason}\n" in capsys.readouterr().err.replace(f"{orders}/new/", "")
    assert 64 == run("write", "t.yaml", "new", "--executor", "local")
    assert "executor local: only Spark can do this: " in capsys.readouterr().err
