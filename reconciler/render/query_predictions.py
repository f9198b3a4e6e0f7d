"""The declared queries of a plan for a terminal: what each reads today, and after the apply.

The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.layout_change import Sampled
from reconciler.plans.model import TablePlan
from reconciler.plans.refused_steps import find_refused_kinds
from reconciler.render import words
from reconciler.render.cluster_step import CONDITIONAL
from reconciler.render.terminal import Terminal, limit_rows, name_rows

_MAX_QUERIES: Final = 8
_MAX_NAME_WIDTH: Final = 32
_IF_COMPACTED: Final = "with the refused compaction: "


def prediction_lines(table: TablePlan, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """One line per query, the biggest first; ``full``: all queries, in the order of the spec."""
    predictions = table.predictions
    if not predictions:
        return
    sampled = table.layout.sampled if table.layout is not None else None
    compacts = any(isinstance(step, CompactStep) for step in table.steps)
    what = words.format_count(len(predictions), "query")
    refused = find_refused_kinds(table.refusals)
    if sampled is not None and "cluster" in refused:
        what = f"{CONDITIONAL}{what}"
    elif compacts and "compact" in refused:
        what = f"{_IF_COMPACTED}{what}"
    source = describe_source(sampled, compacts=compacts)
    yield from terminal.item(terminal.good("= queries"), f"{what}, {source}")
    shown = list(predictions)
    if not full:
        shown.sort(key=lambda query: (-query["bytesBefore"], query["query"]))
        shown = shown[: limit_rows(len(shown), _MAX_QUERIES)]
    figures = (f"{_format_files(query):>16}  {_format_bytes(query)}" for query in shown)
    rows = name_rows((query["query"] for query in shown), figures, _MAX_NAME_WIDTH)
    for query, row in zip(shown, rows, strict=True):
        yield row
        if (merging := query.get("merging")) is not None:
            yield from terminal.detail(describe_merging(merging), indent=2)
    if len(shown) < len(predictions):
        rest = words.format_count(len(predictions) - len(shown), "more query")
        yield from terminal.detail(f"… and {rest}; show --full lists all")


def describe_source(sampled: Sampled | None, *, compacts: bool) -> str:
    """Return what the reads of a plan are: today's, or predicted from a sample."""
    if sampled is None:
        return "today → predicted after the compaction" if compacts else "today's reads"
    groups = words.format_count(sampled.total_row_groups, "row group")
    return (
        f"today → predicted from {words.format_number(sampled.row_groups)} of {groups} "
        f"({words.format_count(sampled.rows, 'row')}){' and the compaction' if compacts else ''}"
    )


def describe_merging(merging: Mapping[str, Any]) -> str:
    """Return what a query merges today, and what is left of it after the apply.

    >>> few = {"slicesAfter": 1, "logFilesAfter": 7, "logBytesAfter": 307200, "rowsAfter": None}
    >>> describe_merging({"slicesBefore": 3, "logFilesBefore": 21, "logBytesBefore": 1677721,
    ...     "rowsBefore": 400000, **few})
    'merges 21 log files, 1.6 MiB, into 3 slices (400 000 rows) → 7, 300.0 KiB, into 1 slice'
    """
    files = words.format_count(merging["logFilesBefore"], "log file")
    before = f"merges {files}{_describe_merge(merging, 'Before')}"
    if merging["slicesAfter"] == merging["slicesBefore"]:
        return before
    if not merging["slicesAfter"]:
        return f"{before} → nothing"
    files = words.format_number(merging["logFilesAfter"])
    return f"{before} → {files}{_describe_merge(merging, 'After')}"


def _describe_merge(merging: Mapping[str, Any], when: str) -> str:
    size = words.format_size(merging[f"logBytes{when}"])
    slices = words.format_count(merging[f"slices{when}"], "slice")
    rows = merging[f"rows{when}"]
    counted = "" if rows is None else f" ({words.format_count(rows, 'row')})"
    return f", {size}, into {slices}{counted}"


def _format_files(query: Mapping[str, Any]) -> str:
    before, after = query["filesBefore"], query["filesAfter"]
    if not _has_change(query):
        return words.format_count(before, "file")
    return f"{words.format_number(before)} → {words.format_count(after, 'file')}"


def _format_bytes(query: Mapping[str, Any]) -> str:
    before = words.format_size(query["bytesBefore"])
    if not _has_change(query):
        return before
    after, error = query["bytesAfter"], query["error"]
    if not after and error:  # a share of nothing: it is a number of bytes
        return f"{before} → 0 bytes, at most {words.format_size(round(error))}"
    return f"{before} → {words.format_size(after)} ±{error * 100:.0f} %"


def _has_change(query: Mapping[str, Any]) -> bool:
    same = all(query[f"{what}Before"] == query[f"{what}After"] for what in ("files", "bytes"))
    return not same or query["error"] > 0
