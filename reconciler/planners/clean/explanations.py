"""Explain why a clean removes nothing, or less than its policy allows; pure."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from reconciler.arrays import sort_unique
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.planners.clean.boundary import count_commits_since_clean, find_last_clean
from reconciler.planners.clean.kept_files import explain_held_boundary
from reconciler.planners.clean.planner import CleanDecision, describe_retention
from reconciler.planners.reasons import pluralize
from reconciler.plans.model import KEEP_RULES, Note
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState

NOTHING_TO_DO = "nothingToDo"
LOGS_OF_LATER_SLICES = (
    "Hudi 1.x takes completion times from the modification times of timeline files and assigns "
    "these logs to a later file slice; check whether the table was copied"
)
_HOLDER_PHRASES = {
    "pendingCompaction": "pending compactions read",
    "pendingClustering": "pending clusterings read",
    "pendingWrite": "a pending write keeps",
    "readers": "readers may still read",
    "cap": "retention.maxCommitsPerRun keeps",
}


def check_after_commits(retention: Retention, state: TableState) -> Note | None:
    """Return the note that the trigger is not met; None if a clean may run (needsCleaning)."""
    needed = retention.after_commits
    done = count_commits_since_clean(state)
    if needed is None or done >= needed:
        return None
    last = find_last_clean(state)
    since = f"since clean {last.instant}" if last else "yet"
    return Note(
        NOTHING_TO_DO,
        f"nothing to do: {pluralize(done, 'completed commit')} {since} "
        f"(retention.afterCommits: {needed})",
    )


def collect_warnings(
    retention: Retention, state: TableState, decision: CleanDecision, ended: Collection[str] = ()
) -> tuple[Note, ...]:
    """Return the warnings about everything that limits a clean, and why there is no step.

    ``ended``: pending writes that other steps of the plan finish or roll back.
    """
    notes = [
        _warn_of_pending_write(decision, ended),
        _warn_of_v6_logs(decision),
        _warn_of_folders(state, decision),
    ]
    if decision.step is None and not decision.is_resumed.any():
        notes.append(_explain_nothing(retention, state, decision))
    return tuple(note for note in notes if note is not None)


def warn_of_resumes(retention: Retention, decision: CleanDecision) -> tuple[Note, ...]:
    """Return the warning that pending cleans remove files that the policy would keep."""
    beyond = decision.is_resumed & ~decision.expired.by_policy[decision.view.row_slice]
    if not beyond.any():
        return ()
    return (
        Note(
            "pendingClean",
            f"pending cleans remove {pluralize(int(beyond.sum()), 'file')} that a retention of "
            f"{describe_retention(retention)} would keep; any writer of the table may finish "
            "these cleans",
        ),
    )


def _warn_of_pending_write(decision: CleanDecision, ended: Collection[str]) -> Note | None:
    boundary = decision.expired.boundary
    if boundary.blocking_write is None or not decision.expired.is_held_back.any():
        return None
    way_out = {
        Action.COMPACTION: "run or unschedule it",
        Action.CLUSTERING: "run it or roll it back",
    }.get(boundary.blocking_write.action, "roll it back or let its writer finish")
    if boundary.blocking_write.requested in ended:
        way_out = "a step of this plan ends it, and the next plan cleans further"
    return Note(
        "pendingWrite",
        f"{explain_held_boundary(boundary.blocking_write, boundary.effective)} instead of "
        f"{boundary.policy}: {way_out}",
    )


def _warn_of_v6_logs(decision: CleanDecision) -> Note | None:
    count = decision.logs_read_by_hudi_1x
    if not count:
        return None
    return Note(
        "completionTimes",
        f"{pluralize(count, 'log file')} of expired file slices stay: {LOGS_OF_LATER_SLICES}",
    )


def _warn_of_folders(state: TableState, decision: CleanDecision) -> Note | None:
    waiting = decision.waiting_partitions
    if not waiting:
        return None
    first = state.timeline.pending(WRITES)[0]
    return Note(
        "pendingWrite",
        f"{pluralize(len(waiting), 'empty partition folder')} (such as {waiting[0]}) can be "
        f"deleted only while no write is pending; {first.action} {first.requested} is pending",
    )


def _explain_nothing(retention: Retention, state: TableState, decision: CleanDecision) -> Note:
    pinned = _explain_kept(decision)
    if pinned is not None:
        return Note(NOTHING_TO_DO, f"nothing to do: {pinned}")
    commits = len(state.timeline.commits)
    if retention.policy is Policy.COMMITS and commits <= retention.keep:
        return Note(
            NOTHING_TO_DO,
            f"nothing to do: the active timeline has {pluralize(commits, 'completed commit')}, "
            f"retention keeps {retention.keep}",
        )
    if retention.policy is Policy.HOURS and commits and decision.expired.boundary.policy is None:
        return Note(
            "idle",
            f"nothing to do: the newest commit {state.timeline.commits[-1].requested} is older "
            f"than {describe_retention(retention)}, and Hudi keeps all files of idle tables",
        )
    return Note(
        NOTHING_TO_DO, f"nothing to do: no file slice exceeds {describe_retention(retention)}"
    )


def _explain_kept(decision: CleanDecision) -> str | None:
    """Return the main reason why slices past retention stay, and how many it keeps."""
    kept, view = decision.kept, decision.view
    if not len(kept):
        return None
    slices = view.row_slice[decision.is_kept]
    rule = KEEP_RULES[int(np.bincount(kept.rule).argmax())]
    count = len(sort_unique(slices[kept.rule == KEEP_RULES.index(rule)]))
    more = (
        f", and other rules {pluralize(n, 'more')}"
        if (n := len(sort_unique(slices)) - count)
        else ""
    )
    many = pluralize(count, "slice")
    if rule == "savepoint":
        codes = sort_unique(decision.protection.savepoint[slices])
        names = [decision.protection.savepoints[code] for code in codes if code >= 0]
        return f"savepoint {', '.join(names)} pins {many}{more}"
    return f"{_HOLDER_PHRASES[rule]} {many}{more}"
