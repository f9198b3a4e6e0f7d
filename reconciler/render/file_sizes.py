"""How big files are, for a terminal: a block a table, the worst partitions and the rest counted.

The lines are those of ``render.text``, of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import draw_count_bar, wrap_detail, wrap_item

if TYPE_CHECKING:
    from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
    from reconciler.layout.sizing.size_report import HistogramBar
    from reconciler.plans.file_sizes import FileSizeReport, InsertReport

_MAX_PARTITIONS: Final = 4
_MAX_NAME_WIDTH: Final = 40


def file_size_lines(table: TablePlan, paint: Paint, *, full: bool) -> Iterator[str]:
    """Sizes, partitions with small files and what wrote them; what was simulated below.

    No bars where those of a clustering are shown. ``full``: every partition that the plan names.
    """
    report = table.file_sizes
    if report is None:
        return
    yield from wrap_item(_item_label(report, paint), _describe_sizes(report))
    if table.layout is None:
        yield from _histogram_lines(report.state.histogram)
    yield from _partition_lines(report, full=full)
    yield from _operation_lines(report)
    if report.next_insert is not None:
        yield from _next_insert_lines(report.next_insert, paint, full=full)


def small_file_line(table: TablePlan, paint: Paint) -> Iterator[str]:
    """A sentence where files are small; nothing where none is."""
    report = table.file_sizes
    if report is not None and report.state.small:
        yield from wrap_item(_item_label(report, paint), _describe_sizes(report))


def _item_label(report: FileSizeReport, paint: Paint) -> str:
    paints = paint.warn if report.state.small else paint.good
    return paints("= file sizes")


def _describe_sizes(report: FileSizeReport) -> str:
    """How many files there are and how many of them are small."""
    state = report.state
    logs = ""
    if state.log_only:
        logs = f"; {words.format_count(state.log_only, 'more file slice')} of log files alone"
    if not state.files:
        return f"no base files{logs}"
    size = words.format_size(state.bytes)
    small = f"{words.format_number(state.small)} small" if state.small else "none small"
    limits = (
        f"below {words.format_size(report.small_below)}; target {words.format_size(report.target)}"
    )
    return f"{words.format_count(state.files, 'base file')}, {size}; {small} ({limits}){logs}"


def _histogram_lines(bars: Sequence[HistogramBar]) -> Iterator[str]:
    """The classes that have files, with bars."""
    found = [(_class_name(each), each.files) for each in bars if each.files]
    most = max((files for _, files in found), default=0)
    width = max((len(name) for name, _ in found), default=0)
    for name, files in found:
        yield f"      {name:<{width}}  {draw_count_bar(files, most)}".rstrip()


def _class_name(each: HistogramBar) -> str:
    if each.below is None:
        return f"{words.format_size(each.least)} and more"
    if not each.least:
        return f"below {words.format_size(each.below)}"
    return f"{words.format_size(each.least)} to {words.format_size(each.below)}"


def _partition_lines(report: FileSizeReport, *, full: bool) -> Iterator[str]:
    known = report.state.partitions
    if not known or not any(each.partition for each in known):
        return
    shown = (
        known if full or report.small_partitions <= _MAX_PARTITIONS + 1 else known[:_MAX_PARTITIONS]
    )
    names = _padded_names([each.partition for each in shown])
    for name, each in zip(names, shown, strict=True):
        files = f"{words.format_number(each.small)} of {words.format_number(each.files)} small"
        held = f", {words.format_number(each.pinned)} held by table services" if each.pinned else ""
        yield f"      {name}  {files:>20}  {words.format_size(each.bytes):>10}{held}"
    rest = report.small_partitions - len(shown)
    if rest > 0:
        yield from wrap_detail(
            f"… and {words.format_count(rest, 'more partition')} with small files"
        )


def _padded_names(partitions: Sequence[str | None]) -> list[str]:
    """Paths of one width."""
    plain = [words.escape_text(path or "") or "(root)" for path in partitions]
    width = min(max(map(len, plain), default=0), _MAX_NAME_WIDTH)
    return [f"{path:<{width}}" for path in plain]


def _operation_lines(report: FileSizeReport) -> Iterator[str]:
    """What wrote the files last: ``by upsert 20 files, 18 small``."""
    found = report.state.operations
    if not found:
        return
    parts = []
    for each in found:
        name = words.escape_text(each.operation).lower().replace("_", " ")
        small = f" ({words.format_number(each.small)} small)" if each.small else ""
        parts.append(f"{name} {words.format_count(each.files, 'file')}{small}")
    yield from wrap_detail(f"written last by: {', '.join(parts)}")


def _next_insert_lines(simulated: InsertReport, paint: Paint, *, full: bool) -> Iterator[str]:
    """Into how many files the rows that were asked about would go."""
    label = paint.good("= next insert")
    rows = words.format_count(simulated.rows, "row")
    if simulated.total is None:
        yield from wrap_item(label, f"{rows}, {simulated.because}")
        return
    many = words.format_count(simulated.partition_count, "partition")
    where = f" in {many}" if any(each.partition for each in simulated.partitions) else ""
    yield from wrap_item(label, f"{rows}{where}: {_describe_outlook(simulated.total)}")
    yield from wrap_detail(simulated.because)
    if simulated.partition_count <= 1:
        return
    known = simulated.partitions
    shown = (
        known
        if full or simulated.partition_count <= _MAX_PARTITIONS + 1
        else known[:_MAX_PARTITIONS]
    )
    for name, each in zip(_padded_names([each.partition for each in shown]), shown, strict=True):
        yield f"      {name}  {words.format_count(each.rows, 'row'):>16}  {_describe_partition(each)}"
    rest = simulated.partition_count - len(shown)
    if rest > 0:
        yield from wrap_detail(f"… and {words.format_count(rest, 'more partition')}")


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
    left = f"; {words.format_number(outlook.small)} of them small then" if outlook.small else ""
    return ", ".join(parts) + left


def _describe_partition(outlook: InsertForecast) -> str:
    """``2 filled to 120.0 MiB, 1 new of 9.8 MiB``."""
    filled = (
        f"{words.format_number(outlook.filled)} filled to {_format_range(outlook.filled_sizes)}"
    )
    new = f"{words.format_number(outlook.new)} new of {_format_range(outlook.new_sizes)}"
    parts = ((outlook.filled, filled), (outlook.new, new))
    return ", ".join(said for files, said in parts if files)


def _format_range(span: SizeRange | None) -> str:
    if span is None:
        return "nothing"
    least, most = words.format_size(span.least), words.format_size(span.most)
    return least if least == most else f"{least} to {most}"
