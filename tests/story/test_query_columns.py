"""What a plan says of queries on columns that the table lacks, and what it advises for a limit."""

from __future__ import annotations

import pytest

import reconciler
from tests.crash.drill import NOW
from tests.plain_tables import make_orders, write_table

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 40KiB, small: 1KiB}}
{more}
  queries:
    - {{name: one customer, where: "{where}", maxScan: 1%}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
BY_CUSTOMER = "  clustering: {columns: [customer], curve: linear, when: {overlapAbove: 1000}}"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("queries") / "table", {"": make_orders(4_000, 8)})


@pytest.fixture
def warned(table, tmp_path):
    """The plan's warnings of a rule, for a query and a clustering block."""

    def of(rule, where, more=BY_CUSTOMER):
        spec = tmp_path / "spec.yaml"
        spec.write_text(SPEC.format(path=table, where=where, more=more))
        (found,) = reconciler.plan(reconciler.load_specs(spec), now=NOW).tables
        assert (None, ()) == (found.error, found.refusals)
        return [note.because for note in found.warnings if note.rule == rule]

    return of


@pytest.mark.parametrize("more", [BY_CUSTOMER, ""], ids=["clustered", "not clustered"])
def test_a_misspelt_column_of_a_query_is_a_warning_with_the_column_that_was_meant(warned, more):
    (said,) = warned("columns", "custmer = 4711 and state = 'new'", more)

    assert said == (
        "query 'one customer': the table has no column 'custmer'; did you mean 'customer'?"
    )


def test_a_column_that_nobody_can_guess_is_told_the_columns_there_are(warned):
    (said,) = warned("columns", "zz = 1 or zz = 2")

    assert said == (
        "query 'one customer': the table has no column 'zz'; its columns are id, customer, amount, "
        "state"
    )


@pytest.mark.parametrize("where", ["CUSTOMER = 4711", "user = 'me'", "amount > 1.5 or f(x) = 1"])
def test_no_column_is_missed_that_spark_finds_or_that_is_not_understood(where, warned):
    assert [] == warned("columns", where)


def test_a_column_that_is_declared_already_is_not_advised(warned):
    (said,) = warned("maxScan", "customer < 3900")

    assert said.startswith(
        "no layout on customer brings query 'one customer' below 1 % (maxScan): "
    )
    assert said.endswith("; the query's columns are already clustered; raise its maxScan")


def test_a_column_that_the_query_bounds_and_nobody_declared_is_advised_by_name(warned):
    (said,) = warned("maxScan", "Amount > 990 and customer < 3900")

    assert said.endswith("; raise its maxScan, or declare amount under clustering.columns too")


def test_a_query_that_bounds_nothing_is_not_told_to_declare_columns(warned):
    (said,) = warned("maxScan", "length(state) = 3")

    assert said.endswith("; raise its maxScan; every OR branch must filter on a clustering column")


def test_a_limit_on_a_misspelt_column_asks_for_the_name_to_be_put_right(warned):
    (said,) = warned("maxScan", "custmer = 4711")

    assert said.endswith("; correct the names in its predicate first")
