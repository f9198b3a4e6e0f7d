"""Build the table of all tables with its totals; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.costs import format_money
from reconciler.render.html.model import Column, Fact, Fleet, FleetCell, FleetRow, Tone
from reconciler.render.html.table_page import describe_condition, describe_reason
from reconciler.status.conditions import HEALTH_REASONS, SYNC_REASONS
from reconciler.status.model import StorageCosts, TableStatus

#: columns after the name
COLUMNS: Final = (
    Column(title="State"),
    Column(title="Health"),
    Column(title="Size", is_number=True),
    Column(title="Small files", is_number=True),
    Column(title="Logs", is_number=True),
    Column(title="Reclaimable", is_number=True),
    Column(title="Readable", is_number=True),
    Column(title="Last apply"),
    Column(title="Drift", is_number=True),
)
#: behind the others, if an environment has a price of storage
_MONTHLY: Final = Column(title="Cost a month", is_number=True)
_BLOCKED: Final = ("Blocked", "BlockedInPart")
#: reasons that are something of a table -> words after a number of tables
_STUCK: Final = {
    "PendingRestore": "with a pending restore",
    "StaleLock": "with a stale lock",
    "StuckInstant": "with a stuck instant",
}
#: place of the column Health, by which tables are sorted, the worst first
_HEALTH: Final = 2
_DAY: Final = len("2026-11-21")
_NONE: Final = "\N{EN DASH}"
_NEVER: Final = "never"
#: orders that stand behind all others
_LAST: Final = -1.0


def build_fleet_row(plan: TablePlan, status: TableStatus, href: str) -> FleetRow:
    """Return the row of a table; ``href``: the address of its page."""
    logs = status.logs
    sized = sum(one.files for one in status.sizes)
    small = min(status.small_files, sized)
    synced, healthy = status.condition("Synced"), status.condition("Healthy")
    return FleetRow(
        name=plan.name,
        href=href,
        cells=(
            _show_condition(status, "Synced"),
            _show_condition(status, "Healthy"),
            _show_size(status.bytes, is_known=status.table_type is not None),
            _show_share(small, sized),
            FleetCell(text=_NONE, order=_LAST)
            if logs is None
            else _show_share(logs.bytes, logs.base_bytes + logs.bytes),
            _show_size(status.bytes_reclaimable or 0, is_known=bool(status.bytes_reclaimable)),
            _show_window(status),
            _show_apply(status),
            FleetCell(text=_count(len(plan.drift)), order=float(len(plan.drift))),
        ),
        sync="" if synced is None else synced.reason,
        health="" if healthy is None else healthy.reason,
        bytes=status.bytes,
        files=status.files,
        small_files=small,
        sized_files=sized,
        reclaimable=status.bytes_reclaimable or 0,
        costs=status.costs,
    )


def build_fleet(rows: Sequence[FleetRow]) -> Fleet:
    """Return all tables, the worst first, with their totals."""
    sized, small = sum(r.sized_files for r in rows), sum(r.small_files for r in rows)
    total, free = sum(r.bytes for r in rows), sum(r.reclaimable for r in rows)
    files = words.format_count(sum(r.files for r in rows), "file")
    costs = [row.costs for row in rows if row.costs is not None]
    has_costs = bool(costs)
    shown = map(_add_costs, rows) if has_costs else rows
    return Fleet(
        title=_describe_attention(rows),
        facts=(
            _count_of("In sync", "InSync", [row.sync for row in rows], SYNC_REASONS, "warn"),
            _count_of("Healthy", "Healthy", [row.health for row in rows], HEALTH_REASONS, "bad"),
            Fact(label="Size", value=words.format_size(total), note=files),
            Fact(
                label="Small files",
                value=words.format_share(small, sized),
                note=f"{words.format_number(small)} of {words.format_count(sized, 'base file')}",
            ),
            Fact(
                label="Reclaimable",
                value=words.format_size(free) if free else "nothing",
                note=f"{words.format_share(free, total)} of all bytes" if free else "",
            ),
            *_sum_costs(costs),
        ),
        columns=(Column(title="Table"), *COLUMNS, *([_MONTHLY] if has_costs else ())),
        rows=tuple(sorted(shown, key=_get_urgency)),
        sorted_by=_HEALTH,
        marked=_HEALTH,
        blanks=(_NONE, _NEVER),
    )


def _get_urgency(row: FleetRow) -> tuple[str | float, str | float, str]:
    """Return what tables are sorted by: health, state and name."""
    return row.cells[_HEALTH - 1].order, row.cells[_HEALTH - 2].order, row.name


def _describe_attention(rows: Sequence[FleetRow]) -> str:
    """Return in a few words how many tables somebody must look into."""
    urgent = sum(row.health != "Healthy" or row.sync in _BLOCKED for row in rows)
    tables = words.format_count(len(rows), "table")
    if not urgent:
        return f"{tables}, nothing stuck or blocked" if rows else "No tables"
    verb = "needs" if urgent == 1 else "need"
    if urgent == len(rows):
        return f"{tables} {verb} attention"
    return f"{words.format_number(urgent)} of {tables} {verb} attention"


def _sum_costs(costs: Sequence[StorageCosts]) -> Iterator[Fact]:
    """Yield what the files cost a month; nothing without prices."""
    if costs:
        currency = costs[0].currency
        free = sum(one.reclaimable_per_month or 0 for one in costs)
        yield Fact(
            label="Cost a month",
            value=_show_money(sum(one.per_month for one in costs), currency),
            note=f"{_show_money(free, currency)} reclaimable" if free else "",
        )


def _show_money(amount: float, currency: str) -> str:
    return format_money(amount, currency).replace("less than", "<")


def _add_costs(row: FleetRow) -> FleetRow:
    """Return the row with what its table's files cost a month."""
    costs = row.costs
    if costs is None:
        cell = FleetCell(text=_NONE, order=_LAST)
    else:
        text = _show_money(costs.per_month, costs.currency)
        cell = FleetCell(text=text, order=costs.per_month)
    return replace(row, cells=(*row.cells, cell))


