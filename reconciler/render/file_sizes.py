"""File sizes of a table for a terminal: small files, their partitions, and a simulated insert.

The lines are those of ``plan_text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.terminal import Terminal, draw_bars, limit_rows, name_rows

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
    from reconciler.layout.sizing.size_report import (
        FileSizeState,
        HistogramBar,
        PartitionSmallFiles,
    )
    from reconciler.plans.file_sizes import FileSizeReport, InsertReport

_MAX_PARTITIONS: Final = 4
_Partition = TypeVar("_Partition", "PartitionSmallFiles", "InsertForecast")


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
    logs = _describe_logs(state)
    if not state.files:
        return f"no base files{logs}"
    size = words.format_size(state.bytes)
    small = f"{words.format_number(state.small)} small" if state.small else "none small"
    below, target = words.format_size(report.small_below), words.format_size(report.target)
    files = words.format_count(state.files, "base file")
    return f"{files}, {size}; {small} (below {below}; target {target}){logs}"


def _describe_logs(state: FileSizeState) -> str:
    """``; 12 log files on 8 of them, 3.1 MiB``; nothing without log files."""
    text = ""
    if (logs := state.log_files) is not None:
        on = f" on {words.format_number(logs.slices)} of them" if logs.slices else ""
        count, size = words.format_count(logs.files, "log file"), words.format_size(logs.bytes)
        text = f"; {count}{on}, {size}"
    if state.log_only:
        text += f"; {words.format_count(state.log_only, 'more file slice')} with log files only"
    return text


def _histogram_lines(bars: Sequence[HistogramBar], terminal: Terminal) -> Iterator[str]:
    """The size classes that have files, with bars."""
    shown = [bar for bar in bars if bar.files]
    rows = [(words.format_size_class(bar.least, bar.below), bar.files) for bar in shown]
    yield from draw_bars(rows, terminal)


def _partition_lines(report: FileSizeReport, terminal: Terminal, *, full: bool) -> Iterator[str]:
    partitions = report.state.partitions
    if not any(part.partition for part in partitions):
        return
    shown = _select_shown(partitions, report.small_partitions, full=full)
    figures = []
    for part in shown:
        files = f"{words.format_number(part.small)} of {words.format_number(part.files)} small"
        used = f", {words.format_number(part.pinned)} used by pending table services"
        size = f"{words.format_size(part.bytes):>10}"
        figures.append(f"{files:>20}  {size}{used if part.pinned else ''}")
    yield from name_rows((part.partition for part in shown), figures)
    if (rest := report.small_partitions - len(shown)) > 0:
        more = words.format_count(rest, "more partition")
        yield from terminal.detail(f"… and {more} with small files")


def _select_shown(partitions: Sequence[_Partition], count: int, *, full: bool) -> list[_Partition]:
    """Return the first of ``count`` partitions, in the order of their paths."""
    limit = len(partitions) if full else limit_rows(count, _MAX_PARTITIONS)
    return sorted(partitions[:limit], key=lambda part: part.partition or "")


def _operation_lines(report: FileSizeReport, terminal: Terminal) -> Iterator[str]:
    """The operations that wrote the files last: ``upsert 20 files (18 small)``."""
    operations = report.state.operations
    if not operations:
        return
    parts = []
    for operation in operations:
        name = words.escape_text(operation.operation).lower().replace("_", " ")
        small = f" ({words.format_number(operation.small)} small)" if operation.small else ""
        parts.append(f"{name} {words.format_count(operation.files, 'file')}{small}")
    yield from terminal.detail(f"written last by: {', '.join(parts)}")


def _next_insert_lines(simulated: InsertReport, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """The files that the rows of a simulated insert would go to."""
    label = terminal.good("= next insert")
    rows = words.format_count(simulated.rows, "row")
    if simulated.total is None:
        yield from terminal.item(label, f"{rows}, {simulated.because}")
        return
    many = words.format_count(simulated.partition_count, "partition")
    where = f" in {many}" if any(part.partition for part in simulated.partitions) else ""
    yield from terminal.item(label, f"{rows}{where}: {_describe_outlook(simulated.total)}")
    yield from terminal.detail(simulated.because)
    if line := _describe_bytes(simulated):
        yield from terminal.detail(line)
    if simulated.partition_count <= 1:
        return
    shown = _select_shown(simulated.partitions, simulated.partition_count, full=full)
    figures = (
        f"{words.format_count(part.rows, 'row'):>16}  {_describe_partition(part)}" for part in shown
    )
    yield from name_rows((part.partition for part in shown), figures)
    if (rest := simulated.partition_count - len(shown)) > 0:
        yield from terminal.detail(f"… and {words.format_count(rest, 'more partition')}")


def _describe_bytes(simulated: InsertReport) -> str:
    """``writes 3.6 MiB for 1.2 MiB of rows; inserts like this one write 6.9 bytes per byte``."""
    total = simulated.total
    if total is None or total.written is None or not simulated.brought:
        return ""
    written = words.format_size(total.written)
    line = f"writes {written} for {words.format_size(simulated.brought)} of new rows"
    if simulated.written_per_byte is None:
        return line
    often = f"{simulated.written_per_byte:.1f}"
    return f"{line}; inserts like this one write {often} bytes per byte until files are full"


def _describe_outlook(outlook: InsertForecast) -> str:
    """``40 into 2 small files (then 1.0 MiB; 1.2 MiB rewritten), 5 into 1 new file (5 bytes)``."""
    parts = []
    if outlook.filled:
        again = f"; {words.format_size(outlook.rewritten)} rewritten" if outlook.rewritten else ""
        if outlook.merged:
            rows = (
                "the rows of one join"
                if outlook.merged == 1
                else (f"the rows of {words.format_number(outlook.merged)} join")
            )
            again += f"; {rows} another file"
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
    parts = (
        (outlook.filled, "filled to", outlook.filled_sizes),
        (outlook.new, "new of", outlook.new_sizes),
    )
    return ", ".join(
        f"{words.format_number(files)} {what} {_format_range(sizes)}"
        for files, what, sizes in parts
        if files
    )


def _format_range(span: SizeRange | None) -> str:
    if span is None:
        return "nothing"
    least, most = words.format_size(span.least), words.format_size(span.most)
    return least if least == most else f"{least} to {most}"
