"""``reconciler write``: files of every format into a table, by hand."""

from __future__ import annotations

import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from tests.command import run
from tests.record_indexes import add_record_index, find_places, read_indexed_places
from tests.selection import long
from tests.spark.frames import PYSPARK

pytestmark = PYSPARK
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: sales.orders}
spec:
  path: orders
  concurrency: {lock: {provider: filesystem}}
  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}
"""
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [{"name": n, "type": ["null", t]} for n, t in
               {"id": "long", "p": "string", "ts": "long", "x": "string"}.items()],
}  # fmt: skip


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path / "spec.yaml"


def rows_of(spark, folder, *columns):
    found = reconciler.read(spark, str(folder / "orders")).select(*columns).collect()
    return sorted((tuple(row) for row in found), key=str)


def test_names_of_folders_are_columns_below_the_source_and_not_above_it(
    spark, spec, tmp_path, monkeypatch
):
    (tmp_path / "p=z/in/p=a").mkdir(parents=True)
    (tmp_path / "p=z/in/p=a/one.csv").write_text("id,ts,x\n1,1,one\n")
    (tmp_path / "p=z/two.csv").write_text("id,p,ts,x\n2,b,1,two\n")
    monkeypatch.chdir(tmp_path / "p=z")

    assert run("write", spec, "in") == 0
    assert run("write", spec, "two.csv") == 0
    assert [(1, "a", "one"), (2, "b", "two")] == rows_of(spark, tmp_path, "id", "p", "x")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_of_every_format_go_into_one_table(spark, spec, tmp_path, capsys, kind):
    spec.write_text(SPEC.replace("COPY_ON_WRITE", kind))
    columns = {"id": [1, 2], "p": ["a", "b"], "ts": [1, 1], "x": ["one", "two"]}
    pq.write_table(pa.table(columns), tmp_path / "first.parquet")
    (tmp_path / "second.csv").write_text("x;ts;p;id\nTWO;2;b;2\nthree;1;b;3\n")
    lines = [{"id": 4, "p": "c", "ts": 1, "x": "four"}, {"id": 1, "p": "a", "ts": 0, "x": "old"}]
    (tmp_path / "third.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with (tmp_path / "fourth.avro").open("wb") as file:
        fastavro.writer(file, AVRO, [{"id": 5, "p": "c", "ts": 1, "x": None}])

    assert run("write", spec, tmp_path / "first.parquet") == 0
    said = capsys.readouterr().out
    assert "sales.orders: upsert completed as " in said
    assert "rows   2 new" in said
    assert run("write", spec, tmp_path / "second.csv", "--source-option", "sep=;") == 0
    assert "1 new, 1 changed" in capsys.readouterr().out
    assert run("write", spec, tmp_path / "third.jsonl", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (1, 2) == (told["rows"]["inserted"], told["rows"]["brought"])
    assert run("write", spec, tmp_path / "fourth.avro", "--operation", "insert") == 0
    (tmp_path / "gone.csv").write_text("id,p\n3,b\n9,b\n")
    assert run("write", spec, tmp_path / "gone.csv", "--operation", "delete") == 0
    assert "1 deleted, 1 to delete not found" in capsys.readouterr().out

    expected = [(1, "a", "one"), (2, "b", "TWO"), (4, "c", "four"), (5, "c", None)]
    assert expected == rows_of(spark, tmp_path, "id", "p", "x")

    assert run("write", spec, "--operation", "delete-partition", "--partition", "p=c") == 0
    assert expected[:2] == rows_of(spark, tmp_path, "id", "p", "x")


def test_text_that_is_none_of_its_columns_type_writes_nothing(spark, spec, tmp_path, capsys):
    (tmp_path / "good.csv").write_text("id,p,ts,x\n1,a,1,one\n")
    (tmp_path / "bad.csv").write_text("id,p,ts,x\n2,a,1,two\nthree,a,1,three\n")
    assert run("write", spec, tmp_path / "good.csv") == 0

    assert run("write", spec, tmp_path / "bad.csv") == 1
    # Spark 4 names the file itself
    assert capsys.readouterr().err.splitlines()[-1].replace("file://", "") == (
        f'error: {tmp_path}/bad.csv: a line cannot be read: For input string: "three"; its '
        "readable part is [null,a,1,three]"
    )
    assert [(1, "one")] == rows_of(spark, tmp_path, "id", "x")


def test_rows_that_do_not_fit_are_shown_column_by_column(spec, tmp_path, capsys):
    (tmp_path / "good.csv").write_text("id,p,ts,x\n1,a,1,one\n")
    (tmp_path / "less.csv").write_text("id,p,ts\n2,a,1\n")
    assert run("write", spec, tmp_path / "good.csv") == 0

    assert run("write", spec, tmp_path / "less.csv") == 1
    said = capsys.readouterr().err.splitlines()
    assert "error: the rows do not fit the schema of table orders:" in said
    assert any(line.startswith("  x: missing required column (string)") for line in said)
    assert run("write", spec, tmp_path / "less.csv", "--fill-missing") == 0


def test_a_key_moves_to_the_partition_that_it_comes_with_where_an_index_knows_all_keys(
    spark, spec, tmp_path, capsys
):
    columns = {"id": [*range(40)], "p": ["a", "b"] * 20, "ts": [1] * 40, "x": ["one"] * 40}
    pq.write_table(pa.table(columns), tmp_path / "first.parquet")
    assert run("write", spec, tmp_path / "first.parquet") == 0
    add_record_index(tmp_path / "orders", groups=3)
    lines = [{"id": n, "p": "c", "ts": 2, "x": "two"} for n in range(0, 40, 4)]
    lines += [{"id": n, "p": "c", "ts": 0, "x": "old"} for n in range(1, 40, 4)]
    lines += [{"id": n, "p": "b", "ts": 2, "x": "two"} for n in range(39, 50, 2)]
    (tmp_path / "second.jsonl").write_text("\n".join(map(json.dumps, lines)))
    capsys.readouterr()

    assert run("write", spec, tmp_path / "second.jsonl", "--format", "json") == 0
    counts = json.loads(capsys.readouterr().out)["rows"]
    assert (15, 1, 10) == (counts["inserted"], counts["updated"], counts["deleted"])
    model = {n: ("ab"[n % 2], "one") for n in range(40)} | {
        line["id"]: (line["p"], line["x"]) for line in lines if line["ts"] == 2
    }
    wanted = sorted(((n, *values) for n, values in model.items()), key=str)
    assert rows_of(spark, tmp_path, "id", "p", "x") == wanted
    assert find_places(tmp_path / "orders") == read_indexed_places(
        tmp_path / "orders", [str(number) for number in range(60)]
    )


def test_what_is_wrong_with_a_row_is_said_without_the_task_that_found_it(spec, tmp_path, capsys):
    (tmp_path / "late.csv").write_text("id,p,ts,x\n1,a,,one\n")
    (tmp_path / "first.csv").write_text("id,p,ts,x\n1,a,1,one\n")
    assert run("write", spec, tmp_path / "first.csv") == 0

    assert run("write", spec, tmp_path / "late.csv") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ordering column ts: null in")


def test_a_new_field_inside_of_a_column_of_json_is_taken_as_a_new_column_is(spark, spec, tmp_path):
    first = {"id": 1, "p": "a", "ts": 1, "o": {"k": 1, "in": [{"u": "x"}]}}
    second = {"id": 2, "p": "a", "ts": 1, "o": {"k": 2, "new": 5, "in": [{"u": "y", "v": True}]}}
    (tmp_path / "first.jsonl").write_text(json.dumps(first))
    (tmp_path / "second.jsonl").write_text(json.dumps(second))
    assert run("write", spec, tmp_path / "first.jsonl") == 0
    assert run("write", spec, tmp_path / "second.jsonl") == 0

    found = rows_of(spark, tmp_path, "id", "o.k", "o.new", "o.in.v")
    assert [(1, 1, None, [None]), (2, 2, 5, [True])] == found


RETAINED = SPEC.replace("  table:", "  retention: {fileVersions: 1}\n  table:")
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: careful}
spec: {maxFilesRemoved: 0}
"""


