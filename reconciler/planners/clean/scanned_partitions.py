"""Find the partitions that a clean scans; pure.

Source: Hudi's CleanPlanner.getPartitionPathsToClean (1.2.0).
"""

from __future__ import annotations

from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.planners.clean.boundary import find_last_clean
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState


def find_partitions_to_scan(
    retention: Retention, state: TableState, earliest: str | None
) -> tuple[str, ...]:
    """Return the sorted partitions that may hold files that expired before ``earliest``."""
    if retention.policy is not Policy.FILE_VERSIONS:
        if earliest is None:
            return ()
        window = find_first_touches(retention, state, earliest)
        if window is not None:
            return tuple(sorted(window))
    return state.partitions


def find_first_touches(
    retention: Retention, state: TableState, earliest: str
) -> dict[str, str] | None:
    """Return the partitions of an incremental scan with the first retired commit in each.

    A partition is scanned only with a boundary after that commit. None if all are scanned.
    """
    if retention.scan != "incremental":
        return None
    retired = _find_retired_commits(state, earliest)
    if retired is None or state.touched_partitions is None:
        return None
    touched = state.touched_partitions
    return {partition: time for time in reversed(retired) for partition in touched[time]}


def _find_retired_commits(state: TableState, earliest: str) -> list[str] | None:
    """Return the commits retired since the last clean, oldest first; None if a full scan is needed.

    A full scan is needed after a removed savepoint, a clean without a boundary, a clean whose
    boundary is archived, and when commits were not read.
    """
    last = find_last_clean(state)
    previous = last.earliest_instant_to_retain if last else ""
    if last is None or not previous.strip() or state.touched_partitions is None:
        return None
    entries = [i for i in state.timeline.instants if i.action in COMMITS | {Action.CLUSTERING}]
    if not entries or previous < entries[0].requested:
        return None
    current = {savepoint.instant for savepoint in state.savepoints if savepoint.completed}
    if set(last.savepointed) - current:
        return None
    retired = [i.requested for i in state.commits_timeline if previous <= i.requested < earliest]
    if any(time not in state.touched_partitions for time in retired):
        return None
    return retired
