"""Build the table of all tables with its totals; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.costs import format_money
from reconciler.render.html.model import Column, Fact, Fleet, FleetCell, FleetRow, Tone
from reconciler.render.html.table_page import describe_condition
from reconciler.status.conditions import HEALTH_REASONS, SYNC_REASONS, format_age
from reconciler.status.model import TableStatus

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
_MONTHLY: Final = Column(title="A month", is_number=True)
_NONE: Final = "\N{EN DASH}"
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
        is_in_sync=synced is not None and synced.status == "True",
        is_healthy=healthy is not None and healthy.status == "True",
        bytes=status.bytes,
        files=status.files,
        small_files=small,
        sized_files=sized,
        reclaimable=status.bytes_reclaimable or 0,
        costs=status.costs,
    )


def build_fleet(rows: Sequence[FleetRow]) -> Fleet:
    """Return all tables by name, with their totals."""
    synced, healthy = sum(r.is_in_sync for r in rows), sum(r.is_healthy for r in rows)
    sized, small = sum(r.sized_files for r in rows), sum(r.small_files for r in rows)
    total, free = sum(r.bytes for r in rows), sum(r.reclaimable for r in rows)
    files = words.format_count(sum(r.files for r in rows), "file")
    has_costs = any(row.costs is not None for row in rows)
    shown = map(_add_costs, rows) if has_costs else rows
    return Fleet(
        facts=(
            _count_of("In sync", synced, len(rows), "warn"),
            _count_of("Healthy", healthy, len(rows), "bad"),
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
        ),
        columns=(Column(title="Table"), *COLUMNS, *([_MONTHLY] if has_costs else ())),
        rows=tuple(sorted(shown, key=lambda row: row.name)),
    )


def _add_costs(row: FleetRow) -> FleetRow:
    """Return the row with what its table's files cost a month."""
    costs = row.costs
    if costs is None:
        cell = FleetCell(text=_NONE, order=_LAST)
    else:
        cell = FleetCell(text=format_money(costs.per_month, costs.currency), order=costs.per_month)
    return replace(row, cells=(*row.cells, cell))


def _count_of(label: str, part: int, whole: int, otherwise: Tone) -> Fact:
    tone: Tone = "good" if part == whole else otherwise
    text = f"{words.format_number(part)} of {words.format_number(whole)}"
    return Fact(label=label, value=text, note="tables", tone=tone)


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
    between = words.time_between(status.earliest_readable, status.last_completed)
    if between is None:
        return FleetCell(text=_NONE, order=_LAST)
    seconds = int(between.total_seconds())
    return FleetCell(text=format_age(seconds), order=float(seconds))


def _show_apply(status: TableStatus) -> FleetCell:
    if status.last_apply is None:
        return FleetCell(text="never", order="")
    instant = status.last_apply.instant
    return FleetCell(text=words.format_instant(instant), order=instant)


def _count(number: int) -> str:
    return words.format_number(number) if number else _NONE
