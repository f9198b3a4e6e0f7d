"""Find the instant that a declared savepoint pins, and whether it can still be pinned; pure."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.planners.readable_instants import find_readable_writes
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState


def list_completed_writes(spec: TableSpec, state: TableState) -> tuple[tuple[str, str], ...]:
    """Return the requested and completion times of the writes that Hudi can savepoint.

    In version 6 a write is completed when its file was written, as Hudi 1.x reads it, and where
    files are copies, when it was requested.
    """
    if state.table_version >= LOGS_BY_COMPLETION:
        known = state.completions
    else:
        known = {} if spec.file_times == "copied" else state.v6_completions
    return tuple(
        (instant.requested, instant.completed or known.get(instant.requested, instant.requested))
        for instant in state.commits_timeline
    )


def find_newest_completed(writes: Iterable[tuple[str, str]], until: str) -> str | None:
    """Return the newest write that was completed at or before a time, both of the timeline's zone.

    >>> find_newest_completed([("20260101", "20260103"), ("20260102", "20260102")], "20260102")
    '20260102'
    """
    return max((time for time, completed in writes if completed <= until), default=None)


def explain_lost(state: TableState, instant: str, names: frozenset[str]) -> str | None:
    """Return why a completed write cannot be pinned any more; None if it can.

    ``names``: the files that the savepoint would list. Source: SavepointActionExecutor, which
    compares with the last clean's earliest instant to retain. A clean by file versions has none,
    so what cleans removed is looked at too.
    """
    boundaries: dict[str, str | None] = {}
    boundaries |= {one.instant: one.earliest_instant_to_retain for one in state.cleans}
    boundaries |= {one.instant: one.earliest_instant_to_retain for one in state.pending_cleans}
    last = max(boundaries, default="")
    boundary = boundaries.get(last)
    if boundary and instant < boundary:
        return f"clean {last} retains nothing before {boundary}"
    writes, is_readable = find_readable_writes(state)
    if instant not in {time for time, is_kept in zip(writes, is_readable, strict=True) if is_kept}:
        return "a clean has removed files that a read as of it needs"
    for clean in state.pending_cleans:
        if any(not names.isdisjoint(removed) for removed in clean.files.values()):
            return f"pending clean {clean.instant} removes files of it"
    return None
