"""Run a reviewed compaction: choose the slices that may still be compacted, and request them.

What happens from the requested file on is the same as for a compaction that somebody else planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import AlreadyExistsError
from reconciler.executor.cluster.execution import require_rewriter
from reconciler.executor.cluster.group_selection import (
    GroupSelection,
    drop_groups,
    select_groups,
    take_groups,
)
from reconciler.executor.compact.execution import (
    CompactedSlices,
    CompactionExecution,
    find_input_problem,
)
from reconciler.executor.compact.publish import abandon_compaction
from reconciler.executor.compact.request import list_operations, make_plan
from reconciler.executor.compact.work import CompactionWork, measure_inputs
from reconciler.executor.earlier_applies import find_earlier_commits
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.load import load_properties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Action, State
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.compact.planner import find_unsafe_write
from reconciler.planners.newest_slices import find_candidates, find_slices
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.groups import slice_paths
from reconciler.plans.model import Note
from reconciler.plans.rewrites import Rewrites
from reconciler.rewrite.facts import TableFacts, read_table_facts
from reconciler.spec.model import FileSizes
from reconciler.transaction.conflicts import Footprint, GroupClaim, find_conflicts
from reconciler.transaction.footprints import collect_completed_writes, read_footprints
from reconciler.transaction.recovery.damaged_files import find_damaged_files
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, Ended, run_change

#: a pending instant of these undoes a completed write, and may be of any file group
_UNDOING = frozenset({Action.ROLLBACK, Action.RESTORE})
#: pending instants of these actions hold the file groups that their plans name
_SERVICES = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.REPLACECOMMIT}
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """The slices to compact now, and facts behind them."""

    fresh: FreshPlan
    chosen: GroupSelection
    facts: TableFacts


def run_compact(session: ApplySession, step: CompactStep, fresh: FreshPlan | None) -> StepOutcome:
    """Compact the slices that are both reviewed and unchanged, and report the rest.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError, BusyError and
    UnsupportedError before anything is written. What goes wrong later is undone, as far as no
    writer may have seen the request; otherwise the next apply finishes it.
    """
    require_rewriter(session)
    return run_change(_CompactStep(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _CompactStep(
    CompactionExecution, Change[_Decision, CompactionWork, CompactedSlices, StepOutcome]
):
    """A reviewed compaction; ``chosen``: the slices that it has requested, and why others stay."""

    activity = "a compaction was being prepared"
    refusable = "compact"

    step: CompactStep
    chosen: GroupSelection | None = field(default=None)

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        decision = _decide(self.session, self.step, self.take_fresh_plan())
        if not len(decision.chosen.groups):
            return _report_unchanged(decision.chosen)
        return decision

    def request(
        self,
        prepared: _Decision,
        should_wait: ShouldWait,  # noqa: ARG002 (no pending write is waited for)
    ) -> CompactionWork | Ended[StepOutcome] | None:
        """Announce the slices that no other write has touched since the fresh plan."""
        session, state = self.session, prepared.fresh.state
        known = collect_completed_writes(state.timeline)
        timeline, writes = read_footprints(session, known, None)
        if known - collect_completed_writes(timeline):
            return None
        chosen = _leave_beside_writes(prepared, timeline)
        chosen = drop_groups(chosen, find_conflicts(_make_claims(chosen.groups), _hold(writes)))
        if not len(chosen.groups):
            return _report_unchanged(chosen)
        self.chosen = chosen
        return _write_request(session, replace(prepared, chosen=chosen), timeline, self.step.order)

    def tidy(
        self, pending: CompactionWork, result: CompactedSlices | None, outcome: StepOutcome
    ) -> StepOutcome:
        """Tidy up as after any compaction, and report the slices that were left."""
        tidied = super().tidy(pending, result, outcome)
        return replace(tidied, kind="compact", rewritten=self._add_left(tidied.rewritten))

    def abandon(self, pending: CompactionWork) -> None:
        abandon_compaction(self.session, pending, withdraws=True)

    def explain_failure(
        self, pending: CompactionWork, error: BaseException, *, has_worked: bool
    ) -> StepOutcome | None:
        """Return the outcome of a compaction whose input cannot be merged."""
        problem = None if has_worked else find_input_problem(pending, error)
        if problem is None:
            return None
        timeline = self.session.reload_timeline()
        stays = timeline.find_file(pending.instant, pending.action, State.REQUESTED) is not None
        what = f"compaction {pending.instant} {'stays pending' if stays else 'was undone'}"
        return StepOutcome(
            kind="compact",
            how="failed",
            rewritten=self._add_left(ClusterOutcome()),
            warnings=(Note("compaction", f"{what}: {problem}"),),
        )

    def _add_left(self, done: ClusterOutcome | None) -> ClusterOutcome | None:
        if done is None or self.chosen is None:
            return done
        return replace(done, left=self.chosen.left, gone=self.chosen.gone)


def _decide(session: ApplySession, step: CompactStep, fresh: FreshPlan) -> _Decision:
    state = fresh.state
    facts = read_table_facts(session.storage, state)
    properties = load_properties(session.storage)
    gone = _find_compacted(session, step.groups, fresh)
    reviewed = take_groups(step.groups, np.flatnonzero(~np.isin(np.arange(len(step.groups)), gone)))
    chosen = select_groups(
        reviewed,
        state,
        but_writes=True,
        refusal=facts.merge_refusal,
        damage=find_damaged_files(session.storage, properties, state, reviewed),
    )
    decision = _Decision(fresh=fresh, chosen=replace(chosen, gone=len(gone)), facts=facts)
    return replace(decision, chosen=_leave_beside_writes(decision, state.timeline))


def _find_compacted(session: ApplySession, reviewed: Rewrites, fresh: FreshPlan) -> Integers:
    """Return the reviewed slices that an earlier apply of this very plan has compacted."""
    done = find_earlier_commits(session, fresh.state.timeline, Action.COMMIT)
    if not done:
        return np.zeros(0, np.int64)
    slices = find_candidates(fresh.state)
    rows = find_slices(slices, slice_paths(reviewed))
    files = slices.view.files
    is_done = np.array([instant in done for instant in files.instants], np.bool_)
    base = np.where(rows >= 0, slices.base_row[rows], -1)
    return np.flatnonzero(np.where(base >= 0, is_done[files.instant[base]], False))


def _leave_beside_writes(decision: _Decision, timeline: Timeline) -> GroupSelection:
    """Return the slices without all of them while a write is pending that may write to them."""
    state, chosen = decision.fresh.state, decision.chosen
    write = find_unsafe_write(state, timeline.pending(COMMITS))
    if write is None:
        return chosen
    text = (
        f"{write.action} {write.requested} is pending, and in table version {state.table_version} "
        "it may still write log files to its file group"
    )
    return drop_groups(chosen, dict.fromkeys(range(len(chosen.groups)), text))


def _make_claims(groups: Rewrites) -> list[GroupClaim]:
    rows = zip(groups.partition.to_pylist(), groups.file_id.to_pylist(), strict=True)
    return [
        GroupClaim(partition=partition, ids=frozenset({file_id}), is_open=False)
        for partition, file_id in rows
    ]


def _hold(writes: Sequence[Footprint]) -> list[Footprint]:
    """Return the writes that slices cannot be compacted beside.

    Rows of a pending write go to the slices after the compaction, and where an insert overwrite
    replaces a file group, it replaces the compacted one too.
    """
    return [write for write in writes if write.is_completed or _holds_while_pending(write)]


def _holds_while_pending(write: Footprint) -> bool:
    action = Action(write.action)
    return action in _UNDOING or (write.is_known and action in _SERVICES)


def _write_request(
    session: ApplySession, decision: _Decision, timeline: Timeline, order: str
) -> CompactionWork | None:
    """Write the requested file; None when its name was taken meanwhile."""
    state, extra = decision.fresh.state, session.make_extra()
    operations = list_operations(decision.chosen.groups)
    sizes = measure_inputs(operations, state)
    plan = make_plan(operations, sizes, state, order, extra)
    target = (session.spec.files or FileSizes()).target
    data = plan.encode(version=state.table_version, target_bytes=target)
    session.lock.confirm()
    try:
        instant = session.request_instant(Action.COMPACTION, timeline, data)
    except AlreadyExistsError:
        return None
    return CompactionWork(
        instant=instant,
        operations=tuple(planned.operation for planned in plan.operations),
        facts=decision.facts,
        state=state,
        extra=extra,
        attempt=session.owner.token,
        sizes=sizes,
        seen=collect_completed_writes(timeline),
    )


def _report_unchanged(chosen: GroupSelection) -> Ended[StepOutcome]:
    return Ended(StepOutcome(kind="compact", how="nothing", rewritten=chosen.unchanged))
