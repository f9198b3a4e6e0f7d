"""What stops an apply before it touches anything."""

from __future__ import annotations

from reconciler.apply import metadata
from reconciler.apply.table import Look, RefusedError, Table
from reconciler.errors import BusyError
from reconciler.hudi.instant import WRITES, Action
from reconciler.plan.model import Note
from reconciler.transaction.lock import NoLock


def refuse(table: Table, look: Look) -> None:
    """Raises RefusedError for what forbids the work, BusyError for what only delays it."""
    state = look.state
    notes = list(look.plan.refusals)
    for instant in state.timeline.pending({Action.RESTORE}):
        notes.append(
            Note(
                "pendingRestore",
                f"restore {instant.requested} is half done, so no reading of the table is right; "
                "let a Hudi writer finish it",
            )
        )
    writes = state.timeline.pending(WRITES)
    if isinstance(table.lock, NoLock) and state.metadata_partitions and writes:
        notes.append(
            Note(
                "lock",
                f"{writes[0].action} {writes[0].requested} is pending, the metadata table is live, "
                "and without a lock both would write it; configure spec.concurrency.lock or wait",
            )
        )
    if notes:
        raise RefusedError(tuple(dict.fromkeys(notes)))
    metadata.check_syncable(table.properties)


def stop_for_pending_cleans(look: Look) -> None:
    """Raises BusyError while another clean is on its way: it was not there when we began."""
    for clean in look.state.pending_cleans:
        raise BusyError(
            f"{look.plan.name}: clean {clean.instant} is {clean.state.lower()}; two cleans must not "
            "run at once, apply again when it is done"
        )
