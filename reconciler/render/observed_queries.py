"""What Spark's event logs asked of tables, for people and for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.event_logs.proposal import QueryProposal
    from reconciler.event_logs.report import WorkloadReport
    from reconciler.event_logs.workload import ObservedQuery, ReadCounts, Workload
    from reconciler.render.terminal import Terminal
    from reconciler.spec.model import Query

_MAX_TABLES: Final = 3
_MAX_COLUMNS: Final = 8
_MAX_PROBLEMS: Final = 5
_MAX_NAME: Final = 40


def query_lines(queries: Sequence[Query], *, has_others: bool = False) -> list[str]:
    """Return the lines of a spec that declare queries; none if there are none.

    ``has_others``: whether the spec declares queries already, to which these are to be added.
    """
    head = "  queries:  # add these to the queries of the spec" if has_others else "  queries:"
    lines = [head] if queries else []
    for query in queries:
        lines += [f"    - name: {_quote(query.name)}", f"      where: {_quote(query.where)}"]
        lines += [f"      runs: {query.runs}"] if query.runs is not None else []
    return lines


def workload_lines(report: WorkloadReport, terminal: Terminal) -> Iterator[str]:
    """What was read of the logs, what could not be, and the tables without a spec."""
    summary = summarize_logs(report.workload)
    yield from terminal.wrap(f"{terminal.strong('Event logs:')} ", summary, 2)
    yield from detail_lines(report, terminal)
    yield ""


def detail_lines(report: WorkloadReport, terminal: Terminal) -> Iterator[str]:
    """What could not be read of the logs, and the tables without a spec."""
    workload = report.workload
    for problem in workload.problems[:_MAX_PROBLEMS]:
        yield from terminal.item(terminal.warn("! log"), problem)
    if (rest := len(workload.problems) - _MAX_PROBLEMS) > 0:
        yield from terminal.detail(f"… and {words.format_count(rest, 'more log')} with a problem")
    if report.others:
        yield from terminal.item("no spec", describe_others(report))


def summarize_logs(workload: Workload) -> str:
    """Return what was read, in one line."""
    logs = words.format_count(workload.logs, "log")
    queries = words.format_count(workload.queries, "query")
    line = f"{logs}, {words.format_size(workload.bytes)}: {queries} of Hudi tables"
    if workload.first_ms is None or workload.last_ms is None:
        return line
    first, last = _format_day(workload.first_ms), _format_day(workload.last_ms)
    span = first if first == last else f"{first} to {last}"
    return f"{line}, {span}"


def describe_others(report: WorkloadReport) -> str:
    """Return the tables of the logs that no spec declares, and what to do, in one sentence."""
    shown = [
        f"{table.location} ({words.format_count(table.runs + table.incremental.runs, 'query')})"
        for table in report.others[:_MAX_TABLES]
    ]
    more = len(report.others) - len(shown)
    rest = f" and {words.format_count(more, 'more table')}" if more else ""
    first = shlex.quote(report.others[0].location)
    return f"{', '.join(shown)}{rest}; adopt them with: reconciler init --from {first} -o FOLDER"


def observed_lines(proposal: QueryProposal, terminal: Terminal) -> Iterator[str]:
    """What was asked of one table: counts, the queries to declare, and those that stay out."""
    table = proposal.table
    yield from terminal.item("asked", _describe_counts(proposal))
    if table.columns:
        shown = [f"{name} ({runs})" for name, runs in list(table.columns.items())[:_MAX_COLUMNS]]
        rest = len(table.columns) - len(shown)
        more = f", {words.format_number(rest)} more" if rest else ""
        yield from terminal.item("columns", f"{', '.join(shown)}{more}")
    yield from _query_rows(proposal)
    if proposal.others:
        counts = proposal.other_counts
        yield from terminal.item(
            "others",
            f"{words.format_count(proposal.others, 'more query')} with "
            f"{words.format_count(counts.runs, 'run')}, {words.format_size(counts.bytes)} read, "
            "are not proposed (--max-queries)",
        )


def _query_rows(proposal: QueryProposal) -> Iterator[str]:
    """A line for each query that was asked: runs, rate and bytes read; the dearest first."""
    named = [(one.query.name, one.observed) for one in proposal.new]
    named += [(f"{name} (declared)", found) for name, found in proposal.declared]
    named.sort(key=lambda pair: -pair[1].bytes)
    if not named:
        return
    rows = [("query", "runs", "rate", "bytes read")]
    for name, found in named:
        shown = words.escape_text(name)
        shown = shown if len(shown) <= _MAX_NAME else f"{shown[: _MAX_NAME - 1]}…"
        runs, rate = words.format_number(found.runs), proposal.describe_runs(found)
        rows.append((shown, runs, rate, words.format_size(found.bytes)))
    width = max(len(row[0]) for row in rows)
    for name, runs, rate, size in rows:
        yield f"  {name:<{width}}{runs:>8}{rate:>11}{size:>12}"


def _describe_counts(proposal: QueryProposal) -> str:
    table = proposal.table
    if not table.runs and not table.incremental.runs:
        return "the logs have no query of the table"
    conditioned = table.runs - table.unconditioned.runs - table.unknown.runs
    kinds = (
        (conditioned, "with a condition"),
        (table.unconditioned.runs, "without one that can be used"),
        (table.unknown.runs, "with one that the log does not tell for certain"),
    )
    total = f"{words.format_count(table.runs, 'query')}, {words.format_size(table.bytes)} read"
    parts = words.join_counts(kinds)
    line = f"{total}: {parts}" if table.runs else ""
    if table.incremental.runs:
        changes = words.format_count(table.incremental.runs, "incremental read")
        line = f"{line}; {changes}" if line else changes
    return line


def logs_document(report: WorkloadReport) -> Mapping[str, Any]:
    """Return what was read, for JSON."""
    workload = report.workload
    return {
        "logs": workload.logs,
        "bytes": workload.bytes,
        "queries": workload.queries,
        "first": _format_time(workload.first_ms),
        "last": _format_time(workload.last_ms),
        "days": round(workload.days, 3),
        "problems": list(workload.problems),
        "withoutSpec": [
            {"path": table.location, "name": table.name, "runs": table.runs, "bytes": table.bytes}
            for table in report.others
        ],
    }


def observed_document(proposal: QueryProposal) -> Mapping[str, Any]:
    """Return what was asked of one table, for JSON."""
    table = proposal.table
    proposed = [
        {**query_document(one.query), **_counts_document(one.observed), "declared": False}
        for one in proposal.new
    ]
    declared = [
        {"name": name, "where": found.where, "runs": proposal.describe_runs(found)}
        | {**_counts_document(found), "declared": True}
        for name, found in proposal.declared
    ]
    return {
        "catalogName": table.name,
        "runs": table.runs,
        "bytes": table.bytes,
        "queries": [*proposed, *declared],
        "others": {"queries": proposal.others, **_document(proposal.other_counts)},
        "unconditioned": _document(table.unconditioned),
        "unknown": _document(table.unknown),
        "incremental": _document(table.incremental),
        "columns": dict(table.columns),
    }


def query_document(query: Query) -> Mapping[str, Any]:
    """Return a query as a spec has it."""
    runs = {} if query.runs is None else {"runs": query.runs}
    return {"name": query.name, "where": query.where, **runs}


def _counts_document(found: ObservedQuery) -> Mapping[str, Any]:
    return {
        "shape": found.shape,
        "count": found.runs,
        "bytes": found.bytes,
        "files": found.files,
        "columns": list(found.columns),
    }


def _document(counts: ReadCounts) -> Mapping[str, Any]:
    return {"count": counts.runs, "bytes": counts.bytes}


def _format_day(ms: int) -> str:
    return f"{_to_time(ms):%Y-%m-%d}"


def _format_time(ms: int | None) -> str | None:
    return None if ms is None else f"{_to_time(ms):%Y-%m-%dT%H:%M:%SZ}"


def _to_time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