def write_twice(spec, tmp_path, *options):
    for ts in (1, 2):
        rows = pa.table({"id": [1], "p": ["a"], "ts": [ts], "x": [str(ts)]})
        pq.write_table(rows, tmp_path / f"{ts}.parquet")
    assert run("write", spec, tmp_path / "1.parquet") == 0
    return run("write", spec, tmp_path / "2.parquet", "--then", "reconcile", *options)


def test_a_write_then_reconciles_its_table(spark, spec, tmp_path, capsys):
    spec.write_text(RETAINED)

    assert write_twice(spec, tmp_path) == 0
    said = capsys.readouterr().out
    assert "then reconciled:" in said
    assert "removed 1 file" in said
    assert 1 == len(list(tmp_path.glob("orders/*a/*.parquet")))
    assert [(1, "2")] == rows_of(spark, tmp_path, "id", "x")
    [table] = reconciler.load_specs(spec)
    frame = spark.createDataFrame([(1, "a", 3, "3")], "id long, p string, ts long, x string")
    done = reconciler.write(frame, table, reconcile=True)
    assert 1 == done.reconciliation.result.tables[0].removed
    assert ("completed", 0) == (done.status, done.exit_code)


def test_a_refusal_after_a_write_leaves_the_write_and_ends_with_5(spark, spec, tmp_path, capsys):
    spec.write_text(RETAINED)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "careful.yaml").write_text(POLICY)

    assert write_twice(spec, tmp_path, "--format", "json") == 5
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert ("completed", 3) == (said["how"], said["reconciliation"]["exitCode"])
    assert "maxFilesRemoved" in str(said["reconciliation"]["result"]["tables"][0]["refusals"])
    assert 2 == len(list(tmp_path.glob("orders/*a/*.parquet")))
    assert [(1, "2")] == rows_of(spark, tmp_path, "id", "x")


