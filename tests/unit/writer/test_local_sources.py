"""Which Parquet files this process reads, and which it leaves to Spark."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.writer.sources import local
from reconciler.writer.sources.files import find_source_files
from reconciler.writer.sources.local import NeedsSparkError, open_local_source

EARLY, LATE = [dt.date(1500, 1, 1)], [dt.date(2026, 1, 1)]
VERSION = "org.apache.spark.version"
SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


@pytest.fixture
def opened(tmp_path):
    """Write columns, and open the file as a source of rows."""

    def write(columns, keys=None, **options):
        table = pa.table(columns).replace_schema_metadata(keys)
        pq.write_table(table, tmp_path / "x.parquet", **options)
        return open_local_source(find_source_files([str(tmp_path / "x.parquet")], None, {}))

    return write


def describe(kind, **metadata):
    """The schema that Spark keeps in a footer, of one column x."""
    field = {"name": "x", "type": kind, "nullable": True, "metadata": metadata}
    return {VERSION: "3.5.0", SCHEMA: json.dumps({"type": "struct", "fields": [field]})}


@pytest.mark.parametrize(
    ("columns", "keys", "options"),
    [
        ({"x": EARLY}, {VERSION: "2.4.8"}, {}),  # Spark 2 wrote in the hybrid calendar
        ({"x": EARLY}, None, {"write_statistics": False}),
        ({"x": pa.array([[*EARLY]])}, None, {}),
    ],
)
def test_dates_that_may_be_in_another_calendar_are_left_to_spark(columns, keys, options, opened):
    with pytest.raises(NeedsSparkError, match="dates before 1582"):
        opened(columns, keys, **options)


@pytest.mark.parametrize(("days", "version"), [(LATE, "2.4.8"), (EARLY, "3.0.0"), (EARLY, "4.0.1")])
def test_other_dates_are_read_here(days, version, opened):
    assert 1 == opened({"x": days}, {VERSION: version}).rows


def test_times_after_the_year_9999_are_read_here(opened):
    late = pa.array([253402300800000000]).cast(pa.timestamp("us", "UTC"))
    (part,) = opened({"x": late}).parts

    assert [late] == [batch.column("x") for batch in part]


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("interval year", {}),
        ({"type": "udt", "sqlType": "integer"}, {}),
        ("integer", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
    ],
)
def test_types_that_only_spark_has_are_left_to_it(kind, metadata, opened):
    with pytest.raises(NeedsSparkError, match="types of Spark's own"):
        opened({"x": pa.array([1], pa.int32())}, describe(kind, **metadata))


def test_a_schema_of_spark_with_the_types_of_the_file_is_read_here(opened):
    items = {"type": "array", "elementType": "integer", "containsNull": False}
    assert 1 == opened({"x": pa.array([[1]], pa.list_(pa.int32()))}, describe(items)).rows


def test_fields_that_differ_in_their_case_only_are_left_to_spark(opened):
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "A"])
    with pytest.raises(NeedsSparkError, match="differ in their case only"):
        opened({"x": pa.array([[one] for one in twice], pa.list_(twice.type))})


def test_an_enum_is_left_to_spark(opened, monkeypatch):
    """To Arrow it is binary, and to Spark text; no writer here makes one."""
    opened({"x": ["a"]})
    monkeypatch.setattr(local, "_ENUM", "String")
    with pytest.raises(NeedsSparkError, match="has a column of ENUM"):
        opened({"x": ["a"]})


def test_texts_that_pandas_keeps_as_categories_are_texts(opened):
    source = opened({"x": pa.array(["a", None, "a"]).dictionary_encode()})
    (part,) = source.parts

    assert pa.schema({"x": pa.string()}) == source.schema
    assert [["a", None, "a"]] == [batch.column("x").to_pylist() for batch in part]
