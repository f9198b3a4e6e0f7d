"""Encode records of the metadata table's indexes; those of real tables are in tests/tables."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs.avro_binary import decode_record, encode_record, parse_schema
from reconciler.hudi.metadata.record_encoder import BoundWrapper, ColumnRange, RecordEncoder

SPACE = "org.apache.hudi.avro.model"
NAME = "6f7b3a71-31e5-4c46-b329-a84dbac6e0aa-0_0-1-2_20261121045646282.parquet"


def wrapper(name, kind):
    fields = [{"name": "value", "type": kind}]
    return {"type": "record", "name": name, "namespace": SPACE, "fields": fields}


def schema(*more):
    bounds = ["null", wrapper("IntWrapper", "int"), wrapper("DoubleWrapper", "double")]
    known = ["null", f"{SPACE}.IntWrapper", f"{SPACE}.DoubleWrapper"]
    stats = [
        *(("fileName", ["null", "string"]), ("columnName", ["null", "string"])),
        *(("minValue", bounds), ("maxValue", known), ("valueCount", ["null", "long"])),
        *more,
    ]
    inner = {"type": "record", "name": "HoodieMetadataColumnStats", "namespace": SPACE}
    inner["fields"] = [{"name": name, "type": kind} for name, kind in stats]
    fields = [
        {"name": "key", "type": "string"},
        {"name": "type", "type": "int"},
        {"name": "ColumnStatsMetadata", "type": ["null", inner]},
    ]
    return json.dumps({"type": "record", "name": "HoodieMetadataRecord", "fields": fields})


INT = BoundWrapper(wrapper=f"{SPACE}.IntWrapper")
DOUBLE = BoundWrapper(wrapper=f"{SPACE}.DoubleWrapper")


def one(column="c", least=1, greatest=2):
    return ColumnRange(
        column=column, least=least, greatest=greatest, values=3, nulls=0, size=1, plain_size=1
    )


def stats(found, wrappings, text=None):
    records = RecordEncoder(schema=text or schema(), path="metadata")
    ((_, value),) = records.encode_column_stats("p", NAME, [found], wrappings)
    return decode_record(value, parse_schema(records.schema, ""), "")["ColumnStatsMetadata"]


def test_fields_missing_in_the_schema_are_left_out():
    expected = {
        "fileName": NAME,
        "columnName": "c",
        "minValue": {"value": 1},
        "maxValue": {"value": 2},
        "valueCount": 3,
    }

    assert expected == stats(one(), {"c": INT})


def test_bounds_of_nulls_are_null():
    found = stats(one(least=None, greatest=None), {"c": INT})

    assert (None, None) == (found["minValue"], found["maxValue"])


def test_nan_is_stored_as_infinity():
    some = stats(one(least=0.0, greatest=math.nan), {"c": DOUBLE})
    all_of_them = stats(one(least=math.nan, greatest=math.nan), {"c": DOUBLE})

    assert (0.0, math.inf) == (some["minValue"]["value"], some["maxValue"]["value"])
    assert (-math.inf, math.inf) == (
        all_of_them["minValue"]["value"],
        all_of_them["maxValue"]["value"],
    )


@pytest.mark.parametrize(
    ("found", "wrappings", "problem"),
    [
        (
            one("d"),
            {"c": INT},
            "column d: the index has no entry that shows how it stores this column",
        ),
        (one(least="a"), {"c": INT}, "column c: the index keeps its bounds in a IntWrapper"),
        (one(least=True), {"c": INT}, "column c: .* which a bool does not fit"),
        (one(), {"c": BoundWrapper(wrapper="n.NewWrapper")}, "keeps its bounds in a NewWrapper"),
        (
            one(least=Decimal("0.0000000000000001")),
            {"c": BoundWrapper(wrapper="n.DecimalWrapper")},
            "15 decimal digits",
        ),
        (
            one(least=Decimal("0.5")),
            {"c": BoundWrapper(wrapper="n.BytesWrapper")},
            "does not record its number of decimal digits",
        ),
    ],
)
def test_bounds_that_the_index_cannot_hold_are_refused(found, wrappings, problem):
    with pytest.raises(UnsupportedError, match=problem):
        stats(found, wrappings)


def typed(parameters):
    info = (f"{SPACE}.HoodieValueTypeInfo", {"typeOrdinal": 10, "additionalInfo": parameters})
    return BoundWrapper(wrapper=f"{SPACE}.BytesWrapper", value_type=info)


@pytest.mark.parametrize(
    ("bound", "digits"), [("3.25", 325), ("3.250", 325), ("-3", -300), ("0.5", 50), ("1E2", 10000)]
)
def test_a_decimal_is_stored_with_the_scale_of_the_index(bound, digits):
    _name, wrapped = typed("7,2").wrap(Decimal(bound), "f")

    assert digits == int.from_bytes(wrapped["value"], "big", signed=True)


def test_a_decimal_of_more_digits_than_the_index_keeps_is_refused():
    with pytest.raises(UnsupportedError, match=r"f: 3\.255 has more than the 2 decimal digits"):
        typed("7,2").wrap(Decimal("3.255"), "f")


def test_an_unknown_required_field_is_refused():
    with pytest.raises(UnsupportedError, match="metadata: its records have a field 'newer'"):
        stats(one(), {"c": INT}, schema(("newer", "long")))


def test_an_index_that_the_schema_does_not_have_is_refused():
    records = RecordEncoder(schema=schema(), path="metadata")

    with pytest.raises(UnsupportedError, match="no field 'recordIndexMetadata'"):
        records.encode_record_location("p", NAME, 1)


@pytest.mark.parametrize("name", ["files-0000-0_0-1-2_2024.parquet", "part.parquet"])
def test_a_file_id_that_is_not_a_uuid_is_refused(name):
    with pytest.raises(UnsupportedError, match="its file id is not a UUID with a number"):
        RecordEncoder(schema=schema(), path="metadata").encode_record_location("p", name, 1)


def record(column, least):
    inner = {"columnName": column, "fileName": NAME, "valueCount": 1, "maxValue": None}
    inner["minValue"] = least
    value = {"key": "", "type": 3, "ColumnStatsMetadata": inner}
    return encode_record(value, parse_schema(schema(), ""))


def test_wrappings_are_learned_from_records_with_bounds():
    values = iter(
        [
            record("c", None),
            record("other", (INT.wrapper, {"value": 1})),
            record("c", (DOUBLE.wrapper, {"value": 1.0})),
            b"not read any more",
        ]
    )

    assert {"c": DOUBLE} == BoundWrapper.learn(values, schema(), "m", ["c"])
    assert [b"not read any more"] == list(values)


def test_a_damaged_record_names_the_file():
    with pytest.raises(FormatError, match=r"^m: an Avro record cannot be decoded"):
        BoundWrapper.learn([b"\x00"], schema(), "m", ["c"])


@pytest.mark.parametrize("bound", [1 << 31, -(1 << 31) - 1])
def test_a_bound_of_a_widened_column_that_its_wrapper_cannot_hold_is_refused(bound):
    with pytest.raises(UnsupportedError, match=f"in a IntWrapper, which cannot hold {bound}"):
        INT.wrap(bound, "f, column c")


def test_a_bound_is_not_rounded_into_a_narrow_wrapper():
    narrow = BoundWrapper(wrapper=f"{SPACE}.FloatWrapper")
    for bound in (0.1, 1e300, -1e300):
        with pytest.raises(UnsupportedError, match="in a FloatWrapper, which cannot hold"):
            narrow.wrap(bound, "f, column c")

    assert (narrow.wrapper, {"value": 0.5}) == narrow.wrap(0.5, "")
    assert math.isinf(narrow.wrap(math.inf, "")[1]["value"])
    assert math.isnan(narrow.wrap(math.nan, "")[1]["value"])
    assert (INT.wrapper, {"value": -(1 << 31)}) == INT.wrap(-(1 << 31), "")
