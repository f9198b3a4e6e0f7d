"""What a plan costs and saves: by hand, from bytes, prices and runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.planners.costs import add_costs, compute_costs
from reconciler.plans.model import Impact, Note, TablePlan
from reconciler.plans.partition_deletion import DeletePartitionStep, ExpiredPartition
from reconciler.plans.table_costs import QueryCosts, TableCosts
from reconciler.prices import Prices
from reconciler.spec.model import Query, TableSpec
from tests.unit.render.test_plan_markdown import table

GB, TB = 10**9, 10**12
PRICES = Prices(currency="USD", storage_per_gb_month=0.02, scan_per_tb=5.0, rewrite_per_tb=2.0)
QUERIES = (
    Query(name="often", where="a = 1", runs="40/day"),
    Query(name="rarely", where="a = 2", runs="7/week"),
    Query(name="now and then", where="a = 3"),
)


def predictions(before: int, after: int) -> tuple[dict[str, object], ...]:
    figures = {"filesBefore": 9, "filesAfter": 4, "error": 0.1}
    sizes = {"bytesBefore": before, "bytesAfter": after}
    return tuple({"query": query.name, **figures, **sizes} for query in QUERIES)


def plan(**fields) -> TablePlan:
    impact = Impact(files_removed=1, bytes_removed=500 * GB, bytes_rewritten=3 * TB)
    return table("t", **{"impact": impact, **fields})


def costs(prices: Prices = PRICES, queries: tuple[Query, ...] = QUERIES, **fields) -> TableCosts:
    return compute_costs(plan(**fields), prices, queries)


def test_removed_files_are_priced_by_the_month_and_a_rewrite_once():
    found = costs()

    assert (10.0, 6.0, 60.0) == (found.freed_per_month, found.rewrite_once, found.added_per_month)
    assert (None, None) == (found.queries, found.pays_back_days)


def test_a_rewrite_pays_back_by_reads_as_often_as_queries_run():
    found = costs(predictions=predictions(TB, TB // 4))

    assert found.queries == QueryCosts(
        queries=3,
        counted=2,
        runs_per_day=41.0,
        bytes_before=41 * TB,
        bytes_after=41 * TB // 4,
        per_day_before=205.0,
        per_day_after=51.25,
    )
    assert found.pays_back_days == pytest.approx(6 / (205 - 51.25), rel=1e-3)


def test_a_small_saving_pays_back_by_bytes_and_not_by_rounded_amounts():
    found = costs(predictions=predictions(12_346 * GB, 12_345 * GB))

    assert found.pays_back_days == pytest.approx(6 / (41 * 0.005), rel=1e-3)


def test_dearer_reads_never_pay_back():
    found = costs(predictions=predictions(TB, 2 * TB))

    assert found.queries is not None
    assert found.pays_back_days is None


def test_queries_without_runs_have_a_share_and_no_price():
    found = costs(queries=QUERIES[2:], predictions=predictions(TB, TB // 4)).queries

    assert found == QueryCosts(queries=1, counted=1, bytes_before=TB, bytes_after=TB // 4)


def test_a_refused_rewrite_changes_no_read():
    refused = (Note("maxRewrite", "too much", step="cluster"),)

    assert costs(predictions=predictions(TB, TB // 4), refusals=refused).queries is None


def test_a_blocked_table_costs_nothing():
    assert costs(refusals=(Note("protected", "no"),)) == TableCosts(prices=PRICES)


def test_deleted_partitions_cost_until_a_clean():
    partition = ExpiredPartition(
        path="p", files=1, bytes=50 * GB, rows=1, date=None, last_commit="1", because="old"
    )
    found = costs(steps=(DeletePartitionStep(partitions=(partition,)),), impact=Impact())

    assert found == TableCosts(prices=PRICES, deleted_per_month=1.0)


@pytest.mark.parametrize("name", ["storage_per_gb_month", "scan_per_tb", "rewrite_per_tb"])
def test_what_has_no_price_has_no_amount(name):
    found = costs(replace(PRICES, **{name: None}), predictions=predictions(TB, TB // 4))
    reads = found.queries

    assert reads is not None
    assert {
        "storage_per_gb_month": (None, 6.0, None, 205.0),
        "scan_per_tb": (10.0, 6.0, 60.0, None),
        "rewrite_per_tb": (10.0, None, 60.0, 205.0),
    }[name] == (
        found.freed_per_month,
        found.rewrite_once,
        found.added_per_month,
        reads.per_day_before,
    )
    assert (found.pays_back_days is None) == (name != "storage_per_gb_month")


def test_without_prices_a_plan_stays_as_it_is():
    made = plan()

    assert add_costs(made, TableSpec(name="t", path="/t")) is made
