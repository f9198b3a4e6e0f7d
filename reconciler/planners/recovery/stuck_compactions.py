"""Say what pending compactions hold back that nobody finishes; pure."""

from __future__ import annotations

from reconciler import units
from reconciler.hudi.timeline.heartbeat import is_silent
from reconciler.hudi.timeline.instant import Action
from reconciler.planners.recovery.failed_files import format_ms
from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.plans.model import KeptFiles, Note
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState

_RULE = "pendingCompaction"


def warn_of_stuck_compactions(
    spec: TableSpec, state: TableState, kept: KeptFiles | None
) -> tuple[Note, ...]:
    """Return a warning for each compaction without a change for ``concurrency.pending.after``.

    Only if the spec has that block. ``kept``: the files past retention that stay.
    """
    services = spec.concurrency.pending if spec.concurrency else None
    if services is None:
        return ()
    notes = []
    for instant in state.timeline.pending({Action.COMPACTION, Action.LOGCOMPACTION}):
        active_ms = max(
            (
                file.modified_ms
                for file in state.timeline.files
                if file.instant.requested == instant.requested
            ),
            default=0,
        )
        held = measure_held_back(instant.requested, state, kept).text
        if held and is_silent(active_ms, state.observed_ms, services.after):
            what = f"{instant.action} {instant.requested} was left {instant.state.value.lower()}"
            after = units.format_duration(services.after)
            notes.append(
                Note(
                    _RULE,
                    f"{what}: its timeline files have not changed since {format_ms(active_ms)}, "
                    f"longer than concurrency.pending.after, {after}; it {held} until Hudi "
                    "executes it",
                )
            )
    return tuple(notes)
