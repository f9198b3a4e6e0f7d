"""Simulated retentions, for people and for programs: bytes kept against how far back reads go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from reconciler import canonical_json
from reconciler.planners.retention_simulation import RetentionCurve, RetentionPoint
from reconciler.plans import encode
from reconciler.plans.model import Selection
from reconciler.render import words
from reconciler.render.costs import format_money
from reconciler.render.layout_simulation import layout_lines, layout_rows
from reconciler.render.markdown_escape import code_span, escape_markdown
from reconciler.render.page import Page
from reconciler.render.terminal import Terminal, draw_bar
from reconciler.spec.model import Policy
from reconciler.status.table_simulation import TableSimulation

_NOUNS: Final = {
    Policy.COMMITS: "commit",
    Policy.HOURS: "hour",
    Policy.FILE_VERSIONS: "file version",
}
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
#: with fewer points a curve shows nothing
_LEAST_POINTS: Final = 3
_UNKNOWN: Final = "—"


def simulation_text(
    tables: Sequence[TableSimulation], terminal: Terminal, *, selection: Selection | None = None
) -> str:
    """Return the tables as text, with a summary in the last line."""
    lines: list[str] = []
    for table in tables:
        lines += [*_table_lines(table, terminal), ""]
    label = f"{terminal.strong('Simulation:')} "
    lines += terminal.wrap(label, _summarize(tables, selection), 2)
    return "\n".join(lines) + "\n"


def simulation_json(
    tables: Sequence[TableSimulation],
    *,
    created_at: str,
    tool: str,
    selection: Selection | None = None,
) -> bytes:
    """Return the tables with all points, as canonical JSON and a newline."""
    document = {
        "format": 1,
        "createdAt": created_at,
        "tool": tool,
        "tables": canonical_json.to_document(tables),
        **encode.encode_selection(selection),
    }
    return canonical_json.to_bytes(document) + b"\n"


def simulation_markdown(
    tables: Sequence[TableSimulation], *, selection: Selection | None = None
) -> str:
    """Return the tables for a pull request, with at most 60 000 characters."""
    page = Page()
    page.add_block(f"### reconciler simulate: {_summarize(tables, selection)}\n")
    page.add_blocks(
        map(_markdown_block, tables),
        len(tables),
        1.0,
        lambda n: f"\n… and {words.format_count(n, 'more table')}\n",
    )
    return page.text


def draw_sparkline(values: Sequence[int]) -> str:
    """Return a character per value, as high as its share of the greatest.

    >>> draw_sparkline([0, 50, 100]), draw_sparkline([]), draw_sparkline([0])
    ('▁▄█', '', '▁')
    """
    most = max(values, default=0) or 1
    return "".join(_HEIGHTS[max(-(-value * len(_HEIGHTS) // most) - 1, 0)] for value in values)


def _summarize(tables: Sequence[TableSimulation], selection: Selection | None) -> str:
    total = words.format_tables(len(tables), selection)
    failed = sum(table.error is not None for table in tables)
    read = f", {words.format_number(failed)} not read" if failed else ""
    return f"{total}{read}; nothing was changed"


# --- text ----------------------------------------------------------------------------------------


def _table_lines(table: TableSimulation, terminal: Terminal) -> Iterator[str]:
    name = terminal.strong(words.escape_text(table.name))
    yield from terminal.title(name, words.escape_text(table.path))
    if table.error is not None:
        yield from terminal.item(terminal.bad("! error"), table.error)
        return
    if table.retention is not None:
        yield from _curve_lines(table.retention, terminal)
    if table.layouts is not None:
        yield from layout_lines(table.layouts, terminal)


def _curve_lines(curve: RetentionCurve, terminal: Terminal) -> Iterator[str]:
    newest = words.format_size(curve.newest_bytes)
    sentence = f"{_describe_today(curve)}; every retention keeps the newest file slices, {newest}"
    legend = "retention, bytes kept, how far back reads go and to when"
    if any(point.older_commits for point in curve.points):
        legend += " (+ commits before a gap, such as savepoints)"
    legend += ", price of a month" if curve.currency is not None else ""
    yield from terminal.item("today", sentence)
    yield from terminal.item("kept", f"{legend} (* as declared, ! see below)")
    rows = [_describe_point(point, curve) for point in curve.points]
    until = max((len(row[3]) for row in rows), default=0)
    width = max((len(row[0]) for row in rows), default=0)
    reach = max((len(row[2]) for row in rows), default=0)
    for point, (name, size, back, since, price) in zip(curve.points, rows, strict=True):
        mark = "!" if point.problem or point.refusals else "*" if point.is_declared else " "
        bar = draw_bar(point.bytes_kept or 0, curve.bytes, terminal.bar_width)
        figures = f"{size:>10} {bar:<{terminal.bar_width}}  {back:>{reach}}  {since:<{until}}"
        yield f"  {mark} {name:<{width}}  {figures}  {price}".rstrip()
    yield from _shape_lines(curve, terminal)
    yield from _trouble_lines(curve, terminal)


def _describe_today(curve: RetentionCurve) -> str:
    """Return what the table has, and how far back it can be read."""
    files, size = words.format_count(curve.files, "file"), words.format_size(curve.bytes)
    if curve.earliest_readable is None:
        return f"{files}, {size}, no write can be read as of"
    back = "" if curve.reach_seconds is None else f" ({words.format_duration(curve.reach_seconds)})"
    since = words.format_instant(curve.earliest_readable)
    commits = words.format_count(curve.commits, "commit")
    older = ""
    if curve.older_commits:
        older = f", and as of {words.format_count(curve.older_commits, 'commit')} before a gap"
    return f"{files}, {size}, readable back to {since}{back}, {commits}{older}"


def _describe_point(point: RetentionPoint, curve: RetentionCurve) -> tuple[str, ...]:
    """Return a row: retention, bytes kept, reach, earliest instant, and price of a month."""
    name = words.format_count(point.keep, _NOUNS[point.policy])
    if point.bytes_kept is None:
        return name, _UNKNOWN, _UNKNOWN, _UNKNOWN, ""
    back = _UNKNOWN
    if point.reach_seconds is not None:
        back = words.format_duration(point.reach_seconds)
    since = words.format_instant(point.earliest_readable)
    since += f" +{point.older_commits}" if point.older_commits else ""
    price = ""
    if point.kept_per_month is not None and curve.currency is not None:
        price = format_money(point.kept_per_month, curve.currency)
    return name, words.format_size(point.bytes_kept), back, since, price


def _shape_lines(curve: RetentionCurve, terminal: Terminal) -> Iterator[str]:
    """The curve of every policy in one line each, from the shortest reach to the longest."""
    for policy in dict.fromkeys(point.policy for point in curve.points):
        known = [
            (point.reach_seconds, point.bytes_kept)
            for point in curve.points
            if point.policy == policy
            and point.reach_seconds is not None
            and point.bytes_kept is not None
        ]
        if len(known) < _LEAST_POINTS:
            continue
        known.sort()
        sentence = f"{draw_sparkline([size for _, size in known])}  {_describe_ends(known)}"
        yield from terminal.item(f"curve by {_NOUNS[policy]}s", sentence)


def _describe_ends(known: Sequence[tuple[float, int]]) -> str:
    """Return the least and the greatest size and reach of a curve, sorted by its reaches.

    >>> _describe_ends([(57, 1024), (3600, 2048)])
    '1.0 KiB to 2.0 KiB, readable 57 seconds to 1 hour back'
    >>> _describe_ends([(57, 1024), (57, 1024)])
    'all the same: 1.0 KiB, readable 57 seconds back'
    """
    reaches = dict.fromkeys(words.format_duration(known[nth][0]) for nth in (0, -1))
    sizes = dict.fromkeys(words.format_size(known[nth][1]) for nth in (0, -1))
    same = "all the same: " if len(reaches) == len(sizes) == 1 else ""
    return f"{same}{' to '.join(sizes)}, readable {' to '.join(reaches)} back"


def _trouble_lines(curve: RetentionCurve, terminal: Terminal) -> Iterator[str]:
    """Why a retention cannot be planned, or would be refused; a reason is said once."""
    reasons: dict[tuple[bool, str], list[str]] = {}
    for point in curve.points:
        name = words.format_count(point.keep, _NOUNS[point.policy])
        if point.problem is not None:
            reasons.setdefault((True, point.problem), []).append(name)
        for note in point.refusals:
            reasons.setdefault((False, f"{note.because} [{note.rule}]"), []).append(name)
    for (is_problem, because), names in reasons.items():
        label = terminal.bad("! not planned") if is_problem else terminal.warn("! refused")
        yield from terminal.item(label, f"{', '.join(names)}: {because}")


# --- Markdown ------------------------------------------------------------------------------------


def _markdown_block(table: TableSimulation) -> str:
    head = f"\n{code_span(table.name)}"
    if table.error is not None:
        return f"{head}: **error** {escape_markdown(table.error)}\n"
    layouts = layout_rows(table.layouts) if table.layouts is not None else ""
    if (curve := table.retention) is None:
        return f"{head}\n{layouts}"
    rows = "".join(_markdown_row(point, curve) for point in curve.points)
    troubles = "".join(f"- {escape_markdown(line.strip())}\n" for line in _plain_troubles(curve))
    price, rule = (" a month |", "---:|") if curve.currency is not None else ("", "")
    return (
        f"{head}: {escape_markdown(_describe_today(curve))}\n\n"
        f"| retention | kept | removed | readable | from |{price} |\n"
        f"|---|---:|---:|---:|---|{rule}---|\n{rows}{troubles and chr(10)}{troubles}{layouts}"
    )


def _plain_troubles(curve: RetentionCurve) -> Iterator[str]:
    """The troubles of a curve, each on one line."""
    return _trouble_lines(curve, Terminal(width=10_000))


def _markdown_row(point: RetentionPoint, curve: RetentionCurve) -> str:
    name, size, back, since, price = _describe_point(point, curve)
    removed = _UNKNOWN if point.bytes_removed is None else words.format_size(point.bytes_removed)
    cells: list[Any] = [name, f"**{size}**", removed, back, since]
    cells += [price or _UNKNOWN] if curve.currency is not None else []
    remarks = ["declared"] if point.is_declared else []
    remarks += ["refused"] if point.refusals else []
    remarks += ["not planned"] if point.problem else []
    return f"| {' | '.join(cells)} | {', '.join(remarks)} |\n"
