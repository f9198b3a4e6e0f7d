"""What plans, results and statuses cost and save, in words.

Amounts have two or three significant digits, and estimates say "about".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import TablePlan
from reconciler.plans.table_costs import TableCosts
from reconciler.prices import DAYS_A_MONTH
from reconciler.render import words
from reconciler.render.terminal import Terminal

if TYPE_CHECKING:
    from reconciler.executor.result import TableResult
    from reconciler.status.model import StorageCosts

_LEAST_AMOUNT: Final = 0.01
_THREE_DIGITS: Final = 100
_TWO_MONTHS: Final = 2 * DAYS_A_MONTH
_TWO_YEARS: Final = 2 * 365
_MAX_YEARS: Final = 100


@dataclass(slots=True, kw_only=True)
class CostSums:
    """The costs of several tables in one currency; an amount is None if no table has it.

    ``freed``, ``added``, ``deleted``: storage of a month; ``rewritten``: once. ``freed_bytes``,
    ``rewritten_bytes``: the bytes that these amounts are of. ``read_before``, ``read_after``: bytes
    that the ``counted`` of ``queries`` declared queries read in a day; ``saved_a_day``: by how much
    that becomes cheaper.
    """

    currency: str
    freed: float | None = None
    freed_bytes: int = 0
    rewritten: float | None = None
    rewritten_bytes: int = 0
    added: float | None = None
    deleted: float | None = None
    queries: int = 0
    counted: int = 0
    read_before: int = 0
    read_after: int = 0
    saved_a_day: float | None = None
    has_scan_price: bool = False

    def add(self, table: TablePlan, costs: TableCosts) -> None:
        """Add the costs of a table."""
        if costs.freed_per_month is not None:
            self.freed_bytes += table.impact.bytes_removed
        if costs.rewrite_once is not None:
            self.rewritten_bytes += table.impact.bytes_rewritten
        self.freed = _add(self.freed, costs.freed_per_month)
        self.rewritten = _add(self.rewritten, costs.rewrite_once)
        self.added = _add(self.added, costs.added_per_month)
        self.deleted = _add(self.deleted, costs.deleted_per_month)
        self.has_scan_price |= costs.prices.scan_per_tb is not None
        if (reads := costs.queries) is not None:
            self.queries += reads.queries
            self.counted += reads.counted
            self.read_before += reads.bytes_before
            self.read_after += reads.bytes_after
            if reads.per_day_before is not None:  # amounts are rounded, bytes are not
                saved = costs.prices.price_scan(reads.bytes_before - reads.bytes_after)
                self.saved_a_day = _add(self.saved_a_day, saved)

    @property
    def sentence(self) -> str:
        """What the steps cost and save, in clauses; empty if there is nothing to say."""
        return "; ".join((*self._list_storage(), *self._list_reads()))

    @property
    def past_sentence(self) -> str:
        """What an apply has freed and rewritten; empty if there is nothing to say."""
        parts = []
        if self.freed is not None:
            size, amount = words.format_size(self.freed_bytes), self._format(self.freed)
            parts.append(f"{size} freed, {amount} a month")
        if self.rewritten is not None:
            size, amount = words.format_size(self.rewritten_bytes), self._format(self.rewritten)
            parts.append(f"{size} rewritten once, {_about(amount)}")
        return "; ".join(parts)

    def _list_storage(self) -> Iterator[str]:
        if self.freed is not None:
            size, amount = words.format_size(self.freed_bytes), self._format(self.freed)
            yield f"frees {size}, {amount} a month"
        if self.deleted is not None:
            amount = self._format(self.deleted)
            yield f"deleted partitions cost {amount} a month until a clean removes their files"
        if self.rewritten is not None:
            size, amount = words.format_size(self.rewritten_bytes), self._format(self.rewritten)
            yield f"rewrites {size} once, {_about(amount)}"
        if self.added is not None:
            amount = _about(self._format(self.added))
            yield f"the new files add {amount} a month until a clean removes those they replace"

    def _list_reads(self) -> Iterator[str]:
        if not self.queries:
            return
        who = "declared queries"
        if self.counted < self.queries:
            who = f"declared queries with runs ({self.counted} of {self.queries})"
        reads = f"{who} read {_describe_change(self.read_before, self.read_after)}"
        saved = self.saved_a_day
        if saved is None:
            hint = (
                "; declare their runs, such as 40/day, to price it" if self.has_scan_price else ""
            )
            yield f"{reads}{hint}"
            return
        if not saved:
            yield reads
            return
        direction = "less" if saved > 0 else "more"
        yield f"{reads}, {_about(self._format(abs(saved)))} a day {direction}"
        if self.rewritten is not None and saved > 0:
            yield f"the rewrite pays back in {format_payback(self.rewritten / saved)}"

    def _format(self, amount: float) -> str:
        return format_money(amount, self.currency)


def sum_costs(tables: Iterable[TablePlan]) -> list[CostSums]:
    """Return the costs of tables by currency, in the order of the currencies' codes."""
    sums: dict[str, CostSums] = {}
    for table in tables:
        if (costs := table.costs) is not None:
            currency = costs.prices.currency
            sums.setdefault(currency, CostSums(currency=currency)).add(table, costs)
    return [sums[currency] for currency in sorted(sums)]


