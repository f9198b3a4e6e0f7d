"""What a clustering did, for people: files before and after, and the groups that stayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.apply.result import LeftGroup, Rewritten, StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint
from reconciler.state.measured import Measured

_SHOWN: Final = 5
#: queries of which it is said what they read
_QUERIES: Final = 10


def what_was_rewritten(outcome: StepOutcome, done: Rewritten) -> str:
    """One clause: what became of a clustering."""
    took = f", in {words.span(outcome.seconds)}" if outcome.seconds >= 1 else ""
    gone = f", {words.count(done.gone, 'group')} rewritten before" if done.gone else ""
    match outcome.how:
        case "completed":
            return f"{_became(done)}{gone}{took}"
        case "adopted":
            return f"completed by another writer: {_became(done)}{gone}"
        case "undone":
            return "no group of it could be rewritten, so the pending instant was removed"
        case "inflight":
            return "it stays inflight until the next apply"
        case "failed":
            return "nothing was rewritten: a file of it is damaged"
        case "nothing":
            return f"nothing to do any more{gone}"


def _became(done: Rewritten) -> str:
    before = f"{words.count(done.files_before, 'file')}, {words.size(done.bytes_read)}"
    after = f"{words.count(done.files_after, 'file')}, {words.size(done.bytes_written)}"
    return f"rewrote {before}, into {after}; {words.count(done.rows, 'row')}"


def of_rewritten(done: Rewritten, paint: Paint) -> Iterator[str]:
    """Lines below that clause: what else there is to say, and what stayed."""
    if done.splits:
        files = words.count(done.splits, "file")
        yield from more(f"{files} more than planned, because others grew too large")
    for one in done.queries[:_QUERIES]:
        yield from more(measured_line(one))
    if len(done.queries) > _QUERIES:
        yield from more(
            f"… and {words.count(len(done.queries) - _QUERIES, 'more query', 'more queries')}"
        )
    if done.unmeasured is not None:
        yield from item(paint.warn("! warning"), done.unmeasured)
    if done.left:
        stayed = f"{words.count(len(done.left), 'group')} of the plan stayed"
        yield from item(paint.warn("! left out"), stayed)
        for left in done.left[:_SHOWN]:
            yield from more(left_line(left))
        if len(done.left) > _SHOWN:
            yield from more(f"… and {words.count(len(done.left) - _SHOWN, 'more group')}")


def measured_line(one: Measured) -> str:
    """What a query reads now, and what the plan said that it would.

    >>> measured_line(Measured(query="one customer", files=2, bytes=2048, of_files=31,
    ...     of_bytes=40960, predicted_files=3, predicted_bytes=3072))
    'query one customer reads 2 of 31 files, 2.0 KiB (5 %); predicted: 3 files, 3.0 KiB'
    """
    new = "new " if one.unread else ""
    said = f"{words.number(one.files)} of {words.count(one.of_files, f'{new}file')}"
    share = words.share(one.bytes, one.of_bytes)
    found = f"query {one.query} reads {said}, {words.size(one.bytes)} ({share})"
    if one.unread:
        others = words.count(one.unread, "other file")
        found += f"; {others} were too many to look at"
    if one.predicted_files is None or one.predicted_bytes is None:
        return found
    files = words.count(one.predicted_files, "file")
    return f"{found}; predicted: {files}, {words.size(one.predicted_bytes)}"


def left_line(left: LeftGroup) -> str:
    """Which group stayed and why."""
    where = f" of {left.partition}" if left.partition else ""
    return f"{words.count(left.slices, 'file slice')}{where}: {left.because}"


def all_rewritten(tables: Iterable[TableResult]) -> str:
    """What the clusterings of all tables did together; nothing where there were none."""
    done = [one for table in tables for one in table.rewritten if one.files_before]
    if not done:
        return ""
    before = words.count(sum(one.files_before for one in done), "file")
    size = words.size(sum(one.bytes_read for one in done))
    after = words.count(sum(one.files_after for one in done), "file")
    return f"{before} ({size}) rewritten into {after}"
