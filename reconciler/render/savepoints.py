"""Savepoints in plans, results and statuses, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconciler.plans.savepoint_step import SavepointReport, SavepointStep
from reconciler.render import words
from reconciler.render.terminal import Terminal

if TYPE_CHECKING:
    from reconciler.executor.outcomes import SavepointOutcome
    from reconciler.executor.result import StepOutcome, TableResult
    from reconciler.status.model import SavepointStatus


def step_lines(step: SavepointStep, terminal: Terminal, refused_by: str) -> Iterator[str]:
    """The step with its instant, its files, its end and its reason."""
    is_new = step.change == "create"
    label, paint = ("+ savepoint", terminal.good) if is_new else ("- savepoint", terminal.warn)
    amount = _format_amount(step.files, step.bytes)
    what = "pins" if is_new else "no longer pins"
    until = ""
    if is_new:
        until = f", until {step.until}" if step.until else ", while it is declared"
    name = words.escape_text(step.name)
    yield from terminal.step(label, paint, f"{name} {what} {amount}{until}", refused_by)
    at = f"{step.instant} ({words.format_instant(step.instant)})"
    yield from terminal.detail(f"{at}: {words.escape_text(step.because)}")


def other_lines(reports: Iterable[SavepointReport], terminal: Terminal) -> Iterator[str]:
    """A line for each savepoint of other tools and people, with what only it keeps."""
    for report in reports:
        made = "" if report.made_ms is None else f", made {_format_day(report.made_ms)}"
        by = f" by {words.escape_text(report.made_by)}" if report.made_by else " of another tool"
        comment = f": {words.escape_text(report.comment)}" if report.comment else ""
        state = "" if report.is_completed else ", half made"
        at = f"{report.instant} ({words.format_instant(report.instant)})"
        alone = _describe_alone(report.files, report.bytes)
        yield from terminal.item("= savepoint", f"{at}{by}{made}{state}{comment}; {alone}")


def describe_savepoint(savepoint: SavepointStatus) -> str:
    """Return a savepoint of a table's status as one sentence."""
    pinned = "pins only files of the newest file slices"
    if not savepoint.is_completed:
        pinned = "is unfinished: the files it will pin are unknown"
    elif savepoint.pinned_files:
        amount = _format_amount(savepoint.pinned_files, savepoint.pinned_bytes)
        pinned = f"pins {amount}, besides the newest file slices"
    alone = ""
    if savepoint.freed_files is not None and savepoint.freed_bytes is not None:
        alone = f"; {_describe_alone(savepoint.freed_files, savepoint.freed_bytes)}"
    name = f"{words.escape_text(savepoint.name)}, " if savepoint.name else ""
    at = f"{name}{savepoint.instant} ({words.format_instant(savepoint.instant)})"
    return f"{at} {pinned}{alone}{_describe_maker(savepoint)}"


def describe_outcome(outcome: StepOutcome, done: SavepointOutcome) -> str:
    """Return what happened to a savepoint step, as one clause."""
    name = words.escape_text(done.name)
    if done.left is not None:
        what = "is not made" if done.change == "create" else "stays"
        return f"{name} {what}: {words.escape_text(done.left)}"
    if outcome.how == "nothing":
        return f"{name} was {'made' if done.change == 'create' else 'removed'} before"
    amount = _format_amount(done.files, done.bytes)
    if done.change == "remove":
        return f"removed {name}, which pinned {amount}"
    until = f" until {done.until}" if done.until else ""
    return f"made {name}, which pins {amount}{until}"


def sum_savepoints(tables: Iterable[TableResult]) -> str:
    """Return how many savepoints of all tables were made and removed; empty if none was."""
    done = [
        outcome.savepoint.change
        for table in tables
        for outcome in table.outcomes
        if outcome.savepoint is not None and outcome.how == "completed"
    ]
    return describe_counts(done.count("create"), done.count("remove"), "made", "removed")


def describe_counts(made: int, removed: int, make: str, remove: str) -> str:
    """Return numbers of savepoints with what happens to them; empty if there are none.

    >>> describe_counts(1, 2, "made", "removed"), describe_counts(0, 1, "to make", "to remove")
    ('1 savepoint made, 2 savepoints removed', '1 savepoint to remove')
    """
    counts = ((made, make), (removed, remove))
    return ", ".join(f"{words.format_count(n, 'savepoint')} {what}" for n, what in counts if n)


def _describe_alone(files: int, size: int) -> str:
    if not files:
        return "it keeps nothing that the retention does not keep"
    return f"it alone keeps {_format_amount(files, size)}"


def _describe_maker(savepoint: SavepointStatus) -> str:
    parts = []
    if savepoint.age_seconds is not None:
        parts.append(f"{words.format_duration(savepoint.age_seconds)} ago")
    if savepoint.made_by:
        parts.append(f"by {words.escape_text(savepoint.made_by)}")
    comment = ""
    if savepoint.comment and not savepoint.name:
        comment = f": {words.escape_text(savepoint.comment)}"
    return f"; made {' '.join(parts)}{comment}" if parts else ""


def _format_amount(files: int, size: int) -> str:
    return f"{words.format_count(files, 'file')}, {words.format_size(size)}"


def _format_day(epoch_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return f"at {epoch_ms}"
