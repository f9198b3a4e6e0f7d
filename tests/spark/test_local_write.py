"""Sources that are written without Spark have the columns and rows that Spark's readers give."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.cli import app
from reconciler.writer.sources.files import find_source_files
from reconciler.writer.sources.local import NeedsSparkError, open_local_source
from reconciler.writer.sources.spark import read_source_files
from reconciler.writer.spark import make_arrow_schema
from tests.spark.frames import PYSPARK, arrow, in_order

pytestmark = PYSPARK
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: t}
spec:
  path: PLACE
  concurrency: {lock: {provider: filesystem}}
  table: {type: COPY_ON_WRITE, version: 9, recordKey: [id], partitionBy: [p], ordering: [ts]}
"""
MOMENT = dt.datetime(2026, 7, 1, 12, 0, 0, 123456, dt.UTC)
COLUMNS = {
    "id": pa.array([1, 2, None]),
    "byte": pa.array([1, None, -1], pa.int8()),
    "wide": pa.array(["a", None, ""], pa.large_string()),
    "data": pa.array([b"a", None, b""], pa.large_binary()),
    "price": pa.array([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "day": pa.array([dt.date(2026, 1, 1), None, dt.date(1900, 1, 1)]),
    "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "Europe/Berlin")),
    "coarse": pa.array([MOMENT.replace(microsecond=0)] * 3, pa.timestamp("ms", "UTC")),
    "local": pa.array([MOMENT.replace(tzinfo=None)] * 3, pa.timestamp("us")),
    "real": pa.array([1.5, None, float("nan")], pa.float32()),
    "parts": pa.array([{"x": 1, "y": ["a", None]}, None, {"x": None, "y": []}]),
    "tags": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    "truth": pa.array([True, None, False]),
}


@pytest.mark.parametrize("has_arrow_schema", [True, False])
def test_columns_and_rows_are_those_of_spark(has_arrow_schema, spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path, store_schema=has_arrow_schema)
    source = find_source_files([str(path)], None, {})
    frame = read_source_files(spark, source, None)
    here = open_local_source(source)
    rows = pa.Table.from_batches([batch for part in here.parts for batch in part])

    assert make_arrow_schema(frame) == here.schema
    assert rows.schema == here.schema
    assert in_order(arrow(frame, here.schema)) == in_order(rows)
    assert (3, True) == (here.rows, here.bytes > 0)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1], pa.uint32()), r"a type for the source column x \(uint32\)"),
        (pa.array([1], pa.timestamp("ns")), r"a type for the source column x \(timestamp"),
        (pa.array([dt.date(1500, 1, 1)]), "dates before 1582"),
        (
            pa.array([dt.datetime(1800, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "before 1900",
        ),
    ],
)
def test_what_spark_reads_in_its_own_way_is_left_to_it(column, why, tmp_path):
    pq.write_table(pa.table({"id": [1], "x": column}), tmp_path / "x.parquet")
    with pytest.raises(NeedsSparkError, match=why):
        open_local_source(find_source_files([str(tmp_path / "x.parquet")], None, {}))


def test_both_ways_write_the_same_table(spark, tmp_path, capfd):
    first = {"id": list(range(500)), "p": [f"p{i % 3}" for i in range(500)], "ts": [1] * 500}
    first["x"] = [f"x{i}" if i % 5 else None for i in range(500)]
    changed = {name: values[::7] for name, values in first.items()} | {
        "ts": [2] * 72,
        "x": ["n"] * 72,
    }
    pq.write_table(pa.table(first), tmp_path / "first.parquet")
    pq.write_table(pa.table(changed), tmp_path / "changed.parquet")
    pq.write_table(pa.table({n: first[n][::11] for n in ("id", "p")}), tmp_path / "gone.parquet")
    found = []
    for executor in ("spark", "local"):
        place = tmp_path / executor
        (tmp_path / f"{executor}.yaml").write_text(SPEC.replace("PLACE", str(place)))
        for name, operation in (("first", "insert"), ("changed", "upsert"), ("gone", "delete")):
            command = ("write", tmp_path / f"{executor}.yaml", tmp_path / f"{name}.parquet")
            more = ("--operation", operation, "--executor", executor, "--format", "json")
            assert app.run([str(word) for word in (*command, *more)]) == 0, capfd.readouterr().err
        rows = reconciler.read(spark, place).select("id", "p", "ts", "x", "_hoodie_partition_path")
        found.append(sorted(map(tuple, rows.collect())))

    assert len(found[0]) == 500 - 46
    assert found[0] == found[1]
