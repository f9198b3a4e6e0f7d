"""What a clustering did, for people: files before and after, and the groups that stayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.executor.result import ClusterOutcome, LeftGroup, StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.paint import Paint
from reconciler.render.wrapping import wrap_detail, wrap_item
from reconciler.state.measured_queries import MeasuredQuery

_MAX_GROUPS: Final = 5
#: queries of which it is said what they read
_MAX_QUERIES: Final = 10


def describe_rewrite(outcome: StepOutcome, done: ClusterOutcome) -> str:
    """One clause: what became of a clustering."""
    took = f", in {words.format_duration(outcome.seconds)}" if outcome.seconds >= 1 else ""
    gone = f", {words.format_count(done.gone, 'group')} rewritten before" if done.gone else ""
    match outcome.how:
        case "completed":
            return f"{_describe_files(done)}{gone}{took}"
        case "adopted":
            return f"completed by another writer: {_describe_files(done)}{gone}"
        case "undone":
            return "no group of it could be rewritten, so the pending instant was removed"
        case "inflight":
            return "it stays inflight until the next apply"
        case "failed":
            return "nothing was rewritten: a file of it is damaged"
        case "nothing":
            return f"nothing to do any more{gone}"


def _describe_files(done: ClusterOutcome) -> str:
    before = (
        f"{words.format_count(done.files_before, 'file')}, {words.format_size(done.bytes_read)}"
    )
    after = (
        f"{words.format_count(done.files_after, 'file')}, {words.format_size(done.bytes_written)}"
    )
    return f"rewrote {before}, into {after}; {words.format_count(done.rows, 'row')}"


def rewrite_lines(done: ClusterOutcome, paint: Paint) -> Iterator[str]:
    """Lines below that clause: what else there is to say, and what stayed."""
    if done.splits:
        files = words.format_count(done.splits, "file")
        yield from wrap_detail(f"{files} more than planned, because others grew too large")
    for one in done.queries[:_MAX_QUERIES]:
        yield from wrap_detail(describe_measured_query(one))
    if len(done.queries) > _MAX_QUERIES:
        yield from wrap_detail(
            f"… and {words.format_count(len(done.queries) - _MAX_QUERIES, 'more query', 'more queries')}"
        )
    if done.unmeasured is not None:
        yield from wrap_item(paint.warn("! warning"), done.unmeasured)
    if done.left:
        stayed = f"{words.format_count(len(done.left), 'group')} of the plan stayed"
        yield from wrap_item(paint.warn("! left out"), stayed)
        for left in done.left[:_MAX_GROUPS]:
            yield from wrap_detail(describe_left_group(left))
        if len(done.left) > _MAX_GROUPS:
            yield from wrap_detail(
                f"… and {words.format_count(len(done.left) - _MAX_GROUPS, 'more group')}"
            )


def describe_measured_query(query: MeasuredQuery) -> str:
    """What a query reads now, and what the plan said that it would.

    >>> measured_line(Measured(query="one customer", files=2, bytes=2048, of_files=31,
    ...     of_bytes=40960, predicted_files=3, predicted_bytes=3072))
    'query one customer reads 2 of 31 files, 2.0 KiB (5 %); predicted: 3 files, 3.0 KiB'
    """
    new = "new " if query.unread else ""
    said = (
        f"{words.format_number(query.files)} of {words.format_count(query.of_files, f'{new}file')}"
    )
    share = words.format_share(query.bytes, query.of_bytes)
    found = f"query {query.query} reads {said}, {words.format_size(query.bytes)} ({share})"
    if query.unread:
        others = words.format_count(query.unread, "other file")
        found += f"; {others} were too many to look at"
    if query.predicted_files is None or query.predicted_bytes is None:
        return found
    files = words.format_count(query.predicted_files, "file")
    return f"{found}; predicted: {files}, {words.format_size(query.predicted_bytes)}"


def describe_left_group(group: LeftGroup) -> str:
    """Which group stayed and why."""
    where = f" of {group.partition}" if group.partition else ""
    return f"{words.format_count(group.slices, 'file slice')}{where}: {group.because}"


def sum_rewrites(tables: Iterable[TableResult]) -> str:
    """What the clusterings of all tables did together; nothing where there were none."""
    done = [one for table in tables for one in table.rewritten if one.files_before]
    if not done:
        return ""
    before = words.format_count(sum(one.files_before for one in done), "file")
    size = words.format_size(sum(one.bytes_read for one in done))
    after = words.format_count(sum(one.files_after for one in done), "file")
    return f"{before} ({size}) rewritten into {after}"
