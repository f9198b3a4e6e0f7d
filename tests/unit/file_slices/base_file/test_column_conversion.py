"""Convert columns to the types that base files store."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.base_file.column_conversion import convert_column

MICROS, MILLIS = pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")


def required(name, kind):
    return pa.field(name, kind, nullable=False)


@pytest.mark.parametrize(
    ("have", "wanted", "before", "after"),
    [
        (pa.int32(), pa.int64(), [1, None], [1, None]),
        (pa.int32(), pa.time32("ms"), [1000, None], [time(0, 0, 1), None]),
        (pa.int64(), pa.time64("us"), [1000000, None], [time(0, 0, 1), None]),
        (pa.binary(), pa.binary(2), [b"ab", None], [b"ab", None]),
        (pa.large_string(), pa.string(), ["a", None], ["a", None]),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None], ["a", None]),
    ],
)
def test_values_become_those_of_the_file(have, wanted, before, after):
    found = convert_column(pa.array(before, have), wanted, "f")

    assert wanted == found.type
    assert after == found.to_pylist()


def test_a_timestamp_is_rounded_down_to_its_millisecond():
    moments = pa.array([-1, 1999, None], pa.int64()).view(MICROS)
    expected = [
        datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
        None,
    ]

    assert expected == convert_column(moments, MILLIS, "f").to_pylist()


INNER = pa.struct([("m", pa.map_(pa.string(), pa.int32()))])
NESTED = [
    (
        pa.struct([("a", pa.int32()), ("b", pa.binary())]),
        pa.struct([("a", pa.int32()), required("b", pa.binary(2))]),
        [{"a": 1, "b": b"xy"}, None, {"a": None, "b": b"zz"}, {"a": 2, "b": b"ab"}],
    ),
    (
        pa.list_(pa.binary()),
        pa.list_(required("element", pa.binary(2))),
        [[b"xy"], None, [], [b"ab", b"cd"]],
    ),
    (
        pa.map_(pa.string(), pa.binary()),
        pa.map_(pa.string(), required("value", pa.binary(2))),
        [[("a", b"xy")], None, [], [("b", b"ab"), ("c", b"cd")]],
    ),
    (
        pa.struct([("l", pa.list_(INNER))]),
        pa.struct([("l", pa.list_(required("element", INNER)))]),
        [{"l": [{"m": [("a", 1)]}]}, {"l": None}, {"l": [{"m": None}, {"m": []}]}, None],
    ),
]


@pytest.mark.parametrize(("have", "wanted", "values"), NESTED)
@pytest.mark.parametrize("start", [0, 1, 3, 4])
def test_nested_columns_get_the_nullability_of_the_file_and_keep_their_values(
    have, wanted, values, start
):
    column = pa.array(values, have).slice(start)
    found = convert_column(column, wanted, "f")
    found.validate(full=True)

    assert found.type.equals(wanted)
    assert values[start:] == found.to_pylist()


@pytest.mark.parametrize(
    ("have", "wanted", "values"),
    [
        (pa.string(), pa.int32(), ["1"]),
        (pa.binary(), pa.binary(2), [b"abc"]),
        (pa.list_(pa.string()), pa.list_(pa.int32()), [["1"]]),
    ],
)
def test_a_value_that_does_not_fit_names_the_column(have, wanted, values):
    with pytest.raises(UnsupportedError, match=r"^f.parquet, column c"):
        convert_column(pa.array(values, have), wanted, "f.parquet, column c")
