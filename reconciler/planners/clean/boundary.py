"""The earliest instant to retain: what a read must still be able to see.

Source: Hudi's CleanerUtils.getEarliestCommitToRetain and CleanPlanner (1.2.0). Unlike Hudi, pending
writes hold the hours boundary back too, and ``maxCommitsPerRun`` holds from the first clean on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import CompletedClean, TableState

#: pending actions that hold the boundary back: what they write may be read at their own time
_BLOCKING_ACTIONS = COMMITS | {Action.COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """``policy``: what the policy alone says; ``held``: the same, held back by pending writes.

    None where there is none: nothing is old enough. ``blocking_write`` is the pending write that holds it
    back, None if none does. ``cutoff`` is the instant of "now minus the hours".
    """

    policy: str | None
    effective: str | None
    blocking_write: Instant | None = None
    cutoff: str | None = None


def find_boundary(retention: Retention, timeline: Timeline, cutoff: str | None) -> Boundary:
    """The boundary before any cap; both None under KEEP_LATEST_FILE_VERSIONS.

    ``cutoff`` is needed by KEEP_LATEST_BY_HOURS alone.
    """
    times = [i.requested for i in timeline.commits]
    policy = _policy_boundary(retention, times, cutoff)
    holder = next(iter(timeline.pending(_BLOCKING_ACTIONS)), None)
    if policy is None or holder is None or policy <= holder.requested:
        return Boundary(policy=policy, effective=policy, cutoff=cutoff)
    before = bisect_left(times, holder.requested)
    held = times[before - 1] if before else None
    return Boundary(policy=policy, effective=held, blocking_write=holder, cutoff=cutoff)


def _policy_boundary(retention: Retention, times: list[str], cutoff: str | None) -> str | None:
    match retention.policy:
        case Policy.COMMITS:
            return times[-retention.keep] if len(times) > retention.keep else None
        case Policy.HOURS:
            if cutoff is None:
                raise ValueError("KEEP_LATEST_BY_HOURS needs the instant of its window's start")
            at = bisect_left(times, cutoff)
            return times[at] if at < len(times) else None
        case Policy.FILE_VERSIONS:
            return None


def cap_boundary(
    boundary: str, max_commits: int, state: TableState, first_expiry: str | None
) -> str:
    """The boundary of one run that retires at most so many commits.

    Counted from the earliest instant that the last completed clean retained, else from the first
    commit there is. ``first_expiry`` is the smallest instant that expires anything removable: a run
    goes beyond it, however small the cap, so that what is left shrinks.
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
    """The last completed clean; None also when its file is empty, as Hudi reads it."""
    if not state.cleans:
        return None
    last = max(state.cleans, key=lambda clean: clean.instant)
    return None if last.is_blank else last


def count_commits_since_clean(state: TableState) -> int:
    """Completed writes after those that the last completed clean was planned on."""
    last = find_last_clean(state)
    if last is None:
        return len(state.timeline.commits)
    seen = last.last_completed_commit
    return sum(i.requested > seen for i in state.timeline.commits)
