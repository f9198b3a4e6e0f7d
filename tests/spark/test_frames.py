"""A scan made by hand as a DataFrame: names, types and layouts that real Hudi seldom writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import ReconcilerError, UsageError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.reader import spark as reader
from reconciler.reader.model import PATH, SLICES, Scan
from reconciler.reader.spark_types import to_spark_schema
from reconciler.storage.api import StorageRef
from tests.spark.frames import PYSPARK, arrow, by_text, in_order, plan, types

pytestmark = PYSPARK

NESTED = pa.struct([pa.field("a.b", pa.int32()), pa.field("ü", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        pa.field("plain", pa.int64()),
        pa.field("a.b", pa.string()),
        pa.field("with `quotes` and spaces", NESTED),
        pa.field("größe", pa.map_(pa.string(), pa.int32())),
        pa.field("old", pa.date32()),
        pa.field("moment", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("price", pa.decimal128(20, 3)),
        pa.field("nothing", pa.null()),
        pa.field("later", pa.float64()),
        pa.field("day", pa.date32()),
        pa.field("part=%", pa.int32()),
    ]
)
FOLDED = pa.schema([SCHEMA.field("day"), SCHEMA.field("part=%")])
DAYS = [date(1500, 1, 1), date(2026, 1, 2), None]
PARTS = [7, None, -1]
OLD = datetime(1500, 1, 1, 12, 30, 0, 1, tzinfo=UTC)


def row(number):
    return {
        "plain": number,
        "a.b": f"text {number}",
        "with `quotes` and spaces": {"a.b": number, "ü": ["x", None]},
        "größe": [("k", number)],
        "old": date(1000, 1, 1) + timedelta(number),
        "moment": OLD + timedelta(microseconds=number),
        "local": OLD.replace(tzinfo=None) + timedelta(days=number),
        "price": Decimal(number) / 8,
        "nothing": None,
        "later": None,
    }


def scan_by_hand(folder, *, evolves=False, rows=4):
    """Three partitions of two files each, one of the two read through Python if it ``evolves``."""
    stored = [field for field in SCHEMA if field.name not in ("nothing", "later", "day", "part=%")]
    slices = []
    for partition in range(3):
        for file in range(2):
            name = f"p {partition} %20#/{file}.parquet"
            (folder / name).parent.mkdir(exist_ok=True)
            numbers = range(rows * (2 * partition + file), rows * (2 * partition + file + 1))
            made = pa.Table.from_pylist([row(number) for number in numbers], pa.schema(stored))
            pq.write_table(made, folder / name)
            size = (folder / name).stat().st_size
            slices.append((partition, name, size, [], 0, evolves and file == 1))
    columns = zip(*slices, strict=True)
    return Scan(
        location=str(folder),
        as_of="20260101000000000",
        schema=SCHEMA,
        table_schema=SCHEMA,
        partition_schema=FOLDED,
        partitions=pa.table(
            [[f"p {number} %20#" for number in range(3)], DAYS, PARTS],
            schema=pa.schema([pa.field(PATH, pa.string()), *FOLDED]),
        ),
        slices=pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, SLICES, strict=True)], SLICES
        ),
        rules=MergeRules(),
        committed=CommittedInstants(),
    )


@pytest.mark.parametrize("evolves", [False, True])
def test_names_and_types_of_every_kind_come_through(evolves, sessions, tmp_path):
    session = sessions.with_conf(
        sql_session_timeZone="Asia/Kathmandu", sql_execution_arrow_pyspark_enabled="false"
    )
    scan = scan_by_hand(tmp_path, evolves=evolves)
    frame = reader.make_data_frame(session, scan, StorageRef(str(tmp_path)))
    expected = [
        {**row(number), "day": DAYS[number // 8], "part=%": PARTS[number // 8]}
        for number in range(24)
    ]
    found = sorted(arrow(frame, SCHEMA).to_pylist(), key=lambda each: each["plain"])

    assert to_spark_schema(SCHEMA) == types(frame)
    assert SCHEMA.names == frame.columns
    assert expected == found
    assert evolves == ("MapInArrow" in plan(frame))


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("day = '2026-01-02'", [1]),
        ("DAY >= date'2026-01-01' and plain > 3", [1]),
        ("day is null", [2]),
        ("`part=%` in (7, -1)", [0, 2]),
        ("`part=%` = 7 or (day is null and plain = 1)", [0, 2]),
        ("not (`part=%` = 7)", [2]),
        ("`part=%` <=> null", [1]),
        ("year(day) between 1400 and 1600", [0]),
        ("(plain > 3 or `part=%` = 7) and (day is not null or `a.b` = 'x')", [0, 1, 2]),
        ("plain = 3", [0, 1, 2]),
        ("`part=%` = plain", [0, 1, 2]),
        ("not (day = '2026-01-02' and plain = 9)", [0, 1, 2]),
        ("day < current_date()", [0, 1, 2]),
        ("`part=%` = 7 and rand() < 2", [0]),
        ("day in (select date'2026-01-02')", [0, 1, 2]),
        ("1 = 0", []),
    ],
)
def test_a_condition_spares_the_partitions_that_cannot_match(where, kept, spark, tmp_path):
    scan = scan_by_hand(tmp_path)
    pruned = reader.prune_by_condition(spark, scan, where, None).kept
    ref = StorageRef(str(tmp_path))
    whole = reader.make_data_frame(spark, scan, ref)

    assert kept == sorted(set(pruned.slices.column("partition").to_pylist()))
    if "rand" not in where:
        found = reader.make_data_frame(spark, scan, ref, where)
        assert in_order(arrow(whole.filter(where), SCHEMA)) == in_order(arrow(found, SCHEMA))


def test_a_comparison_that_fails_prunes_nothing_and_is_told_with_the_rows(sessions, tmp_path):
    session = sessions.with_conf(sql_session_timeZone="UTC", sql_ansi_enabled="true")
    scan = scan_by_hand(tmp_path)
    ref = StorageRef(str(tmp_path))
    where = "cast(concat('x', `part=%`) as int) = 1"
    pruned = reader.prune_by_condition(session, scan, where, None).kept

    assert 6 == len(pruned.slices)
    with pytest.raises(ReconcilerError, match="cannot be cast"), reader.translate_spark_errors(ref):
        reader.make_data_frame(session, scan, ref, where).collect()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nosuch = 1", "nosuch"),
        ("1 +", "Syntax error"),
        ("plain", "boolean"),
        ("sum(plain) > 1", "invalid expressions"),
    ],
)
def test_what_is_no_condition_is_a_mistake_of_one_line(where, said, spark, tmp_path):
    with pytest.raises(UsageError, match=said) as raised:
        reader.make_data_frame(spark, scan_by_hand(tmp_path), StorageRef(str(tmp_path)), where)

    assert "\n" not in str(raised.value)


def test_a_condition_may_name_columns_that_are_not_wanted(spark, tmp_path):
    scan = replace(scan_by_hand(tmp_path, evolves=True), schema=pa.schema([SCHEMA.field("day")]))
    frame = reader.make_data_frame(spark, scan, StorageRef(str(tmp_path)), "plain % 8 = 0")

    assert ["day"] == frame.columns
    assert {(day,) for day in DAYS} == {tuple(each) for each in frame.collect()}


def test_only_the_wanted_columns_are_read_and_a_later_filter_spares_files(spark, tmp_path):
    wanted = pa.schema([SCHEMA.field("plain"), SCHEMA.field("day")])
    scan = replace(scan_by_hand(tmp_path), schema=wanted)
    frame = reader.make_data_frame(spark, scan, StorageRef(str(tmp_path)))
    later = frame.filter("day = '2026-01-02'").select("plain")
    rows = sorted(each[0] for each in later.collect())
    scans = later._jdf.queryExecution().executedPlan().collectLeaves()

    assert list(range(8, 16)) == rows
    assert "ReadSchema: struct<plain:bigint>" in plan(frame)
    assert 2 == scans.head().metrics().get("numFiles").get().value()


def test_only_partition_columns_can_be_wanted(spark, tmp_path):
    scan = replace(scan_by_hand(tmp_path, evolves=True), schema=pa.schema([SCHEMA.field("part=%")]))
    found = reader.make_data_frame(spark, scan, StorageRef(str(tmp_path))).collect()

    assert by_text([(part,) for part in PARTS for _ in range(8)]) == by_text(map(tuple, found))


def test_no_slices_are_an_empty_frame_of_the_same_columns(spark, tmp_path):
    scan = scan_by_hand(tmp_path)
    frame = reader.make_data_frame(spark, scan, StorageRef(str(tmp_path)), "`part=%` = 100")

    assert to_spark_schema(SCHEMA) == types(frame)
    assert [] == frame.collect()
    assert "FileScan" not in plan(frame)


def test_a_session_that_passes_over_files_is_not_followed(sessions, tmp_path):
    session = sessions.with_conf(
        sql_files_ignoreMissingFiles="true",
        sql_files_ignoreCorruptFiles="true",
        sql_streaming_fileSink_log_compactInterval="1",
        sql_sources_useV1SourceList="",
        sql_streaming_fileStreamSink_ignoreMetadata="true",
    )
    scan = scan_by_hand(tmp_path)
    ref = StorageRef(str(tmp_path))
    assert 24 == reader.make_data_frame(session, scan, ref).count()
    gone = tmp_path / "p 1 %20#" / "0.parquet"
    gone.unlink()

    with (
        pytest.raises(
            ReconcilerError, match="was removed by a clean or a rollback after the read began"
        ),
        reader.translate_spark_errors(ref),
    ):
        reader.make_data_frame(session, scan, ref).collect()


def test_what_many_slices_are_sent_as_holds_no_secret(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_BROADCAST_BYTES", 0)
    scan = scan_by_hand(tmp_path, evolves=True)
    ref = StorageRef(str(tmp_path), (("key", "hunter2-hunter2"),), ("hunter2-hunter2",))
    folder = Path(spark.sparkContext._temp_dir)
    before = set(folder.rglob("*"))
    assert 24 == reader.make_data_frame(spark, scan, ref).count()
    written = [path for path in set(folder.rglob("*")) - before if path.is_file()]

    assert written
    assert [] == [path for path in written if b"hunter2" in path.read_bytes()]
