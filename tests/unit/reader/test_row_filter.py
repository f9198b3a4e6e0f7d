"""Rows for which a plain condition is true, without Spark; ``tests/spark`` asks Spark, too."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest

from reconciler.reader.plain_condition import can_filter_rows, filter_rows, parse_plain_condition

COLUMNS = {
    "row": [0, 1, 2, 3],
    "n": pa.array([1, None, 3, -1], pa.int32()),
    "s": ["a", None, "ab\nc", ""],
    "f": pa.array([0.1, None, float("nan"), -2.0], pa.float32()),
    "d": [0.1, None, float("nan"), 5.0],
    "m": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0)], pa.decimal128(9, 2)),
    "day": [dt.date(2026, 1, 1), None, dt.date(2026, 2, 1), dt.date(1999, 1, 1)],
}
ROWS = pa.record_batch(COLUMNS)
SCAN = SimpleNamespace(table_schema=ROWS.schema, partition_schema=pa.schema([]))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n = 1 or n > 2", [0, 2]),
        ("not n = 1", [2, 3]),
        ("n <=> 1 or n is null", [0, 1]),
        ("N in (3, -1)", [2, 3]),
        ("n not between 0 and 2", [2, 3]),
        ("s like 'a%c'", [2]),
        ("s > ''", [0, 2]),
        ("d >= 5", [2, 3]),  # to Spark NaN is the greatest number
        ("d < 5 or f > 100", [0, 2]),
        ("not d > 5", [0, 3]),
        ("f = 0.1", []),  # compared as doubles
        ("d = 0.1 and m > 1", [0]),
        ("m in (-2.25, 0.0)", [2, 3]),
        ("day < '2026-02-01' and day is not null", [0, 3]),
    ],
)
def test_rows_are_those_that_spark_leaves(where, rows):
    predicate = parse_plain_condition(where, SCAN)
    assert predicate is not None
    assert can_filter_rows(predicate, SCAN)
    assert rows == filter_rows(ROWS, predicate).column("row").to_pylist()


@pytest.mark.parametrize(
    "where",
    [
        "m > 1.005", "m < 123456789", "f = 16777217", "m = 1e0",
        "n like 1", "d not like 5.0", "m like 1.5", "day like '2026-01-01'",
        f"d in (0{', 1' * 10})",
    ],
)  # fmt: skip
def test_what_spark_casts_or_looks_up_in_a_set_is_left_to_it(where):
    predicate = parse_plain_condition(where, SCAN)
    assert predicate is None or not can_filter_rows(predicate, SCAN)
