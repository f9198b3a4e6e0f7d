"""The ranges that a predicate allows; uncertain parts allow everything."""

from __future__ import annotations

from decimal import Decimal

import pytest

from reconciler.layout.curves.query_boxes import MAX_BOXES, ValueRange, find_boxes

ONE = ValueRange(low=1, high=1)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a = 1", ({"a": (ONE,)},)),
        ("1 = a", ({"a": (ONE,)},)),
        ("`A`=1", ({"a": (ONE,)},)),
        ("a <=> 1L", ({"a": (ONE,)},)),
        ("s.a < 2", ({"s.a": (ValueRange(high=2, excludes_high=True),)},)),
        ("2 < a", ({"a": (ValueRange(low=2, excludes_low=True),)},)),
        ("a >= -1.50", ({"a": (ValueRange(low=Decimal("-1.5")),)},)),
        (
            "a between 1 and 3 and b = 1",
            ({"a": (ValueRange(low=1), ValueRange(high=3)), "b": (ONE,)},),
        ),
        (
            "a > 1 and a < 3",
            (
                {
                    "a": (
                        ValueRange(low=1, excludes_low=True),
                        ValueRange(high=3, excludes_high=True),
                    )
                },
            ),
        ),
        ("a = 1 or b = 1", ({"a": (ONE,)}, {"b": (ONE,)})),
        ("(a = 1 or b = 1) and c = 1", ({"a": (ONE,), "c": (ONE,)}, {"b": (ONE,), "c": (ONE,)})),
        ("a in (1, 'x')", ({"a": (ONE,)}, {"a": (ValueRange(low="x", high="x"),)})),
        ("a like 'x_y%'", ({"a": (ValueRange(low="x", high="x\U0010ffff"),)},)),
        ("a like 'xy'", ({"a": (ValueRange(low="xy", high="xy"),)},)),
        (r"a = 'it\'s'", ({"a": (ValueRange(low="it's", high="it's"),)},)),
        ("a = date '2026-01-01'", ({"a": (ValueRange(low="2026-01-01", high="2026-01-01"),)},)),
        ("a = true", ({"a": (ValueRange(low=True, high=True),)},)),
    ],
)
def test_plain_comparisons_limit_columns(where, expected):

    assert expected == find_boxes(where)


@pytest.mark.parametrize(
    "where",
    [
        "f(a) = 1",
        "a + 1 = 2",
        "a = 1 + 2",
        "a = b",
        "a != 1",
        "a <> 1",
        "not a = 1",
        "not (a = 1 and b = 2)",
        "a not in (1, 2)",
        "a not between 1 and 2",
        "a is null",
        "a = null",
        "a in (1, null)",
        "a = x'00'",
        "a < cast('nan' as double)",
        "cast(a as string) = '1'",
        "a = 'it''s'",
        "a like '%x'",
        "a like concat('x', '%')",
        "a in (select 1)",
        "a = 1 or f(b)",
        "a = 1 is true",
        "a = 1 = b",
        "case when a = 1 then b = 2 end",
        "case when a = 1 and b = 2 then c end and d = 1",
        "a = ",
        "a = 1)",
        "(a = 1",
        "a = 'x",
        "a -- = 1",
        "",
        "§",
        "a in (" + ", ".join(map(str, range(MAX_BOXES + 1))) + ")",
    ],
)
def test_other_predicates_limit_nothing(where):

    assert ({},) == find_boxes(where)


@pytest.mark.parametrize(
    "where",
    [
        "a = 1 and f(b) = 2",
        "f(b, 1) = 2 and a = 1",
        "a = 1 and not (b = 1 or c = 2)",
        "x between f(1) and f(2) and a = 1",
        "a = 1 and (b = 1 or f(c))",
        "a = 1 and c is not null",
        "a = 1 and c in (select x from y where z = 1 and v = 2)",
    ],
)
def test_known_side_of_an_and_limits_columns(where):

    assert ({"a": (ONE,)},) == find_boxes(where)


def test_too_many_alternatives_are_ignored():
    nine = "in (1, 2, 3, 4, 5, 6, 7, 8, 9)"

    assert 9 == len(find_boxes(f"a {nine} and b {nine}"))
