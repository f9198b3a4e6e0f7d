"""Simulated layouts and file sizes: what the declared queries would read in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.planners.layout_simulation import LayoutComparison, LayoutPoint, SimulatedReads
from reconciler.render import words
from reconciler.render.markdown_escape import escape_markdown
from reconciler.render.terminal import Terminal, draw_bar

_MAX_QUERIES: Final = 5
#: with more layouts, only their sums are shown
_MAX_DETAILED: Final = 4
_NAME_WIDTH: Final = 40


def layout_lines(layouts: LayoutComparison, terminal: Terminal) -> Iterator[str]:
    """A row per layout with files and bytes read, and the reads of each query below it."""
    yield from terminal.item("layouts", _describe_today(layouts))
    if layouts.because:
        yield from terminal.item(terminal.warn("! nothing tried"), layouts.because)
        return
    rows = _list_rows(layouts)
    width = min(max(len(name) for name, *_ in rows), _NAME_WIDTH)
    most = max(size for *_, size in rows)
    for name, files, read, change, size in rows:
        bar = draw_bar(size, most, terminal.bar_width)
        figures = f"{files:>9}  {read:>10} {bar:<{terminal.bar_width}}  {change}"
        if is_long := len(name) > width:
            yield f"    {name}"
        yield f"    {'' if is_long else name:<{width}}  {figures}".rstrip()
    tried = [point for point in layouts.points if point.problem is None]
    if len(tried) > _MAX_DETAILED:
        yield from terminal.detail("--format json has the reads of each query")
    for point in tried if len(tried) <= _MAX_DETAILED else ():
        yield from _query_lines(point, layouts, terminal)
    for problem, names in _group_problems(layouts):
        yield from terminal.item(terminal.warn("! not tried"), f"{names}: {problem}")


def _list_rows(layouts: LayoutComparison) -> list[tuple[str, str, str, str, int]]:
    """Return today and every tried layout: its name, files, bytes read, and those of today."""
    files = words.format_count(layouts.files, "file")
    rows = [("today", files, words.format_size(layouts.bytes_read), "", layouts.bytes_read)]
    for point in layouts.points:
        if point.files is not None:
            size, error = point.bytes_read, max((one.error for one in point.queries), default=0.0)
            change = f"{words.format_share(size, layouts.bytes_read)} ±{100 * error:.0f} %"
            files = words.format_count(point.files, "file")
            rows.append((point_name(point), files, words.format_size(size), change, size))
    return rows


def _group_problems(layouts: LayoutComparison) -> Iterator[tuple[str, str]]:
    """Yield every reason for which layouts were not tried, with their names."""
    problems: dict[str, list[str]] = {}
    for point in layouts.points:
        if point.problem is not None:
            problems.setdefault(point.problem, []).append(point_name(point))
    for problem, names in problems.items():
        yield problem, "; ".join(names)


def layout_rows(layouts: LayoutComparison) -> str:
    """Return the layouts as a table of Markdown."""
    if layouts.because:
        return f"\nLayouts: {escape_markdown(layouts.because)}\n"
    cells = "".join(
        f"| {escape_markdown(name)} | {files} | {read} | {escape_markdown(change)} |\n"
        for name, files, read, change, _ in _list_rows(layouts)
    )
    problems = "".join(
        f"\n{escape_markdown(f'{names}: {problem}')}\n"
        for problem, names in _group_problems(layouts)
    )
    head = "| layout | files | queries read | of today |\n|---|---:|---:|---:|\n"
    return f"\n{head}{cells}{problems}"


def point_name(point: LayoutPoint) -> str:
    """Return a layout in a few words."""
    order = f"{point.curve} on {', '.join(map(words.escape_text, point.columns))}"
    declared = " *" if point.is_declared else ""
    return f"{order if point.columns else 'no order'}, {words.format_size(point.target)}{declared}"


def _describe_today(layouts: LayoutComparison) -> str:
    files, size = words.format_count(layouts.files, "file"), words.format_size(layouts.bytes)
    today = f"{files}, {size} in newest file slices today"
    if layouts.sampled is None:
        return today if layouts.files else "nothing is known of the files"
    sampled = layouts.sampled
    groups = words.format_count(sampled.total_row_groups, "row group")
    rows = words.format_count(sampled.rows, "row")
    return (
        f"{today}; predicted from {words.format_number(sampled.row_groups)} of {groups} "
        f"({rows}). Files, bytes that all queries read, each once, and their share of today's "
        "(* as declared)"
    )


def _query_lines(
    point: LayoutPoint, layouts: LayoutComparison, terminal: Terminal
) -> Iterator[str]:
    """What each query reads today and in a layout."""
    yield from terminal.item("queries", f"{point_name(point)}:")
    pairs = zip(layouts.queries, point.queries, strict=True)
    sentences = [f"{then.query}: {_describe_query(now, then)}" for now, then in pairs]
    yield from terminal.details(sentences, _MAX_QUERIES, "query")


def _describe_query(now: SimulatedReads, then: SimulatedReads) -> str:
    files = words.format_count(then.files, "file")
    sizes = f"{words.format_size(now.bytes)} → {words.format_size(then.bytes)}"
    return f"{words.format_number(now.files)} → {files}, {sizes} ±{100 * then.error:.0f} %"
