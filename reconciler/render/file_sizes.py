"""How big files are, for a terminal: a block a table, the worst partitions and the rest counted.

The lines are those of ``render.text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.plan.model import TablePlan
from reconciler.render import words
from reconciler.render.lines import bar, item, more
from reconciler.render.paint import Paint

if TYPE_CHECKING:
    from reconciler.plan.sizes import FileSizeReport, Simulated
    from reconciler.sizing.report import Bar
    from reconciler.sizing.simulate import Outlook, Span

_TOP: Final = 4
_WIDEST: Final = 40


def lines(table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    """Sizes, partitions with small files and what wrote them; what was simulated below.

    No bars where those of a clustering are shown. ``full``: every partition that the plan names.
    """
    report = table.file_sizes
    if report is None:
        return
    yield from item(_label(report, paint), _summary(report))
    if table.layout is None:
        yield from _histogram(report.state.histogram)
    yield from _partitions(report, full=full)
    yield from _operations(report)
    if report.next_insert is not None:
        yield from _next(report.next_insert, paint, full=full)


def short(table: TablePlan, paint: Paint) -> Iterator[str]:
    """A sentence where files are small; nothing where none is."""
    report = table.file_sizes
    if report is not None and report.state.small:
        yield from item(_label(report, paint), _summary(report))


def _label(report: FileSizeReport, paint: Paint) -> str:
    paints = paint.warn if report.state.small else paint.good
    return paints("= file sizes")


def _summary(report: FileSizeReport) -> str:
    """How many files there are and how many of them are small."""
    state = report.state
    logs = ""
    if state.log_only:
        logs = f"; {words.count(state.log_only, 'more file slice')} of log files alone"
    if not state.files:
        return f"no base files{logs}"
    size = words.size(state.bytes)
    small = f"{words.number(state.small)} small" if state.small else "none small"
    limits = f"below {words.size(report.small_below)}; target {words.size(report.target)}"
    return f"{words.count(state.files, 'base file')}, {size}; {small} ({limits}){logs}"


def _histogram(bars: Sequence[Bar]) -> Iterator[str]:
    """The classes that have files, with bars."""
    found = [(_class(each), each.files) for each in bars if each.files]
    most = max((files for _, files in found), default=0)
    width = max((len(name) for name, _ in found), default=0)
    for name, files in found:
        yield f"      {name:<{width}}  {bar(files, most)}".rstrip()


def _class(each: Bar) -> str:
    if each.below is None:
        return f"{words.size(each.least)} and more"
    if not each.least:
        return f"below {words.size(each.below)}"
    return f"{words.size(each.least)} to {words.size(each.below)}"


def _partitions(report: FileSizeReport, *, full: bool) -> Iterator[str]:
    known = report.state.partitions
    if not known or not any(each.partition for each in known):
        return
    shown = known if full or report.small_partitions <= _TOP + 1 else known[:_TOP]
    names = _names([each.partition for each in shown])
    for name, each in zip(names, shown, strict=True):
        files = f"{words.number(each.small)} of {words.number(each.files)} small"
        held = f", {words.number(each.pinned)} held by table services" if each.pinned else ""
        yield f"      {name}  {files:>20}  {words.size(each.bytes):>10}{held}"
    rest = report.small_partitions - len(shown)
    if rest > 0:
        yield from more(f"… and {words.count(rest, 'more partition')} with small files")


def _names(partitions: Sequence[str | None]) -> list[str]:
    """Paths of one width."""
    plain = [words.plain(path or "") or "(root)" for path in partitions]
    width = min(max(map(len, plain), default=0), _WIDEST)
    return [f"{path:<{width}}" for path in plain]


def _operations(report: FileSizeReport) -> Iterator[str]:
    """What wrote the files last: ``by upsert 20 files, 18 small``."""
    found = report.state.operations
    if not found:
        return
    parts = []
    for each in found:
        name = words.plain(each.operation).lower().replace("_", " ")
        small = f" ({words.number(each.small)} small)" if each.small else ""
        parts.append(f"{name} {words.count(each.files, 'file')}{small}")
    yield from more(f"written last by: {', '.join(parts)}")


def _next(simulated: Simulated, paint: Paint, *, full: bool) -> Iterator[str]:
    """Into how many files the rows that were asked about would go."""
    label = paint.good("= next insert")
    rows = words.count(simulated.rows, "row")
    if simulated.total is None:
        yield from item(label, f"{rows}, {simulated.because}")
        return
    many = words.count(simulated.into, "partition")
    where = f" in {many}" if any(each.partition for each in simulated.partitions) else ""
    yield from item(label, f"{rows}{where}: {_outlook(simulated.total)}")
    yield from more(simulated.because)
    if simulated.into <= 1:
        return
    known = simulated.partitions
    shown = known if full or simulated.into <= _TOP + 1 else known[:_TOP]
    for name, each in zip(_names([each.partition for each in shown]), shown, strict=True):
        yield f"      {name}  {words.count(each.rows, 'row'):>16}  {_briefly(each)}"
    rest = simulated.into - len(shown)
    if rest > 0:
        yield from more(f"… and {words.count(rest, 'more partition')}")


def _outlook(outlook: Outlook) -> str:
    """``40 into 2 small files (then 1.0 MiB; 1.2 MiB rewritten), 5 into 1 new file (5 bytes)``."""
    parts = []
    if outlook.filled:
        again = f"; {words.size(outlook.rewritten)} rewritten" if outlook.rewritten else ""
        into = words.count(outlook.filled, "small file")
        then = f"then {_span(outlook.filled_to)}{again}"
        parts.append(f"{words.number(outlook.filled_rows)} into {into} ({then})")
    if outlook.new:
        rows = words.number(outlook.rows - outlook.filled_rows)
        into = words.count(outlook.new, "new file")
        parts.append(f"{rows} into {into} ({_span(outlook.new_of)})")
    left = f"; {words.number(outlook.small)} of them small then" if outlook.small else ""
    return ", ".join(parts) + left


def _briefly(outlook: Outlook) -> str:
    """``2 filled to 120.0 MiB, 1 new of 9.8 MiB``."""
    filled = f"{words.number(outlook.filled)} filled to {_span(outlook.filled_to)}"
    new = f"{words.number(outlook.new)} new of {_span(outlook.new_of)}"
    parts = ((outlook.filled, filled), (outlook.new, new))
    return ", ".join(said for files, said in parts if files)


def _span(span: Span | None) -> str:
    if span is None:
        return "nothing"
    least, most = words.size(span.least), words.size(span.most)
    return least if least == most else f"{least} to {most}"
