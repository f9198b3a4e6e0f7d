"""The declared queries for a terminal: what each reads today, and what it will.

The lines are those of ``render.text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.plan.model import Sampled, TablePlan
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint

_TOP: Final = 8
_WIDEST: Final = 32


def lines(table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    """A line a query, those that read most first; ``full``: all of them, as they are declared."""
    found = table.predictions
    if not found:
        return
    sampled = table.layout.sampled if table.layout is not None else None
    what = words.count(len(found), "query", "queries")
    yield from item(paint.good("= queries"), f"{what}, {_source(sampled)}")
    shown = list(found)
    if not full:
        shown.sort(key=lambda one: (-one["bytesBefore"], one["query"]))
        shown = shown[: _TOP if len(found) > _TOP + 1 else len(found)]
    names = [words.plain(one["query"]) for one in shown]
    width = min(max(map(len, names)), _WIDEST)
    for name, one in zip(names, shown, strict=True):
        yield f"      {name:<{width}}  {_files(one):>16}  {_bytes(one)}"
    if len(shown) < len(found):
        rest = words.count(len(found) - len(shown), "more query", "more queries")
        yield from more(f"… and {rest}; all in plan.json, or show --full")


def _source(sampled: Sampled | None) -> str:
    if sampled is None:
        return "as they read the table today"
    groups = words.count(sampled.of, "row group")
    return (
        f"today → predicted from {words.number(sampled.row_groups)} of {groups} "
        f"({words.count(sampled.rows, 'row')})"
    )


def _files(one: Mapping[str, Any]) -> str:
    before, after = one["filesBefore"], one["filesAfter"]
    if not _changes(one):
        return words.count(before, "file")
    return f"{words.number(before)} → {words.count(after, 'file')}"


def _bytes(one: Mapping[str, Any]) -> str:
    before = words.size(one["bytesBefore"])
    if not _changes(one):
        return before
    return f"{before} → {words.size(one['bytesAfter'])} ±{one['error'] * 100:.0f} %"


def _changes(one: Mapping[str, Any]) -> bool:
    same = all(one[f"{what}Before"] == one[f"{what}After"] for what in ("files", "bytes"))
    return not same or one["error"] > 0
