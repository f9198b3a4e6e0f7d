"""The result of an archival for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.executor.outcomes import ArchiveOutcome
from reconciler.executor.result import StepOutcome, TableResult
from reconciler.render import words
from reconciler.render.terminal import Terminal

_MAX_LEFT: Final = 3


def describe_archival(outcome: StepOutcome, done: ArchiveOutcome) -> str:
    """Return what happened to an archive step, as one clause."""
    parts = [f"archived {words.format_count(done.instants, 'instant')}"] if done.instants else []
    if done.metadata_table:
        verb = "" if parts else "archived "
        amount = words.format_count(done.metadata_table, "instant")
        parts.append(f"{verb}{amount} of the metadata table")
    if done.merges:
        parts.append(f"merged small files {words.format_count(done.merges, 'time')}")
    if done.leftovers:
        parts.append(f"removed {words.format_count(done.leftovers, 'leftover')}")
    clause = ", ".join(parts) or "nothing left to do"
    gone = f", {words.format_count(done.gone, 'instant')} already archived" if done.gone else ""
    took = words.format_time_taken(outcome.seconds) if parts else ""
    return f"{clause}{gone}{took}"


def archival_lines(done: ArchiveOutcome, terminal: Terminal) -> Iterator[str]:
    """The lines below that clause: reviewed instants that stay active."""
    if done.left:
        label = terminal.warn("! skipped")
        amount = words.format_count(len(done.left), "instant")
        yield from terminal.item(label, f"{amount} of the plan")
        yield from terminal.details(list_left_reasons(done), _MAX_LEFT, "reason")


def list_left_reasons(done: ArchiveOutcome) -> list[str]:
    """Return each reason why reviewed instants stay, with their number."""
    counts = Counter(one.because for one in done.left)
    return [f"{words.format_count(n, 'instant')}: {because}" for because, n in counts.items()]


def sum_archivals(tables: Iterable[TableResult]) -> str:
    """Return how many instants of all tables were archived; empty if none was."""
    done = sum(
        outcome.archived.instants
        for table in tables
        for outcome in table.outcomes
        if outcome.archived is not None
    )
    return f"{words.format_count(done, 'instant')} archived" if done else ""
