"""The result of repairing or verifying the metadata table for people."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.executor.outcomes import MetadataOutcome
from reconciler.executor.result import StepOutcome, TableResult
from reconciler.hudi.metadata.table import FILES
from reconciler.render import words


def describe_repair(outcome: StepOutcome, done: MetadataOutcome) -> str:
    """Return what happened to the metadata table, as one clause."""
    took = words.format_time_taken(outcome.seconds)
    if done.rebuilt:
        names = "the metadata table" if FILES in done.rebuilt else " and ".join(done.rebuilt)
        return f"rebuilt {names}{took}"
    if done.dropped:
        names = "the metadata table" if FILES in done.dropped else " and ".join(done.dropped)
        return f"dropped {names}; readers list and open files instead{took}"
    if done.compared == 0 and not outcome.differences:
        return "nothing to verify"
    if done.compared is not None:
        entries = words.format_number(done.compared)
        found = "new differences" if outcome.differences else "no new difference"
        return f"verified {entries} entries of the metadata table: {found}{took}"
    return "nothing left to do" if not outcome.warnings else "not verified"


def sum_repairs(tables: Iterable[TableResult]) -> str:
    """Return how many metadata tables were repaired; empty if none was."""
    done = sum(
        any(
            one.repaired and (one.repaired.dropped or one.repaired.rebuilt)
            for one in table.outcomes
        )
        for table in tables
    )
    return f"{words.format_count(done, 'metadata table')} repaired" if done else ""
