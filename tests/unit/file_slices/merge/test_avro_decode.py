"""Decode Avro binary to Arrow columns, and report damage."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.avro_schema import (
    add_meta_columns,
    parse_avro_schema,
    to_arrow_schema,
)
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, LogBlock
from tests.memory_slices import avro_content, record_schema

LOGICAL = record_schema(
    ("day", {"type": "int", "logicalType": "date"}),
    ("ms", {"type": "long", "logicalType": "timestamp-millis"}),
    ("us", {"type": "long", "logicalType": "timestamp-micros"}),
    ("wall", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("clock", {"type": "int", "logicalType": "time-millis"}),
    ("uuid", {"type": "string", "logicalType": "uuid"}),
    ("dec", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}),
    ("fix", {"type": "fixed", "name": "f", "size": 3}),
    (
        "fixdec",
        {"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 10},
    ),
    ("kind", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
)


def columns(schema, content, names=None):
    header = {HeaderKey.SCHEMA: schema, HeaderKey.INSTANT_TIME: "1"}
    block = LogBlock(type=BlockType.AVRO_DATA, header=header, content=content, path="a.log")
    wanted = to_arrow_schema(schema, "a.log").names if names is None else names
    return pa.Table.from_batches(read_data_batches(block, wanted))


def test_logical_types_come_as_sparks():
    physical = {
        "day": -1,
        "ms": -1,
        "us": 1,
        "wall": -1,
        "clock": 5,
        "uuid": "u",
        "dec": (-12345678901234567890123).to_bytes(12, "big", signed=True),
        "fix": b"abc",
        "fixdec": (77).to_bytes(5, "big", signed=True),
        "kind": "B",
    }
    plain = json.loads(LOGICAL)
    for field in plain["fields"]:
        if isinstance(field["type"][1], dict):
            field["type"][1].pop("logicalType", None)
    content = avro_content(json.dumps(plain), [physical, dict.fromkeys(physical)])
    found = columns(LOGICAL, content)

    assert found.schema == to_arrow_schema(LOGICAL, "a.log")
    assert {
        "day": date(1969, 12, 31),
        "ms": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        "us": datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "wall": datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        "clock": 5,
        "uuid": "u",
        "dec": Decimal("-123456789012345678901.23"),
        "fix": b"abc",
        "fixdec": Decimal(77),
        "kind": "B",
    } == found.to_pylist()[0]
    assert dict.fromkeys(physical) == found.to_pylist()[1]


def test_types_are_those_that_spark_shows():

    assert ["date32[day]", "timestamp[us, tz=UTC]", "timestamp[us, tz=UTC]", "timestamp[us]"] == [
        str(field.type) for field in to_arrow_schema(LOGICAL, "x")
    ][:4]
    assert ["int32", "string", "decimal128(38, 2)", "binary", "decimal128(10, 0)", "string"] == [
        str(field.type) for field in to_arrow_schema(LOGICAL, "x")
    ][4:]


def test_nested_values_keep_their_shape():
    inner = {
        "type": "record",
        "name": "in",
        "namespace": "n",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
    }
    schema = record_schema(
        ("s", inner),
        ("again", "n.in"),
        ("a", {"type": "array", "items": ["null", "n.in"]}),
        ("m", {"type": "map", "values": {"type": "array", "items": "long"}}),
        ("last", "boolean"),
    )
    one = {
        "s": {"x": 1, "y": None},
        "again": None,
        "a": [{"x": 2, "y": "é"}, None, {"x": 3, "y": ""}],
        "m": {"k": [1, -(2**40)], "": []},
        "last": True,
    }
    two = {"s": None, "again": {"x": 4, "y": "z"}, "a": [], "m": None, "last": False}
    content = avro_content(schema, [one, two, one])
    found = columns(schema, content).to_pylist()

    for row in found:
        row["m"] = row["m"] and dict(row["m"])
    assert [one, two, one] == found
    assert [{"last": True}, {"last": False}, {"last": True}] == columns(
        schema, content, ["last"]
    ).to_pylist()


def test_blocks_of_lists_may_have_their_size():
    schema = record_schema(("a", [{"type": "array", "items": "int"}]))
    body = b"\x00" + b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"  # -2 items in 2 bytes, then 1
    content = struct.pack(">iii", 3, 1, len(body)) + body

    assert [{"a": [1, 2, 3]}] == columns(schema, content).to_pylist()
    assert 1 == columns(schema, content, []).num_rows


def test_null_need_not_be_the_first_branch():
    schema = record_schema(("a", ["string", "null"]), ("b", ["null"]), ("c", ["long"]))
    rows = [{"a": "x", "b": None, "c": 1}, {"a": None, "b": None, "c": 2}]

    assert rows == columns(schema, avro_content(schema, rows)).to_pylist()


SIMPLE = record_schema(("s", "string"), ("n", ["int"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (struct.pack(">ii", 2, 0), "content version 2 with 0 records"),
        (struct.pack(">ii", 3, 9), "content version 3 with 9 records"),
        (struct.pack(">iii", 3, 1, -5) + b"\x00" * 5, "negative length"),
        (struct.pack(">iii", 3, 1, 3) + b"\x00\x00\x02\x02", "take 15 bytes of 16"),
        (struct.pack(">iii", 3, 1, 4) + b"\x00\x00\x02\x02", "length differs from its fields"),
        (struct.pack(">iii", 3, 1, 3) + b"\x04\x00\x02", "a union branch is out of range"),
        (struct.pack(">iii", 3, 1, 4) + b"\x02\x10\x02\x02", "the data is truncated"),
        (struct.pack(">iii", 3, 1, 4) + b"\x02\x01\x02\x02", "length is out of range"),
        (struct.pack(">iii", 3, 1, 5) + b"\x02\x02\xff\x00\x02", "UTF8"),
        (
            struct.pack(">iii", 3, 1, 13) + b"\x00\x00" + b"\xff" * 11,
            "a number is longer than 10 bytes",
        ),
        (struct.pack(">iii", 3, 1, 8) + b"\x00\x00" + b"\xff" * 5 + b"\x01", "32 bits"),
        (b"\x00", "unpack"),
    ],
)
def test_damage_is_found(content, message):
    with pytest.raises(FormatError, match=rf"a\.log: the Avro block at byte 0 .*{message}"):
        columns(SIMPLE, content)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (["null", "int", "string"], "a union of 2 types"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0},
            "decimals of 39 digits",
        ),
    ],
)
def test_columns_that_no_table_has_are_refused_by_name(kind, message):
    with pytest.raises(UnsupportedError, match=f"t, column c: {message}"):
        parse_avro_schema(record_schema(("c", kind if isinstance(kind, list) else [kind])), "t")


@pytest.mark.parametrize("text", ["", "[]", '"int"', '{"type": "record"}'])
def test_a_text_that_is_not_a_record_schema_is_damage(text):
    with pytest.raises(FormatError, match=r"^t: "):
        parse_avro_schema(text, "t")


def test_meta_columns_come_first():
    schema = pa.schema([("id", pa.int64()), ("_hoodie_file_name", pa.string())])

    assert [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "id",
    ] == add_meta_columns(schema).names
