"""Which slices a clean removes, which the policy alone would, and why: masks over the view.

Source: Hudi's CleanPlanner.getFilesToCleanKeepingLatestCommits and -Versions (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.view import View
from reconciler.planners.boundary import Boundary, capped
from reconciler.planners.scan import first_looks, partitions_to_scan
from reconciler.planners.slices import Protection
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """Masks per slice, and what they were made of.

    ``by_policy``: what the policy alone removes. ``is_removed``: what the clean removes; a subset.
    ``is_held``: of ``by_policy``, below neither a pending write's bound nor outside its scan.
    ``is_displaced``: a pending compaction's output takes its place among the file versions.
    ``earliest``: the run's earliest instant to retain; ``scanned`` the partitions it looked at.
    """

    boundary: Boundary
    earliest: str | None
    scanned: tuple[str, ...]
    by_policy: NDArray[np.bool_]
    is_held: NDArray[np.bool_]
    is_displaced: NDArray[np.bool_]
    is_removed: NDArray[np.bool_]


def judge(
    retention: Retention, state: TableState, view: View, guard: Protection, bounds: Boundary
) -> Verdict:
    """Decide about every slice."""
    if retention.policy is Policy.FILE_VERSIONS:
        return _by_versions(retention, state, view, guard, bounds)
    return _by_time(retention, state, view, guard, bounds)


def _by_versions(
    retention: Retention, state: TableState, view: View, guard: Protection, bounds: Boundary
) -> Verdict:
    scanned = partitions_to_scan(retention, state, None)
    scope = view.is_visible & _in_partitions(view, scanned)
    by_policy = scope & (~view.is_live | (view.rank >= retention.keep))
    # the pending compaction's output counts as one version, its input as none
    needed = np.cumsum((guard.compaction >= 0) & view.is_visible, dtype=np.int64)
    last = np.searchsorted(view.group, view.group, side="right") - 1
    unneeded_newer = view.rank - (needed[last] - needed) if len(view) else view.rank
    slots = retention.keep - guard.is_compacted.astype(np.int32)
    is_spare = ~view.is_live | ((unneeded_newer >= slots) & ~view.is_newest)
    return Verdict(
        boundary=bounds,
        earliest=None,
        scanned=scanned,
        by_policy=by_policy,
        is_held=np.zeros(len(view), np.bool_),
        is_displaced=~is_spare,
        is_removed=by_policy & ~guard.is_protected & is_spare,
    )


def _by_time(
    retention: Retention, state: TableState, view: View, guard: Protection, bounds: Boundary
) -> Verdict:
    by_policy = _expired(retention, state, view, bounds.policy)
    by_held = by_policy
    if bounds.held != bounds.policy:
        by_held = by_policy & _expired(retention, state, view, bounds.held)
    free = ~guard.is_protected & (~view.is_live | ~view.is_newest)
    earliest, is_removed = bounds.held, by_held & free
    if bounds.held is not None and retention.max_commits_per_run is not None:
        looks = first_looks(retention, state, bounds.held)
        first = _first_expiry(view, is_removed, looks or {})
        earliest = capped(bounds.held, retention.max_commits_per_run, state, first)
        if earliest != bounds.held:
            is_removed &= _expired(retention, state, view, earliest)
    return Verdict(
        boundary=bounds,
        earliest=earliest,
        scanned=partitions_to_scan(retention, state, earliest),
        by_policy=by_policy,
        is_held=by_policy & ~by_held,
        is_displaced=np.zeros(len(view), np.bool_),
        is_removed=is_removed,
    )


def _expired(
    retention: Retention, state: TableState, view: View, earliest: str | None
) -> NDArray[np.bool_]:
    """Slices that no read at or after ``earliest`` needs, in the partitions it makes us look at."""
    fewest = retention.keep if retention.policy is Policy.COMMITS else 0
    if earliest is None or len(state.commits_timeline) <= fewest:
        return np.zeros(len(view), np.bool_)
    scope = _in_partitions(view, partitions_to_scan(retention, state, earliest))
    expired: NDArray[np.bool_] = scope & view.is_visible & (_expiry(view) < view.code(earliest))
    return expired


def _first_expiry(
    view: View, is_removed: NDArray[np.bool_], looks: Mapping[str, str]
) -> str | None:
    """The smallest instant such that any boundary after it removes something; None if none does.

    A file goes once it has expired and its partition is looked at.
    """
    paths = view.files.partitions
    soonest = np.full(len(paths), view.never, np.int32)
    np.minimum.at(
        soonest, view.files.group_partition[view.group][is_removed], _expiry(view)[is_removed]
    )
    return min(
        (
            max(view.times[int(soonest[row])], looks.get(paths[row], ""))
            for row in np.flatnonzero(soonest != view.never)
        ),
        default=None,
    )


def _expiry(view: View) -> NDArray[np.int32]:
    """Per slice the time since which no read needs it: superseded, or its group replaced."""
    expiry: NDArray[np.int32] = np.where(view.is_live, view.newer, view.replaced[view.group])
    return expiry


def _in_partitions(view: View, scanned: tuple[str, ...]) -> NDArray[np.bool_]:
    if scanned == view.files.partitions or not len(view):
        return np.ones(len(view), np.bool_)
    wanted = set(scanned)
    is_scanned = np.array([path in wanted for path in view.files.partitions], np.bool_)
    per_slice: NDArray[np.bool_] = is_scanned[view.files.group_partition[view.group]]
    return per_slice
