"""File sizes of a table for a terminal: small files, their partitions, and a simulated insert.

The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.terminal import Terminal, draw_count_bar

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
    from reconciler.layout.sizing.size_report import HistogramBar
    from reconciler.plans.file_sizes import FileSizeReport, InsertReport

_MAX_PARTITIONS: Final = 4
_MAX_NAME_WIDTH: Final = 40


def file_size_lines(table: TablePlan, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """Sizes, partitions with small files, what wrote them, and a simulated insert.

    A clustering shows the bars of its own. ``full``: every partition that the plan names.
    """
    report = table.file_sizes
    if report is None:
        return
    yield from terminal.item(_item_label(report, terminal), _describe_sizes(report))
    if table.layout is None:
        yield from _histogram_lines(report.state.histogram, terminal)
    yield from _partition_lines(report, terminal, full=full)
    yield from _operation_lines(report, terminal)
    if report.next_insert is not None:
        yield from _next_insert_lines(report.next_insert, terminal, full=full)


def small_file_line(table: TablePlan, terminal: Terminal) -> Iterator[str]:
    """One sentence if the table has small files; else nothing."""
    report = table.file_sizes
    if report is not None and report.state.small:
        yield from terminal.item(_item_label(report, terminal), _describe_sizes(report))


def _item_label(report: FileSizeReport, terminal: Terminal) -> str:
    paint = terminal.warn if report.state.small else terminal.good
    return paint("= file sizes")


def _describe_sizes(report: FileSizeReport) -> str:
    """The number of files, and how many of them are small."""
    state = report.state
    logs = ""
    if state.log_only:
        logs = f"; {words.format_count(state.log_only, 'more file slice')} with log files only"
    if not state.files:
        return f"no base files{logs}"
    size = words.format_size(state.bytes)
    small = f"{words.format_number(state.small)} small" if state.small else "none small"
    limits = (
        f"below {words.format_size(report.small_below)}; target {words.format_size(report.target)}"
    )
    return f"{words.format_count(state.files, 'base file')}, {size}; {small} ({limits}){logs}"


def _histogram_lines(bars: Sequence[HistogramBar], terminal: Terminal) -> Iterator[str]:
    """The size classes that have files, with bars."""
    found = [(_class_name(each), each.files) for each in bars if each.files]
    most = max((files for _, files in found), default=0)
    width = max((len(name) for name, _ in found), default=0)
    for name, files in found:
        bar = draw_count_bar(files, most, terminal.bar_width)
        yield f"      {name:<{width}}  {bar}".rstrip()


def _class_name(each: HistogramBar) -> str:
    if each.below is None:
        return f"{words.format_size(each.least)} and more"
    if not each.least:
        return f"below {words.format_size(each.below)}"
    return f"{words.format_size(each.least)} to {words.format_size(each.below)}"


def _partition_lines(report: FileSizeReport, terminal: Terminal, *, full: bool) -> Iterator[str]:
    known = report.state.partitions
    if not known or not any(each.partition for each in known):
        return
    is_short = full or report.small_partitions <= _MAX_PARTITIONS + 1
    worst = known if is_short else known[:_MAX_PARTITIONS]
    shown = sorted(worst, key=lambda each: each.partition or "")
    names = _padded_names([each.partition for each in shown])
    for name, each in zip(names, shown, strict=True):
        files = f"{words.format_number(each.small)} of {words.format_number(each.files)} small"
        held = (
            f", {words.format_number(each.pinned)} used by pending table services"
            if each.pinned
            else ""
        )
        yield f"      {name}  {files:>20}  {words.format_size(each.bytes):>10}{held}"
    rest = report.small_partitions - len(shown)
    if rest > 0:
        yield from terminal.detail(
            f"… and {words.format_count(rest, 'more partition')} with small files"
        )


def _padded_names(partitions: Sequence[str | None]) -> list[str]:
    """The paths, padded to one width."""
    plain = [words.escape_text(path or "") or "(root)" for path in partitions]
    width = min(max(map(len, plain), default=0), _MAX_NAME_WIDTH)
    return [f"{path:<{width}}" for path in plain]


def _operation_lines(report: FileSizeReport, terminal: Terminal) -> Iterator[str]:
    """The operations that wrote the files last: ``upsert 20 files (18 small)``."""
    found = report.state.operations
    if not found:
        return
    parts = []
    for each in found:
        name = words.escape_text(each.operation).lower().replace("_", " ")
        small = f" ({words.format_number(each.small)} small)" if each.small else ""
        parts.append(f"{name} {words.format_count(each.files, 'file')}{small}")
    yield from terminal.detail(f"written last by: {', '.join(parts)}")


def _next_insert_lines(simulated: InsertReport, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """The files that the rows of a simulated insert would go to."""
    label = terminal.good("= next insert")
    rows = words.format_count(simulated.rows, "row")
    if simulated.total is None:
        yield from terminal.item(label, f"{rows}, {simulated.because}")
        return
    many = words.format_count(simulated.partition_count, "partition")
    where = f" in {many}" if any(each.partition for each in simulated.partitions) else ""
    yield from terminal.item(label, f"{rows}{where}: {_describe_outlook(simulated.total)}")
    yield from terminal.detail(simulated.because)
    if simulated.partition_count <= 1:
        return
    known = simulated.partitions
    is_short = full or simulated.partition_count <= _MAX_PARTITIONS + 1
    worst = known if is_short else known[:_MAX_PARTITIONS]
    shown = sorted(worst, key=lambda each: each.partition or "")
    for name, each in zip(_padded_names([each.partition for each in shown]), shown, strict=True):
        rows = words.format_count(each.rows, "row")
        yield f"      {name}  {rows:>16}  {_describe_partition(each)}"
    rest = simulated.partition_count - len(shown)
    if rest > 0:
        yield from terminal.detail(f"… and {words.format_count(rest, 'more partition')}")


def _describe_outlook(outlook: InsertForecast) -> str:
    """``40 into 2 small files (then 1.0 MiB; 1.2 MiB rewritten), 5 into 1 new file (5 bytes)``."""
    parts = []
    if outlook.filled:
        again = f"; {words.format_size(outlook.rewritten)} rewritten" if outlook.rewritten else ""
        into = words.format_count(outlook.filled, "small file")
        then = f"then {_format_range(outlook.filled_sizes)}{again}"
        parts.append(f"{words.format_number(outlook.filled_rows)} into {into} ({then})")
    if outlook.new:
        rows = words.format_number(outlook.rows - outlook.filled_rows)
        into = words.format_count(outlook.new, "new file")
        parts.append(f"{rows} into {into} ({_format_range(outlook.new_sizes)})")
    small = ""
    if outlook.small:
        small = f"; {words.format_number(outlook.small)} of these files would still be small"
    return ", ".join(parts) + small


def _describe_partition(outlook: InsertForecast) -> str:
    """``2 filled to 120.0 MiB, 1 new of 9.8 MiB``."""
    filled = (
        f"{words.format_number(outlook.filled)} filled to {_format_range(outlook.filled_sizes)}"
    )
    new = f"{words.format_number(outlook.new)} new of {_format_range(outlook.new_sizes)}"
    parts = ((outlook.filled, filled), (outlook.new, new))
    return ", ".join(part for files, part in parts if files)


def _format_range(span: SizeRange | None) -> str:
    if span is None:
        return "nothing"
    least, most = words.format_size(span.least), words.format_size(span.most)
    return least if least == most else f"{least} to {most}"
