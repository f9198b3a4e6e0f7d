"""Say in money what the plan of a table costs and saves; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.plans.added_bytes import estimate_bytes_added
from reconciler.plans.model import TablePlan
from reconciler.plans.partition_deletion import deleted_partitions
from reconciler.plans.refused_steps import find_refused_kinds, list_applied_steps
from reconciler.plans.table_costs import QueryCosts, TableCosts
from reconciler.prices import Prices, round_amount
from reconciler.spec.model import Query, TableSpec

#: kinds of steps that change what queries read
_REWRITING = frozenset(("cluster", "compact"))


def add_costs(plan: TablePlan, spec: TableSpec) -> TablePlan:
    """Return a plan with what its applied steps cost and save, if the spec has prices."""
    if spec.prices is None:
        return plan
    return replace(plan, costs=compute_costs(plan, spec.prices, spec.queries))


def compute_costs(plan: TablePlan, prices: Prices, queries: Sequence[Query]) -> TableCosts:
    """Return what the steps of a plan that are applied cost and save.

    Only predictions and the impact of the plan are used: nothing is read for it.
    """
    steps = list_applied_steps(plan)
    if not steps:
        return TableCosts(prices=prices)
    impact = plan.impact
    deleted = sum(partition.bytes for partition in deleted_partitions(steps))
    spent = prices.price_rewrite(impact.bytes_rewritten)
    added = estimate_bytes_added(plan)
    reads = _compute_reads(plan, prices, queries)
    return TableCosts(
        prices=prices,
        freed_per_month=_price(prices.price_storage(impact.bytes_removed), impact.bytes_removed),
        rewrite_once=_price(spent, impact.bytes_rewritten),
        added_per_month=_price(prices.price_storage(added), added),
        deleted_per_month=_price(prices.price_storage(deleted), deleted),
        queries=reads,
        pays_back_days=_find_payback(spent if impact.bytes_rewritten else None, reads, prices),
    )


def _price(amount: float | None, size: int) -> float | None:
    """Return a rounded amount; None if there are no bytes to pay for."""
    return None if amount is None or not size else round_amount(amount)


def _compute_reads(plan: TablePlan, prices: Prices, queries: Sequence[Query]) -> QueryCosts | None:
    """Return what queries read in a day; None if no step that is applied changes that."""
    by_name = {each["query"]: each for each in plan.predictions}
    is_changed = any(each["bytesBefore"] != each["bytesAfter"] for each in plan.predictions)
    if not is_changed or _REWRITING & find_refused_kinds(plan.refusals):
        return None
    predicted = [query for query in queries if query.name in by_name]
    counted = [query for query in predicted if query.runs is not None]
    runs = sum(query.runs_per_day or 0.0 for query in counted) if counted else None
    before = _sum_bytes(by_name, counted or predicted, "bytesBefore")
    after = _sum_bytes(by_name, counted or predicted, "bytesAfter")
    is_priced = runs is not None and prices.scan_per_tb is not None
    return QueryCosts(
        queries=len(predicted),
        counted=len(counted or predicted),
        runs_per_day=None if runs is None else round_amount(runs),
        bytes_before=round(before),
        bytes_after=round(after),
        per_day_before=round_amount(prices.price_scan(before) or 0.0) if is_priced else None,
        per_day_after=round_amount(prices.price_scan(after) or 0.0) if is_priced else None,
    )


def _sum_bytes(
    predictions: Mapping[str, Mapping[str, Any]], queries: Sequence[Query], key: str
) -> float:
    """Return the bytes of all runs of a day; a query without declared runs counts once."""
    total = 0.0
    for query in queries:
        runs = 1.0 if query.runs is None else query.runs_per_day or 0.0
        total += runs * predictions[query.name][key]
    return total


def _find_payback(rewrite: float | None, reads: QueryCosts | None, prices: Prices) -> float | None:
    """Return the days until cheaper reads have paid for a rewrite; None if they never do.

    Bytes are compared, because amounts are rounded.
    """
    if rewrite is None or reads is None or reads.per_day_before is None:
        return None
    saved = prices.price_scan(reads.bytes_before - reads.bytes_after) or 0.0
    return round_amount(rewrite / saved) if saved > 0 else None
