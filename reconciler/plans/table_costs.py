"""What the plan of a table costs and saves, as its document says it."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from reconciler.lazy_dataclass import dataclass
from reconciler.prices import Prices

_OPTIONAL: Any = {"optional": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCosts:
    """What declared queries read in a day, before and after the plan.

    ``counted`` of ``queries`` declared ones are in these figures: those with ``runs``, or each once
    if none has any. ``runs_per_day``: None if none has any. ``per_day_before``, ``per_day_after``:
    money; None without ``runs`` or without a price of scans.
    """

    queries: int
    counted: int
    runs_per_day: float | None = field(default=None, metadata=_OPTIONAL)
    bytes_before: int
    bytes_after: int
    per_day_before: float | None = field(default=None, metadata=_OPTIONAL)
    per_day_after: float | None = field(default=None, metadata=_OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCosts:
    """What the steps that are applied cost and save, in the currency of ``prices``.

    ``freed_per_month``: storage of the removed files. ``rewrite_once``: the work of rewriting.
    ``added_per_month``: storage of the files that a rewrite adds, until a clean removes those that
    they replace. ``deleted_per_month``: storage of deleted partitions, which a later clean frees.
    ``pays_back_days``: after how many days cheaper reads have paid for the rewrite. A field is None
    where there is nothing to pay for or no price.
    """

    prices: Prices
    freed_per_month: float | None = field(default=None, metadata=_OPTIONAL)
    rewrite_once: float | None = field(default=None, metadata=_OPTIONAL)
    added_per_month: float | None = field(default=None, metadata=_OPTIONAL)
    deleted_per_month: float | None = field(default=None, metadata=_OPTIONAL)
    queries: QueryCosts | None = field(default=None, metadata=_OPTIONAL)
    pays_back_days: float | None = field(default=None, metadata=_OPTIONAL)