@pytest.mark.parametrize("kind", [long("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_a_stream_that_dies_after_a_batch_and_goes_on_writes_every_batch_once(
    spark, spec, tmp_path, kind
):
    """The batch is in the table, and the checkpoint of the query does not know it."""
    spec.write_text(SPEC.replace("COPY_ON_WRITE", kind))
    (declared,) = reconciler.load_specs(spec)
    schema = "id long, p string, ts long, x string"
    source, done = tmp_path / "source", []
    spark.createDataFrame([(1, "a", 1, "one"), (2, "a", 1, "two")], schema).coalesce(1).write.json(
        str(source)
    )

    def into_table(frame, number):
        outcome = reconciler.write(frame, declared, "insert", batch=("orders", number))
        done.append((number, outcome.status))
        if len(done) == 2:
            raise OSError("the driver dies")

    def run_stream():
        frames = spark.readStream.schema(schema).json(str(source))
        writer = frames.writeStream.foreachBatch(into_table).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()

    run_stream()
    more = spark.createDataFrame([(1, "a", 2, "ONE"), (3, "b", 1, "three")], schema)
    more.coalesce(1).write.mode("append").json(str(source))
    with pytest.raises(Exception, match="the driver dies"):
        run_stream()
    run_stream()

    assert [(0, "completed"), (1, "completed"), (1, "nothing")] == done
    expected = [(1, "a", "ONE"), (1, "a", "one"), (2, "a", "two"), (3, "b", "three")]
    assert expected == rows_of(spark, tmp_path, "id", "p", "x")


@pytest.mark.parametrize("kind", [long("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_rows_go_to_the_file_groups_of_their_buckets(spark, spec, tmp_path, kind):
    by_buckets = "ordering: [ts], index: {type: bucket, buckets: 3}}"
    spec.write_text(SPEC.replace("COPY_ON_WRITE", kind).replace("ordering: [ts]}", by_buckets))
    (table,) = reconciler.load_specs(spec)
    frame = spark.range(60).selectExpr("id", "'a' as p", "1L as ts", "cast(id as string) as x")
    reconciler.write(frame, table, "bulk-insert")
    changed = frame.where("id < 30").selectExpr("id + 15 as id", "p", "2L as ts", "'new' as x")
    for number in (1, 2, 2):  # the batch that a restarted stream brings again
        reconciler.write(changed, table, "upsert", batch=("rows", number))
    reconciler.write(frame.where("id >= 50").select("id", "p"), table, "delete")

    found = [(key, "new" if 15 <= key < 45 else str(key)) for key in range(50)]
    assert sorted(found, key=str) == rows_of(spark, tmp_path, "id", "x")
    names = [path.name for path in (tmp_path / "orders/p=a").glob("*.parquet")]
    assert {f"0000000{number}" for number in range(3)} == {name[:8] for name in names}
    assert 3 == len({name.partition("_")[0] for name in names})
