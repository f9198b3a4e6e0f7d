"""The result of a clustering for people: files before and after, and the skipped groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from reconciler.render import words
from reconciler.render.terminal import Terminal
from reconciler.state.measured_queries import MeasuredQuery

if TYPE_CHECKING:
    from reconciler.executor.outcomes import ClusterOutcome, LeftGroup
    from reconciler.executor.result import StepOutcome, TableResult

_MAX_GROUPS: Final = 5
_MAX_QUERIES: Final = 10


def describe_rewrite(outcome: StepOutcome, done: ClusterOutcome) -> str:
    """Return what happened to a clustering, as one clause."""
    again = f", {words.format_count(done.gone, 'group')} already rewritten" if done.gone else ""
    files = f"{_describe_files(done)}{again}"
    return {
        "completed": f"{files}{words.format_time_taken(outcome.seconds)}",
        "adopted": f"completed by another writer: {files}",
        "undone": "no group could be rewritten, so the pending instant was removed",
        "inflight": "it stays inflight until the next apply",
        "failed": "nothing was rewritten, because a file is damaged",
        "nothing": f"nothing left to do{again}",
    }[outcome.how]


def _describe_files(done: ClusterOutcome) -> str:
    files = words.format_count(done.files_before, "file")
    before = f"{files}, {words.format_size(done.bytes_read)}"
    files = words.format_count(done.files_after, "file")
    after = f"{files}, {words.format_size(done.bytes_written)}"
    return f"rewrote {before}, into {after}; {words.format_count(done.rows, 'row')}"


def rewrite_lines(done: ClusterOutcome, terminal: Terminal) -> Iterator[str]:
    """The lines below that clause: splits, measured queries, and skipped groups."""
    if done.splits:
        files = words.format_count(done.splits, "file")
        yield from terminal.detail(f"{files} more than planned, because others grew too large")
    queries = [describe_measured_query(query) for query in done.queries]
    yield from terminal.details(queries, _MAX_QUERIES, "query")
    if done.unmeasured is not None:
        yield from terminal.item(terminal.warn("! warning"), done.unmeasured)
    if done.left:
        groups = f"{words.format_count(len(done.left), 'group')} of the plan"
        yield from terminal.item(terminal.warn("! skipped"), groups)
        left = [describe_left_group(group) for group in done.left]
        yield from terminal.details(left, _MAX_GROUPS, "group")


def describe_measured_query(query: MeasuredQuery) -> str:
    """Return what a query reads now, and what the plan had predicted.

    >>> describe_measured_query(MeasuredQuery(query="one customer", files=2, bytes=2048,
    ...     of_files=31, of_bytes=40960, predicted_files=3, predicted_bytes=3072))
    'query one customer reads 2 of 31 files, 2.0 KiB (5 %); predicted: 3 files, 3.0 KiB'
    """
    noun = "new file" if query.unread else "file"
    files = f"{words.format_number(query.files)} of {words.format_count(query.of_files, noun)}"
    share = words.format_share(query.bytes, query.of_bytes)
    reads = f"query {query.query} reads {files}, {words.format_size(query.bytes)} ({share})"
    if query.unread:
        others = words.format_count(query.unread, "other file")
        reads += f"; {others} not measured, because there are too many"
    if query.predicted_files is None or query.predicted_bytes is None:
        return reads
    predicted = words.format_count(query.predicted_files, "file")
    return f"{reads}; predicted: {predicted}, {words.format_size(query.predicted_bytes)}"


def describe_left_group(group: LeftGroup) -> str:
    """Return which group was skipped, and why."""
    where = f" of {group.partition}" if group.partition else ""
    return f"{words.format_count(group.slices, 'file slice')}{where}: {group.because}"


def sum_rewrites(tables: Iterable[TableResult]) -> str:
    """Return what the clusterings of all tables did together; empty if there were none."""
    done = [result for table in tables for result in table.rewritten if result.files_before]
    if not done:
        return ""
    before = words.format_count(sum(result.files_before for result in done), "file")
    size = words.format_size(sum(result.bytes_read for result in done))
    after = words.format_count(sum(result.files_after for result in done), "file")
    return f"{before} ({size}) rewritten into {after}"
