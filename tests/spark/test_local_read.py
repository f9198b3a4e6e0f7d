"""What ``reconciler read`` prints without Spark is what it prints with Spark, byte for byte."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.cli import app
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.instant import WRITES
from reconciler.reader.local import plan_local_read, read_rows
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.spark import make_data_frame
from reconciler.reader.sql_text import make_json_expression, make_text_expressions
from reconciler.render.row_text import make_cells, make_json_lines
from reconciler.storage.open import open_storage
from tests.selection import long, rounds
from tests.spark.frames import PYSPARK
from tests.spark.test_random_conditions import SEED, TABLES, Conditions, rows_of, values_of
from tests.trees import unpack

NAMES = ("v9_mor_part", "v9_keygen", "reading/every_type_1.2.0")
OTHERS = ("v6_cow_part", "v8_mor_part", "reading/every_type_0.15.0", "v6_lazy_mor_tls",
          "v8_lazy_cow_tls", "v8_mor_nopart")  # fmt: skip
ASKED = rounds("LOCAL_READS", few=10, many=60)
pytestmark = PYSPARK


def list_writes(path):
    """Return the completed writes of a table, oldest first."""
    storage = open_storage(str(path))
    timeline = load_timeline(storage, load_properties(storage))
    return [one.requested for one in timeline.completed(WRITES)]


def table(name, folder):
    unpack(TABLES / f"{name}.zip", folder)
    return min(folder.rglob("hoodie.properties"), key=lambda path: len(path.parts)).parents[1]


@pytest.fixture
def printed(capfd, monkeypatch, spark):
    """What the command prints: its header, and its rows in order, since they have none."""
    monkeypatch.setenv("TZ", spark.conf.get("spark.sql.session.timeZone"))

    def run(*arguments):
        code = app.run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert code == 0, err
        return sorted(out.splitlines())

    return run


@pytest.mark.parametrize("name", [*NAMES, *map(long, OTHERS)])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_both_ways_print_the_same(name, form, printed, tmp_path):
    path = table(name, tmp_path)
    instants = list_writes(path)
    reads = [(), ("--as-of", instants[-2]), ("--read-optimized",)]
    for options in (*reads, ("--incremental", f"{instants[-2]}..")):
        asked = ("read", path, "--format", form, *options)

        assert printed(*asked, "--executor", "spark") == printed(*asked, "--executor", "local")


@pytest.mark.parametrize("name", [NAMES[2], *map(long, (*NAMES[:2], *OTHERS))])
def test_conditions_leave_the_same_rows(name, spark, tmp_path):
    path = table(name, tmp_path)
    schema, rows = rows_of(path)
    values = {n: v for n, v in values_of(schema, rows).items() if "." not in n}
    storage, chance, taken = open_storage(str(path)), Random(f"{name} {SEED}"), 0
    scan = open_scan(storage, ReadRequest(columns=("_hoodie_record_key",)))
    for number in range(ASKED * 12):
        where = Conditions(chance, values).made(chance.choice((0, 0, 1, 2)))
        plan = plan_local_read(scan, where, storage if number % 2 else None)
        if plan is None:
            continue
        taken += 1
        if taken > ASKED:
            break
        ours = [key for rows in read_rows(plan, storage) for key in rows.column(0).to_pylist()]
        frame = make_data_frame(spark, scan, storage.ref, where)

        assert sorted(row[0] for row in frame.collect()) == sorted(ours), where
    assert taken > ASKED / 2


def test_every_type_is_spelled_as_spark_spells_it(spark, tmp_path):
    zone = spark.conf.get("spark.sql.session.timeZone")
    rows = pa.table(_make_odd_columns())
    pq.write_table(rows, tmp_path / "odd.parquet")
    frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(
        f"file://{Path(tmp_path) / 'odd.parquet'}"
    )
    (batch,) = rows.combine_chunks().to_batches()
    is_ansi = spark.conf.get("spark.sql.ansi.enabled")
    try:
        for ansi in ("true", "false"):  # the one is usual since Spark 4, and the other before
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            texts = frame.selectExpr(*make_text_expressions(rows.schema)).collect()
            lines = frame.selectExpr(make_json_expression(rows.schema)).collect()

            assert [tuple(row) for row in texts] == list(make_cells(batch, zone))
            assert [row[0] for row in lines] == list(make_json_lines(batch, zone))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", is_ansi)
    assert lines[3][0] == next(make_json_lines(batch.slice(3), zone))  # a part of larger arrays


def _make_odd_columns():
    """Columns of every type, padded with nulls."""

    def utc(*parts):
        return dt.datetime(*parts, tzinfo=dt.UTC)

    moments = [
        utc(2026, 7, 1, 12, 0, 0, 123456),
        utc(1850, 1, 1),
        utc(9999, 12, 31, 11),
        utc(1, 1, 2),
        utc(2099, 7, 1),
    ]
    numbers = [0.1, 1e7, 1e-3, 9.999e-4, -0.0, float("nan"), float("-inf"), 5e-324, 1.5e300]
    fine = Decimal("0.000000000000000001")
    nested = {
        "a": 1, "b": None, "c": [1.5, None, float("nan")], "d": fine, "e": b"x" * 100,
        "t": moments[0], "n": moments[1].replace(tzinfo=None), "dd": dt.date(1500, 1, 1), "f": 0.1,
        "g": {"x y": '\x1f"é\u2028'},
    }  # fmt: skip
    kinds = {
        "a": pa.int32(), "b": pa.string(), "c": pa.list_(pa.float64()), "d": pa.decimal128(38, 18),
        "e": pa.binary(), "t": pa.timestamp("us", "UTC"), "n": pa.timestamp("us"),
        "dd": pa.date32(), "f": pa.float32(), "g": pa.struct({"x y": pa.string()}),
    }  # fmt: skip
    columns = {
        "double": (numbers, pa.float64()),
        "float": ([*numbers[:7], 1e-45, 3.4e38], pa.float32()),
        "decimal": (
            [Decimal(0), Decimal("-1.5"), fine, Decimal("0.0000001")],
            pa.decimal128(38, 18),
        ),
        "whole": ([Decimal(0), Decimal(-7)], pa.decimal128(10, 0)),
        "binary": ([b"", b"\x00\xff", b"y" * 57, b"z" * 58], pa.binary()),
        "time": (moments, pa.timestamp("us", "UTC")),
        "local": ([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
        "day": ([dt.date(2026, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
        "text": (
            ["", 'a"b\\c/d', "\x00\x01\x1f\x7f\b\f\n\r\t", "äöü😀\u2028", " lead"],
            pa.string(),
        ),
        "early day": ([-719528, -719529, -1000000, 2932897], pa.date32()),
        "early time": ([-62167219200000001, -(10**17), 253402300800000000], pa.timestamp("us")),
        "truth": ([True, False], pa.bool_()),
        "long": ([-(2**63), 2**63 - 1], pa.int64()),
        "struct`%s": ([nested], pa.struct(kinds)),
        "map": ([[("k", 1), ('a"b', None)], []], pa.map_(pa.string(), pa.int64())),
        "list": ([[{"x": 1}, None], []], pa.list_(pa.struct({"x": pa.int32()}))),
    }
    return {
        name: pa.array([*values, *[None] * (10 - len(values))], kind)
        for name, (values, kind) in columns.items()
    }
