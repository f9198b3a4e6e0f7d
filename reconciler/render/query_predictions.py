"""The declared queries of a plan for a terminal: what each reads today, and after the apply.

The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.plans.layout_change import Sampled
from reconciler.plans.model import TablePlan
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.render import words
from reconciler.render.cluster_step import CONDITIONAL
from reconciler.render.terminal import Terminal, limit_rows, name_rows

_MAX_QUERIES: Final = 8
_MAX_NAME_WIDTH: Final = 32


def prediction_lines(table: TablePlan, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """One line per query, the biggest first; ``full``: all queries, in the order of the spec."""
    predictions = table.predictions
    if not predictions:
        return
    sampled = table.layout.sampled if table.layout is not None else None
    what = words.format_count(len(predictions), "query")
    if sampled is not None and "cluster" in find_refused_kinds(table.refusals):
        what = f"{CONDITIONAL}{what}"
    yield from terminal.item(terminal.good("= queries"), f"{what}, {_describe_source(sampled)}")
    shown = list(predictions)
    if not full:
        shown.sort(key=lambda query: (-query["bytesBefore"], query["query"]))
        shown = shown[: limit_rows(len(shown), _MAX_QUERIES)]
    figures = (f"{_format_files(query):>16}  {_format_bytes(query)}" for query in shown)
    yield from name_rows((query["query"] for query in shown), figures, _MAX_NAME_WIDTH)
    if len(shown) < len(predictions):
        rest = words.format_count(len(predictions) - len(shown), "more query")
        yield from terminal.detail(f"… and {rest}; show --full lists all")


def _describe_source(sampled: Sampled | None) -> str:
    if sampled is None:
        return "today's reads"
    groups = words.format_count(sampled.total_row_groups, "row group")
    return (
        f"today → predicted from {words.format_number(sampled.row_groups)} of {groups} "
        f"({words.format_count(sampled.rows, 'row')})"
    )


def _format_files(query: Mapping[str, Any]) -> str:
    before, after = query["filesBefore"], query["filesAfter"]
    if not _has_change(query):
        return words.format_count(before, "file")
    return f"{words.format_number(before)} → {words.format_count(after, 'file')}"


def _format_bytes(query: Mapping[str, Any]) -> str:
    before = words.format_size(query["bytesBefore"])
    if not _has_change(query):
        return before
    return f"{before} → {words.format_size(query['bytesAfter'])} ±{query['error'] * 100:.0f} %"


def _has_change(query: Mapping[str, Any]) -> bool:
    same = all(query[f"{what}Before"] == query[f"{what}After"] for what in ("files", "bytes"))
    return not same or query["error"] > 0
