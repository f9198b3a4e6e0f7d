"""Why a clean does nothing, or less than its policy says; pure."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.arrow import unique
from reconciler.hudi.instant import WRITES, Action
from reconciler.plan.model import KEEP_RULES, Note
from reconciler.planners.boundary import commits_since_last_clean, last_clean
from reconciler.planners.clean import CleanDecision, amount
from reconciler.planners.kept import held_back
from reconciler.planners.phrases import plural
from reconciler.spec.model import Policy, Retention
from reconciler.state.model import TableState

NOTHING = "nothingToDo"
_HOLDERS = {
    "pendingCompaction": "pending compactions read",
    "pendingClustering": "pending clusterings read",
    "pendingWrite": "a pending write holds back",
    "readers": "readers may still read",
    "cap": "retention.maxCommitsPerRun holds back",
}


def closed_gate(retention: Retention, state: TableState) -> Note | None:
    """The trigger that isn't met, None when a clean may be planned (Hudi's needsCleaning)."""
    needed = retention.after_commits
    done = commits_since_last_clean(state)
    if needed is None or done >= needed:
        return None
    last = last_clean(state)
    since = f"since clean {last.instant}" if last else "yet"
    return Note(
        NOTHING,
        f"nothing to do: only {plural(done, 'completed commit')} {since}, and "
        f"retention.afterCommits waits for {needed}",
    )


def warnings(retention: Retention, state: TableState, decision: CleanDecision) -> tuple[Note, ...]:
    """Everything that holds a clean back, and why nothing happens when nothing does."""
    notes = [_of_pending_write(decision), _of_v6_logs(decision), _of_folders(state, decision)]
    if decision.step is None and not decision.is_resumed.any():
        notes.append(_of_nothing(retention, state, decision))
    return tuple(note for note in notes if note is not None)


def of_resumes(retention: Retention, decision: CleanDecision) -> tuple[Note, ...]:
    """What pending cleans remove although the policy of the spec would keep it."""
    beyond = decision.is_resumed & ~decision.verdict.by_policy[decision.view.slice_of]
    if not beyond.any():
        return ()
    return (
        Note(
            "pendingClean",
            f"pending cleans remove {plural(int(beyond.sum()), 'file')} that {amount(retention)} "
            "would keep; any writer of the table may finish them too",
        ),
    )


def _of_pending_write(decision: CleanDecision) -> Note | None:
    bounds = decision.verdict.boundary
    if bounds.holder is None or not decision.verdict.is_held.any():
        return None
    way_out = {
        Action.COMPACTION: "run or unschedule it",
        Action.CLUSTERING: "run it or roll it back",
    }.get(bounds.holder.action, "roll it back or let its writer finish")
    return Note(
        "pendingWrite",
        f"{held_back(bounds.holder, bounds.held)} instead of {bounds.policy}: {way_out}",
    )


def _of_v6_logs(decision: CleanDecision) -> Note | None:
    count = decision.logs_kept_for_1x
    if not count:
        return None
    return Note(
        "completionTimes",
        f"{plural(count, 'log file')} of expired file slices stay: Hudi 1.x derives completion "
        "times from the modification times of the timeline's files, which say that a later file "
        "slice has them; was the table copied?",
    )


def _of_folders(state: TableState, decision: CleanDecision) -> Note | None:
    waiting = decision.waiting_partitions
    if not waiting:
        return None
    first = state.timeline.pending(WRITES)[0]
    return Note(
        "pendingWrite",
        f"{plural(len(waiting), 'partition folder')} with no file left (such as {waiting[0]}) can "
        f"go when no write is pending; {first.action} {first.requested} is",
    )


def _of_nothing(retention: Retention, state: TableState, decision: CleanDecision) -> Note:
    pinned = _pinned(decision)
    if pinned is not None:
        return Note(NOTHING, f"nothing to do: {pinned}")
    commits = len(state.timeline.commits)
    if retention.policy is Policy.COMMITS and commits <= retention.keep:
        return Note(
            NOTHING,
            f"nothing to do: only {plural(commits, 'completed commit')} on the active timeline, "
            f"retention keeps {retention.keep}",
        )
    if retention.policy is Policy.HOURS and commits and decision.verdict.boundary.policy is None:
        return Note(
            "idle",
            f"nothing to do: the newest commit {state.timeline.commits[-1].requested} is older "
            f"than the window of {amount(retention)}, and Hudi keeps all files of idle tables",
        )
    return Note(NOTHING, f"nothing to do: no file slice is beyond {amount(retention)}")


def _pinned(decision: CleanDecision) -> str | None:
    """What saves the slices that the policy alone would remove: the first reason, and its share."""
    kept, view = decision.kept, decision.view
    if not len(kept):
        return None
    slices = view.slice_of[decision.is_kept]
    rule = KEEP_RULES[int(np.bincount(kept.rule).argmax())]
    count = len(unique(slices[kept.rule == KEEP_RULES.index(rule)]))
    more = f", and other rules {plural(n, 'more')}" if (n := len(unique(slices)) - count) else ""
    many = plural(count, "slice")
    if rule == "savepoint":
        codes = unique(decision.guard.savepoint[slices])
        names = [decision.guard.savepoints[code] for code in codes if code >= 0]
        return f"savepoint {', '.join(names)} pins {many}{more}"
    return f"{_HOLDERS[rule]} {many}{more}"
