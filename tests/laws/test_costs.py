"""Laws of money: no amount is negative, more bytes never cost less, and words keep the amount."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.costs import compute_costs
from reconciler.plans.model import Impact
from reconciler.prices import Prices, parse_prices, parse_runs
from reconciler.render.costs import CostSums, format_money
from reconciler.spec.model import Query
from tests.selection import examples
from tests.unit.render.test_plan_markdown import table

EXAMPLES = examples(15, many=1000)
sizes = st.integers(0, 10**18)
prices = st.builds(
    Prices,
    currency=st.just("USD"),
    storage_per_gb_month=st.none() | st.floats(0, 1e6),
    scan_per_tb=st.none() | st.floats(0, 1e6),
    rewrite_per_tb=st.none() | st.floats(0, 1e6),
)
runs = st.none() | st.sampled_from(["0/day", "1/hour", "3/week", "0.5/month"])


@settings(max_examples=EXAMPLES)
@given(prices, sizes, sizes, sizes, sizes, runs)
def test_no_amount_is_negative_and_a_payback_needs_cheaper_reads(
    given_prices, removed, rewritten, before, after, often
):
    figures = {"query": "q", "filesBefore": 1, "filesAfter": 1, "error": 0.1}
    made = table(
        "t",
        impact=Impact(files_removed=1, bytes_removed=removed, bytes_rewritten=rewritten),
        predictions=({**figures, "bytesBefore": before, "bytesAfter": after},),
    )
    found = compute_costs(made, given_prices, [Query(name="q", where="a = 1", runs=often)])
    amounts = [found.freed_per_month, found.rewrite_once, found.added_per_month]
    amounts += [found.deleted_per_month, found.pays_back_days]
    total = CostSums(currency="USD")
    total.add(made, found)

    assert all(amount is None or amount >= 0 for amount in amounts)
    assert found.pays_back_days is None or after < before
    assert not re.search(r"-\d|nan|inf", total.sentence)


@settings(max_examples=EXAMPLES)
@given(prices, sizes, sizes)
def test_more_bytes_never_cost_less(given_prices, one, other):
    less, more = sorted((one, other))
    for price in (
        given_prices.price_storage,
        given_prices.price_scan,
        given_prices.price_rewrite,
    ):
        amounts = price(less), price(more)
        assert None in amounts or amounts[0] <= amounts[1]


@settings(max_examples=EXAMPLES)
@given(st.floats(0.01, 1e12))
def test_words_keep_an_amount_within_a_twentieth(amount):
    said = float(format_money(amount, "USD").removesuffix(" USD").replace(" ", ""))

    assert said == pytest.approx(amount, rel=0.051, abs=0.0051)


@settings(max_examples=EXAMPLES)
@given(st.integers(1, 10**6), st.sampled_from(["GB", "GiB", "TB", "TiB", "MB", "MiB"]))
def test_units_of_a_price_are_those_of_sizes(amount, unit):
    size = {"G": 3, "T": 4, "M": 2}[unit[0]]
    size = 1024**size if "i" in unit else 1000**size
    found = parse_prices({"storage": f"{amount} CHF/{unit}-month", "scan": f"{amount} CHF/{unit}"})

    assert found.price_storage(size) == pytest.approx(amount, rel=1e-5)
    assert found.price_scan(size) == pytest.approx(amount, rel=1e-5)


def test_a_core_hour_is_the_price_of_what_a_core_rewrites_in_it():
    found = parse_prices({"compute": "0.05 USD/core-hour", "throughput": "20 MB/s"})

    assert found.price_rewrite(20_000_000 * 3600) == pytest.approx(0.05)
    assert parse_prices({"compute": "0.05 USD/core-hour"}).rewrite_per_tb == pytest.approx(
        1.0684, rel=1e-4
    )


def test_runs_of_all_units_are_runs_of_a_day():
    assert [24.0, 1.0, 1 / 7] == [parse_runs(f"1/{unit}") for unit in ("hour", "day", "week")]
    assert parse_runs("365/month") == pytest.approx(12)
