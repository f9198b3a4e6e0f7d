from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.reader.spark_types import format_spark_type, is_void, to_spark_schema


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "tinyint"),
        (pa.int16(), "smallint"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.binary(), "binary"),
        (pa.large_binary(), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us", "Asia/Tokyo"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(38, 18), "decimal(38,18)"),
        (pa.null(), "void"),
        (pa.list_(pa.decimal128(5, 0)), "array<decimal(5,0)>"),
        (
            pa.map_(pa.string(), pa.struct([pa.field("x y", pa.int64())])),
            "map<string,struct<x y:bigint>>",
        ),
    ],
)
def test_a_type_is_the_one_that_spark_gives_it(kind, name):

    assert name == format_spark_type(kind)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (pa.time64("us"), "t"),
        (pa.timestamp("ns"), "t"),
        (pa.list_(pa.uint8()), "t.element"),
        (pa.struct([pa.field("a", pa.duration("s"))]), "t.a"),
        (pa.map_(pa.string(), pa.decimal256(50, 2)), "t.value"),
    ],
)
def test_a_type_that_spark_has_not_is_refused_by_its_column(kind, where):
    with pytest.raises(UnsupportedError, match=f"column {where}: Spark has no type for"):
        to_spark_schema(pa.schema([pa.field("t", kind)]))


def test_what_may_be_null_is_told_inside_of_types_too():
    element = pa.field("element", pa.int32(), nullable=False)
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("list", pa.list_(element))]
    )
    array = {"type": "array", "elementType": "integer", "containsNull": False}

    assert {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {}},
            {"name": "list", "type": array, "nullable": True, "metadata": {}},
        ],
    } == to_spark_schema(schema)


def test_nulls_alone_are_found_however_deep():

    assert is_void(pa.null())
    assert is_void(pa.map_(pa.string(), pa.list_(pa.struct([pa.field("a", pa.null())]))))
    assert not is_void(pa.struct([pa.field("a", pa.int32())]))
