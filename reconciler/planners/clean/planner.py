"""Plan a clean: which files it removes, which it keeps, and why; pure.

The rules are those of Hudi 1.2.0 with the deviations that the documentation lists.
"""

from __future__ import annotations

import numpy as np

from reconciler.arrays import Mask
from reconciler.hudi.files.view import FileView
from reconciler.hudi.timeline.instant import WRITES
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.clean.boundary import find_boundary
from reconciler.planners.clean.expired_slices import ExpiredSlices, find_expired_slices
from reconciler.planners.clean.kept_files import list_kept_files
from reconciler.planners.file_columns import build_removed_files
from reconciler.planners.protection import Protection, find_protection
from reconciler.planners.reader_window import ReaderWindow
from reconciler.planners.reasons import RowReasons
from reconciler.plans.model import CleanStep, KeptFiles, RemovedFiles
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState

RETENTION_UNITS = {
    Policy.COMMITS: "commit",
    Policy.HOURS: "hour",
    Policy.FILE_VERSIONS: "file version",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanDecision:
    """A clean and the facts it is based on. ``step`` is None if there is nothing to do.

    ``expired`` has masks over the slices of ``view``. ``is_removed``, ``is_kept`` and
    ``is_resumed`` are per row of the state's files; resumed rows belong to pending cleans.
    ``logs_read_by_hudi_1x``: number of files kept because Hudi 1.x reads them with a later slice.
    ``waiting_partitions`` are empty and stay until no write is pending.
    """

    step: CleanStep | None
    kept: KeptFiles
    view: FileView
    protection: Protection
    expired: ExpiredSlices
    is_removed: Mask
    is_kept: Mask
    is_resumed: Mask
    logs_read_by_hudi_1x: int
    waiting_partitions: tuple[str, ...] = ()


def plan_clean(
    retention: Retention,
    state: TableState,
    *,
    cutoff: str | None = None,
    resumed: Mask | None = None,
    window: ReaderWindow | None = None,
) -> CleanDecision:
    """Return the clean of a table. The caller checks the trigger (``afterCommits``).

    ``cutoff``: instant at which the hours of KEEP_LATEST_BY_HOURS start, in the timeline's zone.
    ``resumed``: per row of ``state.files``, whether a pending clean already removes it.
    ``window``: slices superseded within it stay.
    """
    view = state.view
    protection = find_protection(state, window)
    boundary = find_boundary(retention, state.timeline, cutoff)
    expired = find_expired_slices(retention, state, protection, boundary)
    if resumed is None:
        resumed = np.zeros(len(view.files), np.bool_)
    by_policy = _mark_files(view, expired.by_policy) & ~resumed
    is_removed = _mark_files(view, expired.is_removed) & ~resumed
    removed = _removed_files(retention, view, expired, is_removed)
    empty = _find_emptied_partitions(retention, state, view, expired, is_removed | resumed)
    # a pending write may be about to use the folder, so apply removes none until it is done
    is_quiet = not state.timeline.pending(WRITES)
    partitions = empty if is_quiet else ()
    step = CleanStep(
        policy=retention.policy,
        earliest_instant_to_retain=expired.earliest,
        files=removed,
        delete_partitions=partitions,
    )
    later = find_logs_of_later_slices(view, expired)
    return CleanDecision(
        step=step if len(removed) or partitions else None,
        kept=list_kept_files(retention, view, protection, expired, by_policy & ~is_removed),
        view=view,
        protection=protection,
        expired=expired,
        is_removed=is_removed,
        is_kept=by_policy & ~is_removed,
        is_resumed=resumed,
        logs_read_by_hudi_1x=int(later.sum()),
        waiting_partitions=() if is_quiet else empty,
    )


def _mark_files(view: FileView, of_slices: Mask) -> Mask:
    """Return per file whether its slice is marked, and also the slice that Hudi 1.x assigns it."""
    rows: Mask = of_slices[view.row_slice]
    if view.row_slice_1x is not None:
        rows = rows & of_slices[view.row_slice_1x]
    return rows


def find_logs_of_later_slices(view: FileView, expired: ExpiredSlices) -> Mask:
    """Return per file whether it is a removable log of version 6 that Hudi 1.x still reads."""
    if view.row_slice_1x is None:
        return np.zeros(0, np.bool_)
    return expired.is_removed[view.row_slice] & ~expired.by_policy[view.row_slice_1x]


def _removed_files(
    retention: Retention, view: FileView, expired: ExpiredSlices, is_removed: Mask
) -> RemovedFiles:
    rows = np.flatnonzero(is_removed)
    because = RowReasons(len(view))
    marked = expired.is_removed
    because.assign(
        marked & ~view.is_live,
        lambda code: _explain_replaced(retention, expired.earliest, view.times[code]),
        view.replaced[view.group],
    )
    because.assign(
        marked,
        lambda code: _explain_superseded(retention, expired.earliest, view.times[code]),
        view.newer,
    )
    sentences = because.build_column(view.row_slice[rows].astype(np.int64))
    return build_removed_files(view, rows, sentences)


def _explain_replaced(retention: Retention, earliest: str | None, when: str) -> str:
    if earliest is None:
        return f"its file group was replaced at {when}; retention.fileVersions keeps no such files"
    return (
        f"its file group was replaced at {when}, before {_describe_boundary(retention, earliest)}"
    )


def _explain_superseded(retention: Retention, earliest: str | None, newer: str) -> str:
    if earliest is None:
        return (
            f"superseded by {newer}; its file group keeps its newest "
            f"{describe_retention(retention)}"
        )
    return (
        f"superseded by {newer}, which is itself older than "
        f"{_describe_boundary(retention, earliest)}"
    )


def _describe_boundary(retention: Retention, earliest: str) -> str:
    return f"the earliest instant to retain {earliest} ({describe_retention(retention)})"


def describe_retention(retention: Retention) -> str:
    """Return what the policy keeps in words, for example ``10 commits``."""
    return f"{retention.keep} {RETENTION_UNITS[retention.policy]}" + (
        "" if retention.keep == 1 else "s"
    )


def _find_emptied_partitions(
    retention: Retention,
    state: TableState,
    view: FileView,
    expired: ExpiredSlices,
    is_gone: Mask,
) -> tuple[str, ...]:
    """Return the scanned partitions without a live file group whose files are all removed now.

    Unlike in Hudi, a partition stays while it has any file of a replaced group, above all
    savepointed ones.
    """
    by_versions = retention.policy is Policy.FILE_VERSIONS
    if not state.is_partitioned or (expired.earliest is None and not by_versions):
        return ()
    fewest = retention.keep if retention.policy is Policy.COMMITS else 0
    if not by_versions and len(state.commits_timeline) <= fewest:
        return ()
    files = view.files
    stays = np.zeros(len(files.partitions), np.bool_)
    stays[files.partition[~is_gone]] = True
    stays[files.group_partition[view.replaced == view.never_code]] = True
    full = {path for path, stay in zip(files.partitions, stays, strict=True) if stay}
    removable = set(state.partitions) - full - state.stray_partitions - {""}
    return tuple(path for path in expired.scanned if path in removable)
