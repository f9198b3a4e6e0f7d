"""A deletion of partitions for a terminal: what goes, and what an apply deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.plans.partition_deletion import DeletePartitionStep, ExpiredPartition
from reconciler.render import words
from reconciler.render.terminal import Terminal, limit_rows, name_rows

if TYPE_CHECKING:
    from reconciler.executor.outcomes import DeletionOutcome
    from reconciler.executor.result import StepOutcome, TableResult

_MAX_PARTITIONS: Final = 8
_MAX_LEFT: Final = 5


def step_lines(
    step: DeletePartitionStep, terminal: Terminal, refused_by: str, *, full: bool
) -> Iterator[str]:
    """The amount, the time that the partitions hold, and the partitions themselves.

    ``full`` lists every partition with its reason.
    """
    yield from terminal.step("- deletePartition", terminal.bad, _format_amount(step), refused_by)
    yield from terminal.detail(describe_span(step.partitions))
    yield from terminal.detail(
        "their files stay until a clean, and are read as of before till then"
    )
    if full:
        for partition in step.partitions:
            yield f"        - {_describe_partition(partition)}"
        return
    yield from _partition_lines(step.partitions, terminal)


def describe_span(partitions: Sequence[ExpiredPartition]) -> str:
    """Return the time that partitions hold by their paths, or between their newest writes."""
    dates = [partition.date for partition in partitions if partition.date is not None]
    if dates:
        first, last = min(dates), max(dates)
        return f"data of {first}" if first == last else f"data of {first} to {last}"
    writes = [partition.last_commit for partition in partitions]
    first, last = (words.format_instant(instant) for instant in (min(writes), max(writes)))
    return f"last written {first}" if first == last else f"last written {first} to {last}"


def describe_deletion(outcome: StepOutcome, deletion: DeletionOutcome) -> str:
    """Return in one sentence what a deletion of partitions did."""
    gone = ""
    if deletion.gone:
        gone = f", {words.format_count(deletion.gone, 'partition')} already deleted"
    if outcome.how != "completed":
        return f"nothing left to do{gone}" if not deletion.left else f"nothing was deleted{gone}"
    amount = words.format_count(len(deletion.partitions), "partition")
    files = words.format_count(deletion.files, "file")
    size = words.format_size(deletion.bytes)
    took = words.format_time_taken(outcome.seconds)
    return f"deleted {amount}; a clean removes the {files}, {size}, later{gone}{took}"


def deletion_lines(deletion: DeletionOutcome, terminal: Terminal) -> Iterator[str]:
    """The partitions that stay, with the most frequent reasons."""
    if not deletion.left:
        return
    amount = words.format_count(len(deletion.left), "partition")
    yield from terminal.item(terminal.warn("! skipped"), f"{amount} of the plan")
    sentences = [f"{left.path}: {left.because}" for left in deletion.left]
    yield from terminal.details(sentences, _MAX_LEFT, "partition")


def sum_deletions(tables: Iterable[TableResult]) -> str:
    """Return how many partitions of all tables were deleted; empty if none was."""
    outcomes = (outcome.deletion for table in tables for outcome in table.outcomes)
    done = sum(len(deletion.partitions) for deletion in outcomes if deletion is not None)
    return f"{words.format_count(done, 'partition')} deleted" if done else ""


def _format_amount(step: DeletePartitionStep) -> str:
    partitions = step.partitions
    amount = words.format_count(len(partitions), "partition")
    files = words.format_count(sum(partition.files for partition in partitions), "file")
    size = words.format_size(sum(partition.bytes for partition in partitions))
    return f"{amount}, {_format_rows(partitions)}, {files}, {size}"


def _format_rows(partitions: Sequence[ExpiredPartition]) -> str:
    """Return the number of rows; "at least" if that of some partitions is unknown."""
    known = [partition.rows for partition in partitions if partition.rows is not None]
    if not known:
        return "rows unknown"
    least = "" if len(known) == len(partitions) else "at least "
    return f"{least}{words.format_count(sum(known), 'row')}"


def _describe_partition(partition: ExpiredPartition) -> str:
    rows = "" if partition.rows is None else f"{words.format_count(partition.rows, 'row')}, "
    files, size = words.format_count(partition.files, "file"), words.format_size(partition.bytes)
    because = words.escape_text(partition.because)
    return f"{words.escape_text(partition.path)}  {rows}{files}, {size}: {because}"


def _partition_lines(partitions: Sequence[ExpiredPartition], terminal: Terminal) -> Iterator[str]:
    """The biggest partitions, in the order of their paths."""
    limit = limit_rows(len(partitions), _MAX_PARTITIONS)
    by_size = sorted(partitions, key=lambda partition: (-partition.bytes, partition.path))
    shown = sorted(by_size[:limit], key=lambda partition: partition.path)
    figures = (
        f"{words.format_count(partition.files, 'file'):>13}  "
        f"{words.format_size(partition.bytes):>10}"
        for partition in shown
    )
    yield from name_rows((partition.path for partition in shown), figures)
    if rest := by_size[limit:]:
        amount = words.format_count(sum(partition.files for partition in rest), "file")
        size = words.format_size(sum(partition.bytes for partition in rest))
        more = words.format_count(len(rest), "more partition")
        yield from terminal.detail(f"… and {more} ({amount}, {size}); show --full lists all")
