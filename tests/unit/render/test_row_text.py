"""Rows as text: what Spark 3.5 printed of the same values; ``tests/spark`` asks it again."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from reconciler.render.row_text import find_unprintable_column, make_cells, make_json_lines

MOMENTS = ["2026-07-01T12:00:00.123456", "1850-01-01", "1893-03-31T23:06:31", "1945-05-24T00:30"]


def cells(values, zone="UTC"):
    return [text for (text,) in make_cells(pa.record_batch({"c": values}), zone)]


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        (
            [0.1, 1e7, 1e-3, 9.999e-4, 1234567.0, -0.0, 5e-324, 1.5e300, None], pa.float64(),
            ["0.1", "1.0E7", "0.001", "9.999E-4", "1234567.0", "-0.0", "4.9E-324", "1.5E300", None],
        ),
        (
            [0.1, 16777216.0, 1e-45, 3.3, float("nan"), float("-inf")], pa.float32(),
            ["0.1", "1.6777216E7", "1.4E-45", "3.3", "NaN", "-Infinity"],
        ),
        (
            [Decimal(0), Decimal("0.000000000000000001"), Decimal("-1.5"), Decimal("1E-7")],
            pa.decimal128(38, 18),
            ["0E-18", "1E-18", "-1.500000000000000000", "1.00000000000E-7"],
        ),
        ([b"", b"\x00\xff", b"y" * 58], pa.binary(), ["", "AP8=", "eXl5" * 19 + "eQ=="]),
        ([dt.date(1, 1, 1), None], pa.date32(), ["0001-01-01", None]),
        ([2932897], pa.int32(), ["2932897"]),
        ([True, None], pa.bool_(), ["true", None]),
    ],
)  # fmt: skip
def test_values_are_spelled_as_java_spells_them(values, kind, texts):
    assert texts == cells(pa.array(values, kind))


def test_times_have_microseconds_and_the_offset_of_the_zone():
    utc = pa.array(np.array(MOMENTS, "datetime64[us]")).cast(pa.timestamp("us", "UTC"))
    assert [
        "2026-07-01T14:00:00.123456+02:00",
        "1850-01-01T00:53:28.000000+00:53",
        "1893-03-31T23:59:59.000000+00:53",
        "1945-05-24T03:30:00.000000+03:00",
    ] == cells(utc, "Europe/Berlin")
    assert "2026-07-01T12:00:00.123456Z" == cells(utc)[0]
    assert "2026-07-01T12:00:00.123456" == cells(utc.cast(pa.timestamp("us")), "Asia/Tokyo")[0]
    late = pa.array([253402300800000000, None], pa.timestamp("us"))
    assert ["+10000-01-01T00:00:00.000000", None] == cells(late)
    assert ["+10000-01-01"] == cells(pa.array([2932897], pa.int32()).cast(pa.date32()))


def test_years_before_the_first_and_after_the_last_of_four_digits_are_those_of_java():
    seconds = np.array([-62167219201, -62167219200, -62135596801, -(10**11), 253402300800])
    utc = pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))
    assert [
        "-0001-12-31T23:59:59.000000Z",
        "0000-01-01T00:00:00.000000Z",
        "0000-12-31T23:59:59.000000Z",
        "-1199-02-15T14:13:20.000000Z",
        "+10000-01-01T00:00:00.000000Z",
    ] == cells(utc)
    assert "-0001-12-31T19:03:57.000000-04:56" == cells(utc, "America/New_York")[0]
    days = pa.array([-719529, -719528, -1000000, None], pa.int32()).cast(pa.date32())
    assert ["-0001-12-31", "0000-01-01", "-0768-02-04", None] == cells(days)
    ends = pa.array([-(2**63), 2**63 - 1]).cast(pa.timestamp("us"))
    assert ["-290308-12-21T19:59:05.224192", "+294247-01-10T04:00:54.775807"] == cells(ends)


def test_summer_time_does_not_end_in_2037():
    days = np.array(["2037-07-01", "2099-07-01", "2099-12-31"], "datetime64[us]")
    times = pa.array(days).cast(pa.timestamp("us", "UTC"))
    assert [
        "2037-07-01T02:00:00.000000+02:00",
        "2099-07-01T02:00:00.000000+02:00",
        "2099-12-31T01:00:00.000000+01:00",
    ] == cells(times, "Europe/Berlin")
    millennia = pa.array([253402300800000000 + 15_552_000_000_000]).cast(pa.timestamp("us", "UTC"))
    assert ["+10000-06-28T20:00:00.000000-04:00"] == cells(millennia, "America/New_York")


def test_bytes_that_are_no_text_are_replaced():
    odd = [b"ok", b"a\xe2\x82", b"\xed\xa0\x80b", b"\xff\xfe", None]
    texts = pa.Array.from_buffers(pa.string(), 5, pa.array(odd).buffers())
    assert ["ok", "a\ufffd", "\ufffdb", "\ufffd\ufffd", None] == cells(texts)
    rows = pa.record_batch({"c": texts.slice(3)})
    assert ['{"c":"\ufffd\ufffd"}', '{"c":null}'] == list(make_json_lines(rows, "UTC"))


def test_a_part_of_nested_values_is_that_part():
    rows = pa.record_batch(
        {
            "list": pa.array([[1], None, [2, None], []]),
            "map": pa.array(
                [[("a", 1.5)], [], None, [('"', None)]], pa.map_(pa.string(), pa.float64())
            ),
            "struct%s": pa.array(
                [{"x": 1, "y": "\x1f"}, None, {"x": None, "y": "é"}, {"x": 2, "y": ""}]
            ),
        }
    )
    lines = list(make_json_lines(rows, "UTC"))
    assert [
        '{"list":[1],"map":{"a":1.5},"struct%s":{"x":1,"y":"\\u001F"}}',
        '{"list":null,"map":{},"struct%s":null}',
        '{"list":[2,null],"map":null,"struct%s":{"x":null,"y":"é"}}',
        '{"list":[],"map":{"\\"":null},"struct%s":{"x":2,"y":""}}',
    ] == lines
    assert lines[2:] == list(make_json_lines(rows.slice(2), "UTC"))
    assert [(None, "{}", None)] == list(make_cells(rows.slice(1, 1), "UTC"))


def test_types_that_only_spark_prints_are_named():
    fields = {"a": pa.int64(), "b": pa.list_(pa.map_(pa.int32(), pa.string()))}
    assert "b" == find_unprintable_column(pa.schema(fields))
    assert (
        find_unprintable_column(
            pa.schema({"a": pa.null(), "b": pa.struct(fields={"x": pa.date32()})})
        )
        is None
    )
    assert "t" == find_unprintable_column(pa.schema({"t": pa.time32("s")}))
