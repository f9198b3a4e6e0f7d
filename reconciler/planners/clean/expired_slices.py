"""Find the expired file slices: those a clean removes and those the policy alone would remove.

Source: Hudi's CleanPlanner.getFilesToCleanKeepingLatestCommits and -Versions (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reconciler.arrays import Codes, Mask, find_run_ends
from reconciler.hudi.files.view import FileView
from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.clean.boundary import Boundary, cap_boundary, find_last_clean
from reconciler.planners.protection import Protection
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpiredSlices:
    """Masks per slice and what they are based on.

    ``by_policy``: the policy alone removes the slice. ``is_removed``: the clean removes it.
    ``is_held_back``: the policy removes it, but a pending write keeps it.
    ``is_displaced``: the output of a pending compaction counts as its file version.
    ``earliest``: the earliest instant to retain of this run; ``scanned``: the partitions scanned.
    """

    boundary: Boundary
    earliest: str | None
    scanned: tuple[str, ...]
    by_policy: Mask
    is_held_back: Mask
    is_displaced: Mask
    is_removed: Mask


def find_expired_slices(
    retention: Retention,
    state: TableState,
    protection: Protection,
    boundary: Boundary,
) -> ExpiredSlices:
    """Return which slices of a table have expired."""
    if retention.policy is Policy.FILE_VERSIONS:
        return _expire_by_versions(retention, state, protection, boundary)
    return _expire_by_time(retention, state, protection, boundary)


def _expire_by_versions(
    retention: Retention, state: TableState, protection: Protection, boundary: Boundary
) -> ExpiredSlices:
    view = state.view
    scanned = find_partitions_to_scan(retention, state, None)
    scope = view.is_visible & _is_in_partitions(view, scanned)
    by_policy = scope & (~view.is_live | (view.rank >= retention.keep))
    # the output of a pending compaction counts as one version, its input does not count
    needed = np.cumsum((protection.compaction >= 0) & view.is_visible, dtype=np.int64)
    unneeded_newer = view.rank - (needed[find_run_ends(view.group)] - needed)
    slots = retention.keep - protection.is_compacted.astype(np.int32)
    is_spare = ~view.is_live | ((unneeded_newer >= slots) & ~view.is_newest)
    return ExpiredSlices(
        boundary=boundary,
        earliest=None,
        scanned=scanned,
        by_policy=by_policy,
        is_held_back=np.zeros(len(view), np.bool_),
        is_displaced=~is_spare,
        is_removed=by_policy & ~protection.is_protected & is_spare,
    )


def _expire_by_time(
    retention: Retention, state: TableState, protection: Protection, boundary: Boundary
) -> ExpiredSlices:
    view = state.view
    by_policy = _find_expired(retention, state, boundary.policy)
    by_effective = by_policy
    if boundary.effective != boundary.policy:
        by_effective = by_policy & _find_expired(retention, state, boundary.effective)
    free = ~protection.is_protected & (~view.is_live | ~view.is_newest)
    earliest, is_removed = boundary.effective, by_effective & free
    if boundary.effective is not None and retention.max_commits_per_run is not None:
        looks = find_first_touches(retention, state, boundary.effective)
        first = _find_first_expiry(view, is_removed, looks or {})
        earliest = cap_boundary(boundary.effective, retention.max_commits_per_run, state, first)
        if earliest != boundary.effective:
            is_removed &= _find_expired(retention, state, earliest)
    return ExpiredSlices(
        boundary=boundary,
        earliest=earliest,
        scanned=find_partitions_to_scan(retention, state, earliest),
        by_policy=by_policy,
        is_held_back=by_policy & ~by_effective,
        is_displaced=np.zeros(len(view), np.bool_),
        is_removed=is_removed,
    )


def _find_expired(retention: Retention, state: TableState, earliest: str | None) -> Mask:
    """Return the slices of scanned partitions that no read at or after ``earliest`` needs."""
    view = state.view
    fewest = retention.keep if retention.policy is Policy.COMMITS else 0
    if earliest is None or len(state.commits_timeline) <= fewest:
        return np.zeros(len(view), np.bool_)
    scope = _is_in_partitions(view, find_partitions_to_scan(retention, state, earliest))
    return scope & view.is_visible & (_expiry_times(view) < view.time_code(earliest))


def _find_first_expiry(view: FileView, is_removed: Mask, looks: Mapping[str, str]) -> str | None:
    """Return the smallest instant such that a boundary after it removes something, or None.

    A file is removed when it has expired and its partition is scanned.
    """
    paths = view.files.partitions
    soonest = np.full(len(paths), view.never_code, np.int32)
    np.minimum.at(
        soonest, view.files.group_partition[view.group][is_removed], _expiry_times(view)[is_removed]
    )
    return min(
        (
            max(view.times[int(soonest[row])], looks.get(paths[row], ""))
            for row in np.flatnonzero(soonest != view.never_code)
        ),
        default=None,
    )


def _expiry_times(view: FileView) -> Codes:
    """Return per slice the time when it was superseded or its group was replaced."""
    return np.where(view.is_live, view.newer, view.replaced[view.group])


def _is_in_partitions(view: FileView, scanned: tuple[str, ...]) -> Mask:
    if scanned == view.files.partitions or not len(view):
        return np.ones(len(view), np.bool_)
    wanted = set(scanned)
    is_scanned = np.array([path in wanted for path in view.files.partitions], np.bool_)
    return is_scanned[view.files.group_partition[view.group]]


def find_partitions_to_scan(
    retention: Retention, state: TableState, earliest: str | None
) -> tuple[str, ...]:
    """Return the sorted partitions that may hold files that expired before ``earliest``.

    Source: Hudi's CleanPlanner.getPartitionPathsToClean (1.2.0).
    """
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
