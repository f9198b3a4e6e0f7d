"""Which slices a clean removes, which the policy alone would, and why: masks over the view.

Source: Hudi's CleanPlanner.getFilesToCleanKeepingLatestCommits and -Versions (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.files.view import FileView
from reconciler.planners.clean.boundary import Boundary, cap_boundary
from reconciler.planners.clean.scanned_partitions import find_first_touches, find_partitions_to_scan
from reconciler.planners.protection import Protection
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpiredSlices:
    """Masks per slice, and what they were made of.

    ``by_policy``: what the policy alone removes. ``is_removed``: what the clean removes; a subset.
    ``is_held_back``: of ``by_policy``, below neither a pending write's bound nor outside its scan.
    ``is_displaced``: a pending compaction's output takes its place among the file versions.
    ``earliest``: the run's earliest instant to retain; ``scanned`` the partitions it looked at.
    """

    boundary: Boundary
    earliest: str | None
    scanned: tuple[str, ...]
    by_policy: NDArray[np.bool_]
    is_held_back: NDArray[np.bool_]
    is_displaced: NDArray[np.bool_]
    is_removed: NDArray[np.bool_]


def find_expired_slices(
    retention: Retention,
    state: TableState,
    view: FileView,
    protection: Protection,
    boundary: Boundary,
) -> ExpiredSlices:
    """Decide about every slice."""
    if retention.policy is Policy.FILE_VERSIONS:
        return _expire_by_versions(retention, state, view, protection, boundary)
    return _expire_by_time(retention, state, view, protection, boundary)


def _expire_by_versions(
    retention: Retention, state: TableState, view: FileView, guard: Protection, bounds: Boundary
) -> ExpiredSlices:
    scanned = find_partitions_to_scan(retention, state, None)
    scope = view.is_visible & _is_in_partitions(view, scanned)
    by_policy = scope & (~view.is_live | (view.rank >= retention.keep))
    # the pending compaction's output counts as one version, its input as none
    needed = np.cumsum((guard.compaction >= 0) & view.is_visible, dtype=np.int64)
    last = np.searchsorted(view.group, view.group, side="right") - 1
    unneeded_newer = view.rank - (needed[last] - needed) if len(view) else view.rank
    slots = retention.keep - guard.is_compacted.astype(np.int32)
    is_spare = ~view.is_live | ((unneeded_newer >= slots) & ~view.is_newest)
    return ExpiredSlices(
        boundary=bounds,
        earliest=None,
        scanned=scanned,
        by_policy=by_policy,
        is_held_back=np.zeros(len(view), np.bool_),
        is_displaced=~is_spare,
        is_removed=by_policy & ~guard.is_protected & is_spare,
    )


def _expire_by_time(
    retention: Retention, state: TableState, view: FileView, guard: Protection, bounds: Boundary
) -> ExpiredSlices:
    by_policy = _find_expired(retention, state, view, bounds.policy)
    by_held = by_policy
    if bounds.effective != bounds.policy:
        by_held = by_policy & _find_expired(retention, state, view, bounds.effective)
    free = ~guard.is_protected & (~view.is_live | ~view.is_newest)
    earliest, is_removed = bounds.effective, by_held & free
    if bounds.effective is not None and retention.max_commits_per_run is not None:
        looks = find_first_touches(retention, state, bounds.effective)
        first = _find_first_expiry(view, is_removed, looks or {})
        earliest = cap_boundary(bounds.effective, retention.max_commits_per_run, state, first)
        if earliest != bounds.effective:
            is_removed &= _find_expired(retention, state, view, earliest)
    return ExpiredSlices(
        boundary=bounds,
        earliest=earliest,
        scanned=find_partitions_to_scan(retention, state, earliest),
        by_policy=by_policy,
        is_held_back=by_policy & ~by_held,
        is_displaced=np.zeros(len(view), np.bool_),
        is_removed=is_removed,
    )


def _find_expired(
    retention: Retention, state: TableState, view: FileView, earliest: str | None
) -> NDArray[np.bool_]:
    """Slices that no read at or after ``earliest`` needs, in the partitions it makes us look at."""
    fewest = retention.keep if retention.policy is Policy.COMMITS else 0
    if earliest is None or len(state.commits_timeline) <= fewest:
        return np.zeros(len(view), np.bool_)
    scope = _is_in_partitions(view, find_partitions_to_scan(retention, state, earliest))
    expired: NDArray[np.bool_] = (
        scope & view.is_visible & (_expiry_times(view) < view.time_code(earliest))
    )
    return expired


def _find_first_expiry(
    view: FileView, is_removed: NDArray[np.bool_], looks: Mapping[str, str]
) -> str | None:
    """The smallest instant such that any boundary after it removes something; None if none does.

    A file goes once it has expired and its partition is looked at.
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


def _expiry_times(view: FileView) -> NDArray[np.int32]:
    """Per slice the time since which no read needs it: superseded, or its group replaced."""
    expiry: NDArray[np.int32] = np.where(view.is_live, view.newer, view.replaced[view.group])
    return expiry


def _is_in_partitions(view: FileView, scanned: tuple[str, ...]) -> NDArray[np.bool_]:
    if scanned == view.files.partitions or not len(view):
        return np.ones(len(view), np.bool_)
    wanted = set(scanned)
    is_scanned = np.array([path in wanted for path in view.files.partitions], np.bool_)
    per_slice: NDArray[np.bool_] = is_scanned[view.files.group_partition[view.group]]
    return per_slice
