"""Which partitions a clean looks at.

Source: Hudi's CleanPlanner.getPartitionPathsToClean (1.2.0).
"""

from __future__ import annotations

from reconciler.hudi.instant import COMMITS, Action
from reconciler.planners.boundary import last_clean
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState


def partitions_to_scan(
    retention: Retention, state: TableState, earliest: str | None
) -> tuple[str, ...]:
    """Sorted partitions that may hold files to remove below ``earliest``."""
    if retention.policy is not Policy.FILE_VERSIONS:
        if earliest is None:
            return ()
        if retention.scan == "incremental":
            window = _window(state, earliest)
            if window is not None:
                return tuple(sorted(window))
    return state.partitions


def _window(state: TableState, earliest: str) -> set[str] | None:
    """Partitions of the commits retired since the last clean; None when only a full scan will do.

    A full scan follows a removed savepoint, a clean without a boundary, one whose boundary is
    archived, and commits that were not read.
    """
    last = last_clean(state)
    previous = last.earliest_instant_to_retain if last else ""
    if last is None or not previous.strip() or state.touched is None:
        return None
    entries = [i for i in state.timeline.instants if i.action in COMMITS | {Action.CLUSTERING}]
    if not entries or previous < entries[0].requested:
        return None
    current = {savepoint.instant for savepoint in state.savepoints if savepoint.completed}
    if set(last.savepointed) - current:
        return None
    retired = [i.requested for i in state.commits_timeline if previous <= i.requested < earliest]
    if any(time not in state.touched for time in retired):
        return None
    return {partition for time in retired for partition in state.touched[time]}
