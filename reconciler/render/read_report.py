"""The report of what a read touches, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler import canonical_json
from reconciler.reader.merge_report import MergeReport
from reconciler.reader.read_report import ReadReport, ReadStage
from reconciler.reader.row_group_counts import RowGroupCounts
from reconciler.render import words
from reconciler.render.terminal import Terminal

_READ_KINDS: Final = {
    "snapshot": "snapshot",
    "readOptimized": "read-optimised (log files are skipped)",
    "incremental": "incremental",
}
_STAGE_NAMES: Final = {"partitions": "partitions", "index": "the index"}
#: files that are named for people, of those with one decision
_MAX_FILES: Final = 3


def explanation_json(report: ReadReport) -> bytes:
    """Return what a read touches as canonical JSON and a newline."""
    return canonical_json.to_bytes(report.to_document()) + b"\n"


def explanation_text(report: ReadReport, terminal: Terminal) -> str:
    """Return what a read touches as text for people."""
    return "\n".join(_report_lines(report, terminal)) + "\n"


def _report_lines(report: ReadReport, terminal: Terminal) -> Iterator[str]:
    name = terminal.strong(words.escape_text(report.table))
    yield from terminal.title(name, f"{_READ_KINDS[report.kind]}, {_describe_view(report)}")
    yield from terminal.item("columns", _describe_columns(report))
    if report.where is not None:
        yield from terminal.item("where", report.where)
    total = words.format_count(report.partitions, "partition")
    kept = f"{words.format_number(report.kept_partitions)} of {total} read"
    yield from terminal.item("partitions", kept)
    base = _format_amount(report.base_files, "base file", report.base_bytes)
    logs = _format_amount(report.log_files, "log file", report.log_bytes)
    yield from terminal.item("files", f"{base}, {logs}")
    yield from terminal.item("by Spark's reader", words.format_count(report.direct_slices, "slice"))
    yield from terminal.item("through Python", words.format_count(report.python_slices, "slice"))
    for group in report.through_python:
        yield from terminal.detail(f"{words.format_count(group.slices, 'slice')}: {group.because}")
    if report.merging is not None:
        yield from terminal.item("merging", _describe_merging(report.merging))
    for sentence in report.damaged:
        yield from terminal.item("damaged", sentence)
    if report.where is not None:
        yield from _skipping_lines(report, terminal)


def _describe_merging(merging: MergeReport) -> str:
    """Return what is merged: base files and whole log files, with their rows if they are known."""
    slices = words.format_count(merging.slices, "slice")
    logs = _format_rows(
        _format_amount(merging.log_files, "log file", merging.log_bytes), merging.log_records
    )
    if not merging.base_files:
        return f"{slices} without base files: {logs}, read whole"
    base = _format_rows(
        _format_amount(merging.base_files, "base file", merging.base_bytes), merging.base_rows
    )
    return f"{slices}: {base} with {logs}, read whole"


def _format_rows(amount: str, rows: int | None) -> str:
    """Return an amount with the number of rows in its brackets.

    >>> _format_rows("2 log files (2.0 KiB)", 12), _format_rows("2 log files (2.0 KiB)", None)
    ('2 log files (2.0 KiB, 12 rows)', '2 log files (2.0 KiB)')
    """
    return amount if rows is None else f"{amount[:-1]}, {words.format_count(rows, 'row')})"


def _skipping_lines(report: ReadReport, terminal: Terminal) -> Iterator[str]:
    """Yield what is left after each stage, and how every slice was decided."""
    yield from terminal.item("stages", f"all: {_describe_stage(report.stages[0])}")
    for stage in report.stages[1:]:
        yield from terminal.detail(f"after {_STAGE_NAMES[stage.stage]}: {_describe_stage(stage)}")
    if report.row_groups is not None:
        yield from terminal.detail(_describe_row_groups(report.row_groups))
    yield from terminal.item("index", "none was used" if report.index is None else report.index)
    for problem in report.problems:
        yield from terminal.detail(problem)
    for group in report.decided:
        amount = _format_amount(group.slices, "slice", group.bytes)
        label = "read" if group.is_read else "skipped"
        yield from terminal.item(label, f"{amount}: {group.because}")
        for name in group.files[:_MAX_FILES]:
            yield from terminal.detail(name)
        if (rest := len(group.files) - _MAX_FILES) > 0:
            more = words.format_number(rest)
            yield from terminal.detail(f"… and {more} more; --format json lists all")


def _describe_stage(stage: ReadStage) -> str:
    base = _format_amount(stage.base_files, "base file", stage.base_bytes)
    return f"{base}, {_format_amount(stage.log_files, 'log file', stage.log_bytes)}"


def _format_amount(count: int, noun: str, size: int) -> str:
    return f"{words.format_count(count, noun)} ({words.format_size(size)})"


def _describe_row_groups(counts: RowGroupCounts) -> str:
    kept = f"{words.format_number(counts.kept_groups)} of {words.format_number(counts.groups)}"
    size = f"{words.format_size(counts.kept_bytes)} of {words.format_size(counts.bytes)}"
    total = words.format_count(counts.files, "base file")
    files = f"{words.format_number(counts.looked_at)} of {total}"
    return f"row groups: {kept} may match ({size}), by the footers of {files}"


def _describe_view(report: ReadReport) -> str:
    if report.as_of is None:
        return "no completed write yet"
    if report.begin is not None:
        return f"writes after {report.begin} up to {report.as_of}"
    return f"as of {report.as_of}"


def _describe_columns(report: ReadReport) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in report.columns) or "none"
