"""Render the documents of a plan, of a status, and of a report with a page for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from reconciler.plans.plan import Plan
from reconciler.render import plan_summary, plan_text, words
from reconciler.render.costs import describe_costs
from reconciler.render.html.documents import render_document
from reconciler.render.html.fleet import build_fleet, build_fleet_row
from reconciler.render.html.model import Fleet, FleetRow, PageHead, TablePage
from reconciler.render.html.page_names import name_anchors
from reconciler.render.html.table_page import build_table_page, describe_plan_effect

if TYPE_CHECKING:
    from datetime import datetime

    from reconciler.status.table_survey import TableSurvey

_MINUTE = 16
#: folder of the pages of tables in a report
TABLES_FOLDER = "tables"


def build_surveyed_page(survey: TableSurvey, anchor: str, *, with_files: bool = True) -> TablePage:
    """Return the page of a table that was read."""
    return build_table_page(
        survey.plan,
        anchor=anchor,
        status=survey.status,
        state=survey.state,
        clustering=survey.spec.rewriting,
        with_files=with_files,
    )


def build_surveyed_row(survey: TableSurvey, href: str) -> FleetRow:
    """Return the row of a table that was read; ``href``: the address of its page."""
    return build_fleet_row(survey.plan, survey.status, href)


def render_plan_page(
    plan: Plan,
    tables: Sequence[TablePage],
    rows: Sequence[FleetRow] = (),
    *,
    environment: str | None = None,
) -> bytes:
    """Return the document of a plan; ``rows``: those of the table of tables, if it has one."""
    fleet = build_fleet(rows) if len(rows) > 1 else None
    lead = describe_plan_effect(plan)
    head = PageHead(
        title=words.capitalize(plan_text.count_verdicts(plan))
        if len(tables) != 1
        else tables[0].name,
        kicker=_join("reconciler plan", environment),
        made=f"Planned {_format_time(plan.created_at)} by {plan.tool}. A page to look at: review "
        "and apply the plan file.",
        lead=lead,
        costs=describe_costs(plan.tables),
        digest=plan.digest,
    )
    return render_document(head, fleet=fleet, tables=_order(tables, fleet))


def render_saved_plan(plan: Plan, *, environment: str | None = None) -> bytes:
    """Return the document of a saved plan: what it holds itself, because no table is read."""
    anchors = name_anchors(table.name for table in plan.tables)
    verdicts = get_args(plan_summary.TableVerdict)
    ordered = [table for one in verdicts for table in plan_summary.tables_by_size(plan, one)]
    tables = [build_table_page(table, anchor=anchors[table.name]) for table in ordered]
    return render_plan_page(plan, tables, environment=environment)


def render_status_page(
    tables: Sequence[TablePage],
    rows: Sequence[FleetRow],
    *,
    at: datetime,
    tool: str,
    environment: str | None = None,
) -> bytes:
    """Return the document of a status: the table of tables, and each table below it."""
    fleet = build_fleet(rows)
    head = PageHead(
        title=fleet.title,
        kicker=_join("reconciler status", environment),
        made=f"Observed {_format_time(at.isoformat())} by {tool}.",
    )
    return render_document(head, fleet=fleet, tables=_order(tables, fleet))


def render_report_index(
    rows: Sequence[FleetRow], *, at: datetime, tool: str, environment: str | None = None
) -> bytes:
    """Return the first page of a report: the table of tables."""
    fleet = build_fleet(rows)
    head = PageHead(
        title=fleet.title,
        kicker=_join("reconciler report", environment),
        made=f"Observed {_format_time(at.isoformat())} by {tool}.",
    )
    return render_document(head, fleet=fleet)


def render_report_table(page: TablePage, *, at: datetime, tool: str) -> bytes:
    """Return the page of one table of a report."""
    head = PageHead(
        title=page.name,
        kicker="",
        made=f"Observed {_format_time(at.isoformat())} by {tool}.",
        home="../index.html",
    )
    return render_document(head, tables=[page])


def _order(tables: Sequence[TablePage], fleet: Fleet | None) -> Sequence[TablePage]:
    """Return the tables in the order of the table of tables, if there is one."""
    if fleet is None:
        return tables
    places: Mapping[str, int] = {row.name: place for place, row in enumerate(fleet.rows)}
    return sorted(tables, key=lambda table: places.get(table.name, len(places)))


def _join(what: str, environment: str | None) -> str:
    return what if environment is None else f"{what} · {environment}"


def _format_time(text: str) -> str:
    """Return an ISO time to the minute, with its offset.

    >>> _format_time("2026-11-27T04:30:15.123+00:00")
    '2026-11-27 04:30 +00:00'
    """
    offset = text[19:].lstrip(".0123456789")
    return f"{text[:_MINUTE].replace('T', ' ')} {offset}".strip()