def _count_of(
    label: str, good: str, found: Sequence[str], reasons: Sequence[str], otherwise: Tone
) -> Fact:
    """Return how many tables are well, and what the others are, the worst first."""
    part = found.count(good)
    others = words.join_counts(
        (found.count(reason), _STUCK.get(reason) or describe_reason(reason).lower())
        for reason in reasons
        if reason != good
    )
    value = f"{words.format_number(part)} of {words.format_number(len(found))}"
    tone: Tone = "good" if part == len(found) else otherwise
    return Fact(label=label, value=value, note=others or "all tables", tone=tone)


def _show_condition(status: TableStatus, kind: str) -> FleetCell:
    reasons = SYNC_REASONS if kind == "Synced" else HEALTH_REASONS
    condition = next((one for one in status.conditions if one.type == kind), None)
    if condition is None:
        return FleetCell(text=_NONE, order=_LAST)
    text, tone = describe_condition(condition)
    return FleetCell(text=text, order=float(reasons.index(condition.reason)), tone=tone)


def _show_size(size: int, *, is_known: bool) -> FleetCell:
    if not is_known:
        return FleetCell(text=_NONE, order=_LAST)
    return FleetCell(text=words.format_size(size), order=float(size))


def _show_share(part: int, whole: int) -> FleetCell:
    if not whole:
        return FleetCell(text=_NONE, order=_LAST)
    return FleetCell(text=words.format_share(part, whole), order=round(part / whole, 6))


def _show_window(status: TableStatus) -> FleetCell:
    between = words.time_between(status.earliest_readable, status.window_end)
    if between is None:
        return FleetCell(text=_NONE, order=_LAST)
    seconds = between.total_seconds()
    text = words.format_duration(seconds) if seconds else "newest only"
    return FleetCell(text=text, order=seconds)


def _show_apply(status: TableStatus) -> FleetCell:
    if status.last_apply is None:
        return FleetCell(text=_NEVER, order="")
    instant = status.last_apply.instant
    return FleetCell(text=words.format_instant(instant)[:_DAY], order=instant)


def _count(number: int) -> str:
    return words.format_number(number) if number else _NONE