def describe_costs(tables: Iterable[TablePlan]) -> str:
    """Return what tables cost and save in sum; empty if nothing has a price."""
    return "; ".join(filter(None, (one.sentence for one in sum_costs(tables))))


def cost_lines(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    """What the steps of a table cost and save."""
    if sentence := describe_costs((table,)):
        yield from terminal.item(terminal.good("= costs"), sentence)


def total_cost_lines(tables: Iterable[TablePlan], terminal: Terminal) -> Iterator[str]:
    """What several tables cost and save in sum; a single table shows it itself."""
    tables = [table for table in tables if describe_costs((table,))]
    if len(tables) > 1:
        yield from terminal.paragraph(f"Costs: {describe_costs(tables)}.")


def describe_result_costs(tables: Iterable[TableResult]) -> str:
    """Return what tables freed and rewrote, in money; empty if nothing has a price."""
    sums: dict[str, CostSums] = {}
    for table in tables:
        if (costs := table.costs) is not None:
            currency = costs.prices.currency
            total = sums.setdefault(currency, CostSums(currency=currency))
            total.freed = _add(total.freed, costs.freed_per_month)
            total.freed_bytes += table.bytes if costs.freed_per_month is not None else 0
            total.rewritten = _add(total.rewritten, costs.rewrite_once)
            total.rewritten_bytes += costs.bytes_rewritten if costs.rewrite_once is not None else 0
    return "; ".join(filter(None, (sums[currency].past_sentence for currency in sorted(sums))))


def describe_storage(costs: StorageCosts) -> str:
    """Return what the files of a table cost a month, and how much of it the plan would free."""
    return _describe_storage(costs.currency, costs.per_month, costs.reclaimable_per_month or 0.0)


def describe_storage_sums(tables: Iterable[StorageCosts | None]) -> str:
    """Return the storage of all tables by currency, to be appended to a summary."""
    sums: dict[str, tuple[float, float]] = {}
    for one in tables:
        if one is not None:
            cost, freed = sums.get(one.currency, (0.0, 0.0))
            freed += one.reclaimable_per_month or 0.0
            sums[one.currency] = (cost + one.per_month, freed)
    return "".join(f"; {_describe_storage(key, *sums[key])}" for key in sorted(sums))


def _describe_storage(currency: str, cost: float, freed: float) -> str:
    sentence = f"storage costs {format_money(cost, currency)} a month"
    if not freed:
        return sentence
    return f"{sentence}, of which the plan would free {format_money(freed, currency)}"


def format_monthly(table: TablePlan) -> str:
    """Return what the removed files cost a month, to be put behind their size in Markdown."""
    costs = table.costs
    if costs is None or costs.freed_per_month is None:
        return ""
    amount = format_money(costs.freed_per_month, costs.prices.currency)
    return f", {amount} a month".replace(" ", "&nbsp;")


def format_money(amount: float, currency: str) -> str:
    """Return an amount with as many digits as prices and sizes justify.

    >>> [format_money(amount, "USD") for amount in (94.12, 3.14, 0.4, 0.0001, 0)]
    ['94 USD', '3.1 USD', '0.40 USD', 'less than 0.01 USD', '0 USD']
    >>> format_money(1234567, "EUR"), format_money(0.999, "JPY"), format_money(9.97, "JPY")
    ('1 230 000 EUR', '1 JPY', '10 JPY')
    """
    if 0 < amount < _LEAST_AMOUNT:
        return f"less than {_LEAST_AMOUNT} {currency}"
    if amount >= _THREE_DIGITS:
        return f"{words.format_number(round(float(f'{amount:.3g}')))} {currency}"
    if round(amount, 1) >= 10:  # noqa: PLR2004 (two digits)
        return f"{amount:.0f} {currency}"
    digits = f"{amount:.1f}" if round(amount, 2) >= 1 else f"{amount:.2f}"
    return f"{digits.removesuffix('.0').removesuffix('.00')} {currency}"


def format_payback(days: float) -> str:
    """Return a time in which something pays back.

    >>> [format_payback(days) for days in (0.2, 1, 9.2, 100)]
    ['less than a day', 'about 1 day', 'about 9 days', 'about 3 months']
    >>> format_payback(3650), format_payback(1e9)
    ('about 10 years', 'more than 100 years')
    """
    if days < 1:
        return "less than a day"
    if days < _TWO_MONTHS:
        return f"about {words.format_count(round(days), 'day')}"
    if days < _TWO_YEARS:
        return f"about {words.format_count(round(days / DAYS_A_MONTH), 'month')}"
    years = days / 365
    if years > _MAX_YEARS:
        return f"more than {_MAX_YEARS} years"
    return f"about {words.format_count(round(years), 'year')}"


def _about(amount: str) -> str:
    """Return an amount as an estimate.

    >>> _about("3 USD"), _about("less than 0.01 USD")
    ('about 3 USD', 'less than 0.01 USD')
    """
    return amount if amount.startswith("less") else f"about {amount}"


def _describe_change(before: int, after: int) -> str:
    """Return by how much bytes change.

    >>> _describe_change(100, 59), _describe_change(100, 112), _describe_change(1000, 999)
    ('41 % less', '12 % more', 'about as much as before')
    """
    if not before or abs(after - before) < before / 200:
        return "about as much as before"
    share = words.format_share(abs(after - before), before)
    return f"{share} {'less' if after < before else 'more'}"


def _add(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
