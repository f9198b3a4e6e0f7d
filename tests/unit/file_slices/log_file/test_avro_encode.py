"""Encode Arrow columns as Avro: what fastavro encodes, and what decoders read back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import FormatError
from reconciler.file_slices.log_file.avro_encode import encode_avro_content, encode_records
from reconciler.file_slices.merge.avro_schema import parse_avro_schema, to_arrow_schema
from tests.memory_slices import avro_content, record_schema
from tests.selection import examples

LAW = settings(max_examples=examples(4, many=300), deadline=None)
INNER = {
    "type": "record",
    "name": "in",
    "namespace": "n",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["string", "null"]}],
}
SCHEMA = record_schema(
    ("n", "long"),
    ("i", ["int"]),
    ("t", "string"),
    ("b", "bytes"),
    ("f", "float"),
    ("d", "double"),
    ("z", "boolean"),
    ("s", INNER),
    ("a", {"type": "array", "items": ["null", "n.in"]}),
    ("m", {"type": "map", "values": ["null", {"type": "array", "items": "long"}]}),
    ("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
    ("w", {"type": "fixed", "name": "w", "size": 3}),
)
SCHEMA = SCHEMA.replace('{"name": "i", "type": ["int"]}', '{"name": "i", "type": "int"}')
longs = st.integers(-(1 << 63), (1 << 63) - 1)
ints = st.integers(-(1 << 31), (1 << 31) - 1)
inner = st.fixed_dictionaries({"x": ints, "y": st.none() | st.text(max_size=3)})
rows = st.fixed_dictionaries(
    {
        "n": st.none() | longs,
        "i": ints,
        "t": st.none() | st.text(max_size=5),
        "b": st.none() | st.binary(max_size=5),
        "f": st.none() | st.floats(width=32),
        "d": st.none() | st.floats(),
        "z": st.none() | st.booleans(),
        "s": st.none() | inner,
        "a": st.none() | st.lists(st.none() | inner, max_size=3),
        "m": st.none()
        | st.dictionaries(st.text(max_size=2), st.none() | st.lists(longs, max_size=2), max_size=2),
        "e": st.none() | st.sampled_from(["A", "B"]),
        "w": st.none() | st.binary(min_size=3, max_size=3),
    }
)


def encode(schema, records, start=0):
    """Encode records as a content; ``start``: rows before them in the same Arrow memory."""
    kinds = to_arrow_schema(schema, "x")
    tuples = [
        {name: [*value.items()] if isinstance(value, dict) and name == "m" else value
         for name, value in one.items()}
        for one in records
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist([*tuples[:1] * start, *tuples], schema=kinds).slice(start)
    return encode_avro_content(encode_records(batch, parse_avro_schema(schema, "x"), "x"))


@LAW
@given(st.lists(rows, min_size=1, max_size=4), st.integers(0, 2))
def test_any_rows_have_the_bytes_that_avro_gives_them(records, start):
    assert avro_content(SCHEMA, records) == encode(SCHEMA, records, start)


def test_logical_types_are_stored_as_hudi_stores_them():
    logical = record_schema(
        ("day", {"type": "int", "logicalType": "date"}),
        ("ms", {"type": "long", "logicalType": "timestamp-millis"}),
        ("us", {"type": "long", "logicalType": "timestamp-micros"}),
        ("dec", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}),
        (
            "fix",
            {"type": "fixed", "name": "d", "size": 20, "logicalType": "decimal", "precision": 38},
        ),
    )
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    numbers = ("1.28", "-1.28", "0.00", "-0.01", "12345678901234567890.12")
    records = [
        {"day": date(1969, 12, 31), "ms": before, "us": before, "dec": Decimal(text), "fix": at}
        for at, text in enumerate(numbers, -1)
    ]
    plain = json.loads(logical)
    for field in plain["fields"]:
        field["type"][1].pop("logicalType", None)
    physical = [
        {
            "day": -1,
            "ms": -1,
            "us": -1,
            "dec": to_bytes(int(Decimal(text) * 100)),
            "fix": at.to_bytes(20, "big", signed=True),
        }
        for at, text in enumerate(numbers, -1)
    ]
    none = dict.fromkeys(physical[0])

    expected = avro_content(json.dumps(plain), [*physical, none])
    assert expected == encode(logical, [*records, none])


def to_bytes(number):
    """Return what Java's BigInteger.toByteArray returns."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def test_a_null_that_the_schema_forbids_is_an_error_that_names_the_column():
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]})
    with pytest.raises(FormatError, match=r"column x: .*null in 1 of 2 rows"):
        encode(schema, [{"x": 1}, {"x": None}])


def test_values_below_a_null_are_not_looked_at():
    schema = record_schema(("s", INNER))
    assert avro_content(schema, [{"s": None}]) == encode(schema, [{"s": None}])


def test_an_unknown_symbol_is_an_error_that_names_the_column():
    schema = record_schema(("e", {"type": "enum", "name": "e", "symbols": ["A"]}))
    with pytest.raises(FormatError, match="column e: 'C' is none of its symbols"):
        encode(schema, [{"e": "C"}])
