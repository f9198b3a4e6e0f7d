"""What a clustering did, for people: files before and after, and the groups that stayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.apply.result import LeftGroup, Rewritten, StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.lines import item, more
from reconciler.render.paint import Paint

_SHOWN: Final = 5


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
    if done.left:
        stayed = f"{words.count(len(done.left), 'group')} of the plan stayed"
        yield from item(paint.warn("! left out"), stayed)
        for left in done.left[:_SHOWN]:
            yield from more(left_line(left))
        if len(done.left) > _SHOWN:
            yield from more(f"… and {words.count(len(done.left) - _SHOWN, 'more group')}")


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
