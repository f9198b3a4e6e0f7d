"""Find the earliest instant to retain, from which on reads must still work.

Source: Hudi's CleanerUtils.getEarliestCommitToRetain and CleanPlanner (1.2.0). Unlike in Hudi,
pending writes also limit the boundary by hours, and ``maxCommitsPerRun`` limits the first clean.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.refusals import find_timeline_zone, format_instant
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.model import CompletedClean, TableState

#: pending actions that limit the boundary: what they write may be read at their own time
_BLOCKING_ACTIONS = COMMITS | {Action.COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The earliest instant to retain: by the ``policy`` alone, and the ``effective`` one.

    Both are None if nothing is old enough. ``blocking_write``: the pending write that limits the
    boundary, or None. ``cutoff``: the instant that is the retention's hours before now.
    """

    policy: str | None
    effective: str | None
    blocking_write: Instant | None = None
    cutoff: str | None = None


def find_cutoff(spec: TableSpec, state: TableState, now: datetime) -> str | None:
    """Return the instant at which the hours of KEEP_LATEST_BY_HOURS start; None by other policies.

    The spec has a known time zone if it needs one.
    """
    if spec.retention is None or spec.retention.policy is not Policy.HOURS:
        return None
    zone = find_timeline_zone(spec, state)
    assert zone is not None, "a missing zone is refused before"
    return format_instant(now - timedelta(hours=spec.retention.keep), zone)


def find_boundary(retention: Retention, timeline: Timeline, cutoff: str | None) -> Boundary:
    """Return the boundary before any cap; both values are None under KEEP_LATEST_FILE_VERSIONS.

    ``cutoff`` is needed only by KEEP_LATEST_BY_HOURS.
    """
    times = [i.requested for i in timeline.commits]
    policy = _policy_boundary(retention, times, cutoff)
    holder = next(iter(timeline.pending(_BLOCKING_ACTIONS)), None)
    if policy is None or holder is None or policy <= holder.requested:
        return Boundary(policy=policy, effective=policy, cutoff=cutoff)
    before = bisect_left(times, holder.requested)
    effective = times[before - 1] if before else None
    return Boundary(policy=policy, effective=effective, blocking_write=holder, cutoff=cutoff)


def _policy_boundary(retention: Retention, times: list[str], cutoff: str | None) -> str | None:
    match retention.policy:
        case Policy.COMMITS:
            return times[-retention.keep] if len(times) > retention.keep else None
        case Policy.HOURS:
            if cutoff is None:
                raise ValueError("KEEP_LATEST_BY_HOURS needs the instant at which its hours start")
            at = bisect_left(times, cutoff)
            return times[at] if at < len(times) else None
        case Policy.FILE_VERSIONS:
            return None


def cap_boundary(
    boundary: str, max_commits: int, state: TableState, first_expiry: str | None
) -> str:
    """Return the boundary of one run that retires at most ``max_commits`` commits.

    Commits count from the earliest instant that the last completed clean retained, else from the
    first commit. ``first_expiry`` is the smallest instant that expires a removable file: a run goes
    beyond it even with a small cap, so that every run removes something.
    """
    times = [i.requested for i in state.timeline.commits]
    last = find_last_clean(state)
    start = last.earliest_instant_to_retain.strip() if last else ""
    retired = times[bisect_left(times, start) : bisect_left(times, boundary)]
    if len(retired) <= max_commits:
        return boundary
    if first_expiry is None or retired[max_commits] > first_expiry:
        return retired[max_commits]
    beyond = bisect_right(times, first_expiry)
    return min(times[beyond], boundary) if beyond < len(times) else boundary


def find_last_clean(state: TableState) -> CompletedClean | None:
    """Return the last completed clean; None also if its file is empty, as in Hudi."""
    if not state.cleans:
        return None
    last = max(state.cleans, key=lambda clean: clean.instant)
    return None if last.is_blank else last


def count_commits_since_clean(state: TableState) -> int:
    """Return how many writes were completed since the last completed clean was planned."""
    last = find_last_clean(state)
    if last is None:
        return len(state.timeline.commits)
    last_commit = last.last_completed_commit
    return sum(i.requested > last_commit for i in state.timeline.commits)
