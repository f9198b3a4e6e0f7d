"""The comparison that the oracle tests of reading lean on."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.oracle.answers import Answer, find_differences, list_types

NAN_OF_ANOTHER_SIGN = pa.array([0xFFF8000000000001], pa.uint64())
MAP = pa.map_(pa.string(), pa.float64())


def answer(*rows, kind):
    return Answer.from_rows(
        pa.table({"k": pa.array(map(str, range(len(rows)))), "v": pa.array(rows, kind)})
    )


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.float64(), 0.0, -0.0),
        (pa.float32(), 0.0, -0.0),
        (pa.float64(), 1.0, 1.0000000000000002),
        (pa.decimal128(5, 2), Decimal("1.10"), Decimal("1.11")),
        (pa.timestamp("us", "UTC"), 0, 1),
        (pa.timestamp("us"), -(10**17), -(10**17) - 1),
        (pa.binary(), b"a", b"b"),
        (pa.string(), "", None),
        (pa.list_(pa.float64()), [0.0], [-0.0]),
        (pa.list_(pa.int32()), [], None),
        (pa.struct([("a", pa.string())]), {"a": None}, None),
        (MAP, [("a", 1.0)], [("a", None)]),
    ],
)
def test_values_that_differ_are_seen(kind, one, other):
    assert [] == find_differences(answer(one, one, kind=kind), answer(one, one, kind=kind))
    assert [] != find_differences(answer(one, one, kind=kind), answer(one, other, kind=kind))
    assert [] != find_differences(answer(other, one, kind=kind), answer(one, one, kind=kind))


def test_nan_is_nan_whatever_its_bits():
    nan = answer(float("nan"), kind=pa.float64())
    table = pa.table({"k": ["0"], "v": NAN_OF_ANOTHER_SIGN.view(pa.float64())})

    assert [] == find_differences(nan, Answer.from_rows(table))


def test_the_order_of_rows_and_of_a_map_is_no_difference_but_their_number_is():
    one, other = [("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)]
    rows = pa.table({"k": ["0", "1"], "v": pa.array([one, []], MAP)})
    turned = pa.table({"k": ["1", "0"], "v": pa.array([[], other], MAP)})

    assert [] == find_differences(Answer.from_rows(rows), Answer.from_rows(turned))
    assert [
        "1 rows not expected:",
        "  (\"'1'\", '[]')",
    ] == find_differences(Answer.from_rows(rows.slice(0, 1)), Answer.from_rows(rows))
    assert [
        "1 rows missing:",
        "  (\"'1'\", '[]')",
    ] == find_differences(
        Answer.from_rows(pa.concat_tables([rows, rows.slice(1)])), Answer.from_rows(rows)
    )


def test_columns_their_order_and_their_types_are_compared():
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})

    assert ["columns ['a', 'b'] expected, ['b', 'a'] found"] == find_differences(
        Answer.from_rows(rows), Answer.from_rows(rows.select(["b", "a"]))
    )
    assert ["column a: type integer expected, long found"] == find_differences(
        Answer.from_rows(rows), Answer.from_rows(rows.set_column(0, "a", pa.array([1], pa.int64())))
    )


def test_the_types_of_arrow_are_those_that_spark_says_in_json():
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StructType, _parse_datatype_json_string  # noqa: PLC0415

    fields = {
        "a": pa.int32(),
        "b": pa.decimal128(7, 3),
        "c": pa.list_(pa.struct([("x", pa.timestamp("us"))])),
        "d": pa.map_(pa.string(), pa.list_(pa.binary())),
        "e": pa.struct([("y", pa.date32()), ("z", pa.timestamp("us", "UTC"))]),
    }
    spark = StructType()
    for name, text in {
        "a": '"integer"',
        "b": '"decimal(7,3)"',
        "c": '{"type":"array","containsNull":true,"elementType":{"type":"struct","fields":'
        '[{"name":"x","type":"timestamp_ntz","nullable":true,"metadata":{}}]}}',
        "d": '{"type":"map","keyType":"string","valueContainsNull":false,"valueType":'
        '{"type":"array","containsNull":false,"elementType":"binary"}}',
        "e": '{"type":"struct","fields":[{"name":"y","type":"date","nullable":false,"metadata":'
        '{"c":1}},{"name":"z","type":"timestamp","nullable":true,"metadata":{}}]}',
    }.items():
        spark.add(name, _parse_datatype_json_string(text))

    ours = Answer.from_rows(pa.schema(fields.items()).empty_table())
    assert list_types(spark.jsonValue()) == ours.types


def test_a_refusal_differs_from_rows_only():
    rows, refused = Answer.from_rows(pa.table({"a": ["x"]})), Answer(refusal=("no",))

    assert [] == find_differences(refused, Answer(refusal=("another no",)))
    assert ["only the expected answer is a refusal: ('no',)"] == find_differences(refused, rows)
    assert ["only the actual answer is a refusal: ('no',)"] == find_differences(rows, refused)
