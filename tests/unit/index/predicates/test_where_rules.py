"""What Spark refuses in a WHERE although its parser takes it."""

from __future__ import annotations

import pytest

from reconciler.index.predicates.where_rules import find_where_problem
from tests.sql_conditions import FORBIDDEN_AFTER_WHERE, TAKEN_AFTER_WHERE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("count(*) > 1", "WHERE allows no aggregate: count() at character 1"),
        ("id = 1 AND (a OR Sum (b) > 1)", "WHERE allows no aggregate: Sum() at character 18"),
        ("x = first(y)", "WHERE allows no aggregate: first() at character 5"),
        (
            "f(a) over (partition by b) = 1",
            "WHERE allows no window: over (…) at character 6",
        ),
        ("row_number() = 1", "WHERE allows no window function: row_number() at character 1"),
        (
            "a between :low and 3",
            "the parameter :low has no value at character 11; write the value",
        ),
        ("a = ?", "the parameter ? has no value at character 5; write the value"),
        ("a = = count(b)", "is not an SQL condition: unexpected = at character 5"),
    ],
)
def test_what_is_forbidden_after_where_is_named_with_its_character(text, problem):
    found = find_where_problem(text)

    assert found is not None
    assert found.endswith(problem)


@pytest.mark.parametrize("text", FORBIDDEN_AFTER_WHERE)
def test_every_form_that_is_forbidden_after_where_is_an_error(text):
    assert find_where_problem(text) is not None


@pytest.mark.parametrize("text", [*TAKEN_AFTER_WHERE, "their_count(a) > 1", "db.count(a) > 1"])
def test_a_form_that_spark_may_take_is_no_error(text):
    assert find_where_problem(text) is None
