"""Derive the columns of base files from a table's Avro schema."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.merge.avro_schema import META_COLUMNS


def record(*fields, name="inner"):
    made = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": name, "namespace": "n", "fields": made}


def text(*fields):
    return json.dumps(record(*fields, name="outer"))


def fixed(size, precision=7):
    logical = {"logicalType": "decimal", "precision": precision, "scale": 2}
    return {"type": "fixed", "name": "f", "size": size, **logical}


def timed(kind, logical):
    return {"type": kind, "logicalType": logical}


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        ("string", pa.field("c", pa.string(), nullable=False)),
        (["null", "string"], pa.field("c", pa.string())),
        (["int", "null"], pa.field("c", pa.int32())),
        (["null", fixed(4)], pa.field("c", pa.decimal128(7, 2))),
        (["null", {"type": "fixed", "name": "f", "size": 3}], pa.field("c", pa.binary(3))),
        (timed("long", "timestamp-millis"), pa.field("c", pa.timestamp("ms", "UTC"), False)),
        (timed("long", "timestamp-micros"), pa.field("c", pa.timestamp("us", "UTC"), False)),
        (timed("long", "local-timestamp-millis"), pa.field("c", pa.timestamp("ms"), False)),
        (timed("int", "time-millis"), pa.field("c", pa.time32("ms"), False)),
        (timed("long", "time-micros"), pa.field("c", pa.time64("us"), False)),
        (
            {"type": "array", "items": "int"},
            pa.field("c", pa.list_(pa.field("element", pa.int32(), False)), False),
        ),
        (
            ["null", {"type": "map", "values": ["null", "long"]}],
            pa.field("c", pa.map_(pa.string(), pa.int64())),
        ),
        (
            ["null", record(("x", "int"), ("y", ["null", "int"]))],
            pa.field("c", pa.struct([pa.field("x", pa.int32(), False), ("y", pa.int32())])),
        ),
    ],
)
def test_types_keep_their_units_and_nullability(avro, expected):
    found = FileSchema.from_avro(text(("c", avro)), "t").columns.field("c")

    assert expected.equals(found)


def test_meta_columns_come_first_and_may_be_null():
    found = FileSchema.from_avro(text(("c", "int")), "t")
    fields = [(field["name"], field.get("doc")) for field in json.loads(found.avro)["fields"]]

    assert [*META_COLUMNS, "c"] == found.columns.names
    assert [*((name, "") for name in META_COLUMNS), ("c", None)] == fields
    assert all(found.columns.field(name).nullable for name in META_COLUMNS)


def test_a_schema_that_has_them_stays_as_it_is():
    once = FileSchema.from_avro(text(("c", "int")), "t")

    assert once == FileSchema.from_avro(once.avro, "t")


def test_dropped_columns_are_in_no_file():
    found = FileSchema.from_avro(text(("c", "int"), ("day", "string")), "t", dropped=["day"])

    assert [*META_COLUMNS, "c"] == found.columns.names
    assert '"day"' not in found.avro


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("null", "t, column c: a type without values"),
        ({"type": "record", "name": "e", "fields": []}, "t, column c: a type without values"),
        (fixed(8), "t, column c: a decimal of 7 digits in 8 bytes, which needs 4"),
        (["null", "int", "string"], "t, column c: a union of 2 types"),
    ],
)
def test_types_that_no_file_holds_are_refused(kind, problem):
    with pytest.raises(UnsupportedError, match=problem):
        FileSchema.from_avro(text(("c", kind)), "t")


def test_a_text_that_is_not_a_schema_is_named():
    with pytest.raises(FormatError, match=r"00\.commit"):
        FileSchema.from_avro('{"type": "string"}', "00.commit")
