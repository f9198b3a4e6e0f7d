"""Pending cleans that somebody left behind: finished, undone or cleared up.

Ours are known by the plan's digest in their extra metadata and finished as soon as their owner is
dead. Another writer's is finished only when a review has named it, it is older than ``staleAfter`` and
there is a lock; an empty or damaged one is cleared up then. Whatever a savepoint protects by now
stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reconciler.apply.checks import refuse
from reconciler.apply.execute import Work, begin, finish
from reconciler.apply.freshness import Selection, keys, keys_present, select, take
from reconciler.apply.payloads import DELETE_PARTITIONS, OWNER, PLACEHOLDER, PLAN_DIGEST
from reconciler.apply.result import StepOutcome
from reconciler.apply.table import Look, Table
from reconciler.errors import BusyError, StaleError
from reconciler.hudi.instant import Action, State
from reconciler.hudi.owner import Owner
from reconciler.plan.model import ResumeStep
from reconciler.state.model import PendingClean
from reconciler.transaction.lock import NoLock
from reconciler.transaction.pulse import living_owner


def resume_pending(table: Table, look: Look) -> Iterator[StepOutcome]:
    """Finish, undo or clear up every pending clean, oldest first.

    Raises BusyError for one that may not be touched (yet), StaleError for one that no review named.
    """
    for clean in look.state.pending_cleans:
        refuse(table, look)
        with table.phase("resume"):
            _claim(table, look, clean)
            yield _resume(table, clean)


def resume_reviewed(look: Look, step: ResumeStep) -> StepOutcome:
    """A reviewed resume whose clean is not pending any more: what is still there was left."""
    selection = select(step, None, look.plan.kept, look.state.files, None)
    return StepOutcome(
        kind="resume",
        how="nothing",
        gone=selection.gone,
        left_out=selection.left_out if len(selection.left_out) else None,
    )


def is_ours(clean: PendingClean) -> bool:
    """Whether one of our applies requested it."""
    return PLAN_DIGEST in clean.extra


def _claim(table: Table, look: Look, clean: PendingClean) -> None:
    """Make sure under the lock that nobody works on it, and say that we do now."""
    if not is_ours(clean):
        _check_foreign(table, clean)
    with table.locked():
        timeline = table.reread()
        before = [f for f in look.state.timeline.files if f.instant.requested == clean.instant]
        if before != [f for f in timeline.files if f.instant.requested == clean.instant]:
            raise BusyError(f"clean {clean.instant} is being worked on by another writer")
        owner = living_owner(
            table.storage,
            clean.instant,
            requested_by=Owner.parse(clean.extra.get(OWNER, "")),
            requested_ms=clean.started_ms,
            process=table.tools.process,
            now_ms=table.tools.clock.now_ms(),
        )
        if owner is not None:
            raise BusyError(f"clean {clean.instant} is the work of {owner}, which still runs")
        table.lock.confirm()
        table.heartbeat(clean.instant).beat()


def _check_foreign(table: Table, clean: PendingClean) -> None:
    """Raises for another writer's clean that may not be touched."""
    concurrency = table.spec.concurrency
    stale_after = concurrency.stale_after if concurrency else 0
    age_s = (table.tools.clock.now_ms() - clean.started_ms) / 1000
    named = f"clean {clean.instant} of another writer is {clean.state.lower()}"
    if age_s <= stale_after:
        raise BusyError(
            f"{named} since {age_s:.0f} s and may be at work; it counts as left behind after "
            f"concurrency.staleAfter, {stale_after} s"
        )
    if isinstance(table.lock, NoLock):
        raise BusyError(
            f"{named}; without a lock it cannot be known to be left behind: let its writer finish "
            "it, or configure spec.concurrency.lock"
        )
    if clean.problem is None and _reviewed(table, clean) is None:
        raise StaleError(f"{named} and the plan does not name it; plan again to have it resumed")


def _reviewed(table: Table, clean: PendingClean) -> ResumeStep | None:
    for step in table.plan.steps:
        if isinstance(step, ResumeStep) and step.instant == clean.instant:
            return step
    return None


def _resume(table: Table, clean: PendingClean) -> StepOutcome:
    """Finish or undo a clean that is claimed."""
    heartbeat = table.heartbeat(clean.instant)
    try:
        with table.pulse.beating(heartbeat.beat):
            outcome = _work_on(table, clean)
    except Exception:
        heartbeat.end()
        raise
    if outcome.how == "inflight":
        heartbeat.end()
    else:
        heartbeat.remove()
    return outcome


def _work_on(table: Table, clean: PendingClean) -> StepOutcome:
    started_ms = table.tools.clock.now_ms()
    if clean.problem is not None:
        return _undo(table, clean, StepOutcome(kind="resume", how="undone"))
    look = table.look()
    selection = _selection(table, look, clean)
    left_out = selection.left_out if len(selection.left_out) else None
    if selection.is_empty:
        return _undo(table, clean, StepOutcome(kind="resume", how="undone", left_out=left_out))
    work = _work(table, look, clean, selection, started_ms)
    if clean.state == State.REQUESTED:
        begin(table, work)
    outcome = finish(table, work, "resume")
    return replace(
        outcome,
        left_out=left_out,
        partitions_left=(*outcome.partitions_left, *selection.partitions_left),
    )


def _undo(table: Table, clean: PendingClean, outcome: StepOutcome) -> StepOutcome:
    """Take it off the timeline: nothing of it was done and nothing of it may be."""
    with table.locked():
        if completion_of(table.reread(), clean.instant, Action.CLEAN) is not None:
            raise BusyError(f"clean {clean.instant} was completed by another writer meanwhile")
        table.lock.confirm()
        table.publisher.withdraw(clean.instant, Action.CLEAN)
    return outcome
