"""Pending clusterings that an apply of ours left behind: done again under their instant, or undone.

Files of the earlier attempt go first, by their markers, and what it told the metadata table: nobody
knows whether they are whole. Other writers' clusterings are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from reconciler.apply.checks import Look
from reconciler.apply.claim import claim
from reconciler.apply.cluster import carry_out, needed_rewriter, refuse_unlocked, start, without
from reconciler.apply.cluster_work import ClusterWork, action_of, claims_of, requested_plan
from reconciler.apply.cut_logs import cut_logs
from reconciler.apply.execute import with_heartbeat
from reconciler.apply.lost_files import lost_files
from reconciler.apply.patience import Waits, patiently
from reconciler.apply.regroup import Regrouped, regroup
from reconciler.apply.result import Rewritten as Done
from reconciler.apply.result import StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import BusyError
from reconciler.hudi.heartbeat import heartbeat_path
from reconciler.hudi.instant import State
from reconciler.hudi.owner import Owner
from reconciler.planners.resume_clustering import rewrites_of
from reconciler.rewrite.ground import Ground, ground_of
from reconciler.state.layout import LAYOUT, Layout
from reconciler.state.model import PendingClustering, TableState
from reconciler.transaction.conflicts import conflicts
from reconciler.transaction.footprints import footprints, known_writes, rolled_back_ms
from reconciler.transaction.publish import completion_of
from reconciler.transaction.undo import take_back


def resume_clusterings(table: Table, look: Look) -> Iterator[StepOutcome]:
    """Finish or undo every pending clustering of ours, oldest first.

    Raises BusyError for one that somebody works on.
    """
    for pending in look.state.pending_clusterings:
        if pending.is_ours:
            with table.phase("resume"):
                _check_not_taken(table, pending)
                claim(table, look, pending, "clustering")
                yield with_heartbeat(table, pending.instant, partial(_work_on, table, pending))


def _check_not_taken(table: Table, pending: PendingClustering) -> None:
    """Raises BusyError while another writer may be doing our clustering.

    We beat before we write the inflight file, so one without a heartbeat is not of us.
    """
    path = heartbeat_path(pending.instant)
    beaten = table.storage.stat(path) is not None
    owner = Owner.parse(table.storage.read(path)) if beaten else None
    begun = pending.state == State.INFLIGHT and owner is None
    taken_ms = rolled_back_ms(table, table.reread(), pending.instant)
    if not begun and taken_ms is None:
        return
    concurrency = table.spec.concurrency
    stale_after = concurrency.stale_after if concurrency else 0
    began_ms = max(pending.started_ms, taken_ms or 0)
    age_s = (table.tools.clock.now_ms() - began_ms) / 1000
    if age_s <= stale_after:
        raise BusyError(
            f"another writer has begun to execute our clustering {pending.instant} "
            f"{age_s:.0f} s ago; it counts as left behind after concurrency.staleAfter, "
            f"{stale_after} s"
        )


def _work_on(table: Table, pending: PendingClustering) -> StepOutcome:
    needed_rewriter(table)
    look = table.look()
    refuse_unlocked(table, look, own=pending.instant)
    state = look.state
    ground = ground_of(table.storage, state)
    planned = rewrites_of(pending.plan, state, f"of clustering {pending.instant}")
    chosen = regroup(
        planned,
        state,
        ours=pending.instant,
        refusal=ground.refusal,
        cut=cut_logs(table.storage, table.properties, state, planned),
        lost=lost_files(table.storage, table.properties, state, planned),
    )
    begun = patiently(table, partial(_begin_again, table, pending, chosen, state))
    assert begun is not None, "it waits no longer"
    chosen = begun
    if not len(chosen.groups):
        return StepOutcome(
            kind="resume", how="undone", rewritten=Done(left=chosen.left, gone=chosen.gone)
        )
    work = _work(table, pending, chosen, state, ground)
    outcome = carry_out(table, work, partial(_start, table, work, pending))
    return replace(outcome, kind="resume")


def _begin_again(
    table: Table, pending: PendingClustering, chosen: Regrouped, state: TableState, waits: Waits
) -> Regrouped | None:
    """Under the lock: what of it may still run; the earlier attempt is taken back.

    The plan is cut down to it, so that no other writer does what we would not; without anything
    left the instant goes. None where it ``waits`` first.
    """
    action = action_of(state.table_version)
    timeline, found = footprints(table, known_writes(state.timeline), pending.instant)
    if completion_of(timeline, pending.instant, action) is not None:
        raise BusyError(f"clustering {pending.instant} was completed by another writer meanwhile")
    if timeline.file(pending.instant, action, State.REQUESTED) is None:
        raise BusyError(f"clustering {pending.instant} was removed by another writer meanwhile")
    if rolled_back_ms(table, timeline, pending.instant, known_writes(state.timeline)) is not None:
        raise BusyError(
            f"a rollback of our clustering {pending.instant} is pending; run apply again when "
            "Hudi has finished it"
        )
    claims = claims_of(chosen.groups, state, table.spec)
    if waits(claims, found):
        return None
    chosen = without(chosen, conflicts(claims, found))
    table.lock.confirm()
    take_back(table.storage, pending.instant)
    if not len(chosen.groups):
        table.publisher.withdraw(pending.instant, action)
    elif chosen.left or chosen.gone:
        layout = _layout(table, pending)
        plan = requested_plan(chosen.groups, state, table.spec, layout, pending.extra)
        data = plan.encode(table.storage.location, version=state.table_version)
        table.publisher.amend(pending.instant, action, data)
    return chosen


def _work(
    table: Table,
    pending: PendingClustering,
    chosen: Regrouped,
    state: TableState,
    ground: Ground,
) -> ClusterWork:
    return ClusterWork(
        instant=pending.instant,
        groups=chosen.groups,
        layout=_layout(table, pending),
        ground=ground,
        state=state,
        extra=pending.extra,
        known=known_writes(state.timeline),
        attempt=table.owner.token,
        left=chosen.left,
        gone=chosen.gone,
    )


def _layout(table: Table, pending: PendingClustering) -> Layout:
    """How rows are to be ordered, as the instant says it."""
    text = pending.extra.get(LAYOUT)
    if text is None:
        return Layout()
    return Layout.parse(text, f"{table.properties.timeline_folder}/{pending.instant}")


def _start(table: Table, work: ClusterWork, pending: PendingClustering) -> None:
    if pending.state != State.INFLIGHT:
        start(table, work)
