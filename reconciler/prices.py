"""Prices of storage, scans and rewrites as text, and amounts of money.

The schema of environments has the forms of the texts; what has no such form is a ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from reconciler.lazy_dataclass import dataclass
from reconciler.units import SIZE_UNITS, parse_size

GB: Final = 10**9
TB: Final = 10**12
DAYS_A_MONTH: Final = 365 / 12
DEFAULT_THROUGHPUT: Final = 13_000_000
"""Bytes a second that a core rewrites: as measured on Spark by ``tests/bench/rewrite_speed``."""

CORE_HOUR: Final = "core-hour"
_SECONDS_AN_HOUR: Final = 3600
_PRICE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([A-Z]{3})/([A-Za-z-]+)")
_DAYS: Final = {"hour": 1 / 24, "day": 1, "week": 7, "month": DAYS_A_MONTH}
_RUNS: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?/ ?(hour|day|week|month)")


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of a currency for one ``unit``."""

    amount: float
    currency: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of an environment in one currency; None: not declared.

    ``rewrite_per_tb``: of bytes that a clustering or a compaction reads.
    """

    currency: str
    storage_per_gb_month: float | None = field(default=None, metadata={"optional": True})
    scan_per_tb: float | None = field(default=None, metadata={"optional": True})
    rewrite_per_tb: float | None = field(default=None, metadata={"optional": True})

    def price_storage(self, size: float) -> float | None:
        """Return what bytes cost in a month."""
        return _multiply(self.storage_per_gb_month, size / GB)

    def price_scan(self, size: float) -> float | None:
        """Return what it costs to read bytes once."""
        return _multiply(self.scan_per_tb, size / TB)

    def price_rewrite(self, size: float) -> float | None:
        """Return what it costs to rewrite bytes once."""
        return _multiply(self.rewrite_per_tb, size / TB)


def parse_price(text: str) -> Price:
    """Return the price of a text.

    >>> parse_price("0.023 USD/GB-month")
    Price(amount=0.023, currency='USD', unit='GB-month')
    """
    match = _PRICE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no price; write one such as 5 USD/TB")
    amount, currency, unit = match.groups()
    return Price(float(amount), currency, unit)


def parse_prices(costs: Mapping[str, str]) -> Prices:
    """Return the ``costs`` of an environment, whose prices have one currency.

    >>> parse_prices({"storage": "0.023 USD/GB-month", "scan": "5 USD/TB"})
    Prices(currency='USD', storage_per_gb_month=0.023, scan_per_tb=5.0, rewrite_per_tb=None)
    >>> parse_prices({"compute": "0.05 USD/core-hour", "throughput": "10 MB/s"}).rewrite_per_tb
    1.388889
    """
    prices = {name: parse_price(costs[name]) for name in PRICED if name in costs}
    (currency,) = {price.currency for price in prices.values()}
    throughput = parse_throughput(costs.get("throughput"))
    return Prices(
        currency=currency,
        storage_per_gb_month=_find_amount(prices.get("storage"), GB, throughput),
        scan_per_tb=_find_amount(prices.get("scan"), TB, throughput),
        rewrite_per_tb=_find_amount(prices.get("compute"), TB, throughput),
    )


PRICED: Final = ("storage", "scan", "compute")
"""The fields of an environment's ``costs`` that are prices."""


def parse_throughput(text: str | None) -> int:
    """Return the bytes that a core rewrites in a second.

    >>> parse_throughput("20 MB/s"), parse_throughput(None)
    (20000000, 13000000)
    """
    return DEFAULT_THROUGHPUT if text is None else parse_size(text.removesuffix("/s").rstrip())


def parse_runs(text: str) -> float:
    """Return how often a query runs in a day.

    >>> parse_runs("40/day"), parse_runs("7 / week"), parse_runs("2/hour")
    (40.0, 1.0, 48.0)
    """
    match = _RUNS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no number of runs; write one such as 40/day")
    return float(match[1]) / _DAYS[match[2]]


def round_amount(amount: float) -> float:
    """Return an amount with four significant digits: no estimate knows more.

    >>> round_amount(94.12345), round_amount(1234567.0), round_amount(0.0)
    (94.12, 1235000.0, 0.0)
    """
    return float(f"{amount:.4g}")


def _find_amount(price: Price | None, size: int, throughput: int) -> float | None:
    """Return the price of ``size`` bytes in the price's own unit of time, without float noise."""
    if price is None:
        return None
    if price.unit == CORE_HOUR:
        amount = price.amount * size / throughput / _SECONDS_AN_HOUR
    else:
        amount = price.amount * size / SIZE_UNITS[price.unit.removesuffix("-month")]
    return float(f"{amount:.7g}")


def _multiply(price: float | None, units: float) -> float | None:
    return None if price is None else price * units
