"""Plans, results and statuses say what they cost and save, and nothing without prices."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from reconciler.executor.outcomes import ClusterOutcome
from reconciler.executor.result import StepOutcome
from reconciler.plans.model import Impact, TablePlan
from reconciler.plans.table_costs import QueryCosts, TableCosts
from reconciler.prices import Prices
from reconciler.render.costs import describe_costs, describe_result_costs, describe_storage_sums
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.prometheus import status_prometheus
from reconciler.render.result import result_json, result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.status import status_text
from reconciler.render.terminal import Terminal
from reconciler.status.model import StorageCosts
from tests.unit.render import test_plan_markdown as plans
from tests.unit.render import test_prometheus as statuses
from tests.unit.render import test_result as results

GB, TIB = 10**9, 2**40
USD = Prices(currency="USD", storage_per_gb_month=0.023, scan_per_tb=5.0, rewrite_per_tb=2.0)
IMPACT = Impact(files_removed=1, bytes_removed=4 * TIB, bytes_rewritten=TIB)
READS = QueryCosts(
    queries=2,
    counted=2,
    runs_per_day=41.0,
    bytes_before=100 * GB,
    bytes_after=50 * GB,
    per_day_before=0.5,
    per_day_after=0.25,
)
COSTS = TableCosts(
    prices=USD,
    freed_per_month=101.2,
    rewrite_once=2.199,
    added_per_month=25.29,
    queries=READS,
    pays_back_days=8.796,
)


def table(name: str = "t", costs: TableCosts | None = COSTS) -> TablePlan:
    return plans.table(name, impact=IMPACT, costs=costs)


def test_a_table_says_what_it_frees_costs_and_saves():
    assert describe_costs([table()]) == (
        "frees 4.0 TiB, 101 USD a month; rewrites 1.0 TiB once, about 2.2 USD; the new files add "
        "about 25 USD a month until a clean removes those they replace; declared queries read 50 % "
        "less, about 0.25 USD a day less; the rewrite pays back in about 9 days"
    )


def test_reads_that_become_dearer_do_not_pay_back():
    more = replace(READS, bytes_after=150 * GB, per_day_after=0.75)

    assert describe_costs(
        [table(costs=TableCosts(prices=USD, rewrite_once=1.0, queries=more))]
    ) == (
        "rewrites 1.0 TiB once, about 1 USD; declared queries read 50 % more, about 0.25 USD a day "
        "more"
    )


def test_small_savings_are_not_made_of_rounded_amounts():
    reads = replace(READS, bytes_before=12_346 * GB, bytes_after=12_344 * GB)
    rounded = replace(reads, per_day_before=61.73, per_day_after=61.72)  # 10 GB, by these

    assert describe_costs(
        [table(costs=TableCosts(prices=USD, rewrite_once=1.0, queries=rounded))]
    ).endswith(
        "read about as much as before, about 0.01 USD a day less; the rewrite pays back in about 3 "
        "months"
    )


def test_results_in_several_currencies_are_clauses():
    one = results.table(outcomes=(replace(results.DONE, bytes=np.int64(TIB)),), prices=USD)
    two = replace(one, prices=replace(USD, currency="EUR"))

    assert "25 EUR a month; 1.0 TiB freed, 25 USD a month" in describe_result_costs([one, two])


def test_queries_without_runs_are_asked_for_them():
    bare = QueryCosts(queries=3, counted=3, bytes_before=100, bytes_after=59)

    assert describe_costs([table(costs=TableCosts(prices=USD, queries=bare))]) == (
        "declared queries read 41 % less; declare their runs, such as 40/day, to price it"
    )
    assert "with runs (2 of 3)" in describe_costs(
        [table(costs=replace(COSTS, queries=replace(READS, queries=3)))]
    )


def test_several_tables_are_summed_by_currency():
    euros = replace(COSTS, prices=replace(USD, currency="EUR"), queries=None)
    one = TableCosts(prices=USD, freed_per_month=1.0)
    found = describe_costs([table("a", one), table("b", one), table("c", euros), table("d", None)])

    assert found == (
        "frees 4.0 TiB, 101 EUR a month; rewrites 1.0 TiB once, about 2.2 EUR; the new files add "
        "about 25 EUR a month until a clean removes those they replace; "
        "frees 8.0 TiB, 2 USD a month"
    )


def test_a_plan_of_several_tables_sums_up_and_one_table_speaks_for_itself():
    costs = TableCosts(prices=USD, freed_per_month=1.0)
    one = plan_text(plans.plan(table("a", costs)), Terminal(width=200))
    two = plan_text(plans.plan(table("a", costs), table("b", costs)), Terminal(width=200))

    assert "  = costs  frees 4.0 TiB, 1 USD a month" in one.splitlines()
    assert "Costs:" not in one
    assert "Costs: frees 8.0 TiB, 2 USD a month." in two.splitlines()


def test_a_comment_has_the_sum_and_a_price_behind_what_each_table_frees():
    comment = plan_markdown(plans.plan(table()))

    assert "\n**Costs**: frees 4.0 TiB, 101 USD a month; " in comment
    assert "| **4.0&nbsp;TiB**,&nbsp;101&nbsp;USD&nbsp;a&nbsp;month |" in comment


def test_without_prices_nothing_is_said_of_money():
    bare = plans.plan(table(costs=None))
    shown = plan_text(bare, Terminal()) + plan_markdown(bare)
    shown += result_text(results.result(results.table(outcomes=(results.DONE,))), Terminal())
    shown += result_markdown(results.result(results.table(outcomes=(results.DONE,))))
    shown += status_text([statuses.table()], Terminal())

    assert "cost" not in shown.lower()
    assert "cost" not in status_prometheus([statuses.table()], observed_at=statuses.NOW)


def test_a_result_says_what_was_freed_and_rewritten():
    rewritten = StepOutcome(
        kind="cluster", how="completed", instant="1", rewritten=ClusterOutcome(bytes_read=TIB)
    )
    outcomes = (rewritten, replace(results.DONE, bytes=np.int64(4 * TIB)))
    done = results.result(results.table(outcomes=outcomes, prices=USD))
    text = result_text(done, Terminal(width=200))
    said = "4.0 TiB freed, 101 USD a month; 1.0 TiB rewritten once, about 2.2 USD"

    assert f"  costs  {said}" in text.splitlines()
    assert "Costs:" not in text
    both = result_text(replace(done, tables=(*done.tables, *done.tables)), Terminal(width=200))
    assert "Costs: 8.0 TiB freed, 202 USD a month; 2.0 TiB rewritten once, about 4.4 USD." in (
        both.splitlines()
    )
    assert f"\n**Costs**: {said}.\n" in result_markdown(done)
    assert json.loads(result_json(done))["tables"][0]["costs"] == {
        "prices": {
            "currency": "USD",
            "storagePerGbMonth": 0.023,
            "scanPerTb": 5.0,
            "rewritePerTb": 2.0,
        },
        "bytesRewritten": TIB,
        "freedPerMonth": 101.2,
        "rewriteOnce": 2.199,
    }


def test_a_status_says_what_storage_costs_and_sums_it_up():
    dear = StorageCosts(currency="USD", per_month=100.0, reclaimable_per_month=25.0)
    free = StorageCosts(currency="USD", per_month=0.0, reclaimable_per_month=None)
    tables = [statuses.table("a", costs=dear), statuses.table("b", costs=free)]
    said = "storage costs 100 USD a month, of which the plan would free 25 USD"

    assert f"      {said}" in status_text(tables, Terminal(width=200)).splitlines()
    assert describe_storage_sums([dear, dear, None, free]) == (
        "; storage costs 200 USD a month, of which the plan would free 50 USD"
    )
    found = status_prometheus(tables, observed_at=statuses.NOW)
    assert {100.0, 0.0} == set(statuses.metric(found, "reconciler_storage_cost_per_month").values())
