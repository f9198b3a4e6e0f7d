"""Declared queries as boxes of shares of a sample's rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.curves.query_workload import build_query_boxes
from reconciler.layout.curves.sorted_sample import sort_sample


def sample_of(values, kind=None, name="a"):
    return sort_sample(pa.array(values, kind), name)


def declared_box(where, *seen):
    """Return the box of the declared query: by column, from and to."""
    found = build_query_boxes([where], seen)
    return None if found is None else list(zip(found.low[:, 0], found.high[:, 0], strict=True))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a = 2", (0.2, 0.3)),
        ("a < 2", (0.0, 0.2)),
        ("a <= 2", (0.0, 0.3)),
        ("a > 2", (0.3, 1.0)),
        ("a >= 2", (0.2, 1.0)),
        ("a between 2 and 4", (0.2, 0.5)),
        ("a > 2 and a <= 4.5", (0.3, 0.5)),
        ("a = 99", (1.0, 1.0)),
        ("A = '2'", (0.2, 0.3)),
    ],
)
def test_range_is_converted_to_shares_of_the_rows(where, expected):

    assert [expected] == declared_box(where, sample_of(range(10)))


@pytest.mark.parametrize(
    ("values", "kind", "where"),
    [
        ([False, True], None, "a = true"),
        (["b", "é"], None, "a = 'é'"),
        ([b"b", b"c"], None, "a = 'c'"),
        ([date(2026, 1, 1), date(2026, 1, 2)], None, "a = '2026-01-02'"),
        ([date(2026, 1, 1), date(2026, 1, 2)], None, "a >= date '2026-01-02'"),
        ([datetime(2026, 1, d, tzinfo=UTC) for d in (1, 2)], None, "a > '2026-01-01 12:00:00'"),
        ([0, 86_400_000_000], pa.timestamp("us"), "a > '1970-01-01T12:00:00'"),
        ([Decimal("1.10"), Decimal("1.20")], pa.decimal128(9, 2), "a > 1.15"),
        ([0.5, 1.5], None, "a >= 1"),
        ([0.5, 1.5], pa.float32(), "a >= 1"),
    ],
)
def test_literals_are_cast_to_the_column_type(values, kind, where):

    assert [(0.5, 1.0)] == declared_box(where, sample_of(values, kind))


def test_number_does_not_limit_a_text_column():
    assert declared_box("a = 123456789012345678901", sample_of(["x", "y"])) is None


def test_nulls_are_outside_all_ranges():

    assert [(0.25, 0.5)] == declared_box("a >= 2", sample_of([1, 2, None, None]))


@pytest.mark.parametrize("where", ["b = 1", "a = 'x'", "a = 1 or b = 1", "f(a) = 1"])
def test_query_that_limits_no_column_is_ignored(where):

    assert declared_box(where, sample_of(range(10))) is None


def test_similar_queries_have_the_weight_of_the_declared_one():
    seen = [sample_of(range(100)), sample_of(range(100), name="b")]

    found = build_query_boxes(["a between 10 and 19", "b = 5"], seen)

    sides = np.round(found.high - found.low, 9)
    of_a = np.flatnonzero(sides[1] == 3)
    assert {0.1} == set(sides[0, of_a])
    assert np.ptp(found.low[0, of_a]) > 0.8
    assert np.isclose(2, found.weights[of_a].sum())
    assert np.isclose(1, found.weights[of_a[0]])
    assert np.isclose(4, found.weights.sum())
