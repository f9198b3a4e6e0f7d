"""Run a reviewed clean: decide what still holds, request it, and look at savepoints again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from reconciler.errors import AlreadyExistsError, BusyError
from reconciler.executor.clean import hudi_execution
from reconciler.executor.clean.execution import CleanExecution, CleanWork
from reconciler.executor.clean.payloads import group_names, make_clean_extra, make_cleaner_plan
from reconciler.executor.fresh_plan import FreshPlan, check_pending_cleans
from reconciler.executor.freshness import (
    CleanSelection,
    choose_earliest,
    select_fresh,
)
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import CleanStep
from reconciler.state.model import TableState
from reconciler.transaction.metadata.clean_sync import prepare_clean_sync
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.publish import find_completion
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, Ended, run_change

#: what may appear on the timeline without changing what a clean may remove: a write only supersedes
_HARMLESS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """The selected part of a clean, and the fresh plan that it was decided from."""

    fresh: FreshPlan
    selection: CleanSelection
    policy: str
    earliest: str | None


def run_clean(session: ApplySession, step: CleanStep, fresh: FreshPlan | None) -> StepOutcome:
    """Remove the files that are both reviewed and in a fresh plan, and report the rest.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError or BusyError
    before anything is deleted, and what ``CleanExecution`` raises.
    """
    kind = _CleanStep if session.context.hudi is None else _CleanStepByHudi
    change = kind(
        session=session,
        kind="clean",
        fresh=fresh,
        step=step,
        started_ms=session.context.clock.now_ms(),
    )
    return run_change(change)


@dataclass(kw_only=True, eq=False)
class _CleanStep(CleanExecution, Change[_Decision, CleanWork, StepOutcome, StepOutcome]):
    """A reviewed clean; ``selection`` is what was chosen last."""

    activity = "a clean was being prepared"
    refusable = "clean"

    step: CleanStep
    started_ms: int
    selection: CleanSelection | None = None

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        decision = _decide(self.session, self.step, self.take_fresh_plan())
        if decision.selection.is_empty:
            outcome = StepOutcome(kind="clean", how="nothing")
            return Ended(_add_left_out(outcome, decision.selection))
        self.selection = decision.selection
        return decision

    def request(self, prepared: _Decision, should_wait: ShouldWait) -> CleanWork | None:  # noqa: ARG002
        timeline = self.session.reload_timeline()
        if has_changed(prepared.fresh.state.timeline, timeline):
            return None
        return _write_request(self.session, prepared, timeline, self.started_ms)

    def confirm_request(self, prepared: _Decision, pending: CleanWork) -> bool:
        """Look at the savepoints once more, and withdraw the clean if they have changed.

        Files that a new savepoint protects are found by deciding again.
        """
        before = prepared.fresh.state.timeline
        if not have_savepoints_changed(before, self.session.reload_timeline()):
            return True
        self.session.run_locked(partial(_withdraw, self.session, pending.instant))
        return False

    def tidy(
        self, pending: CleanWork, result: StepOutcome | None, outcome: StepOutcome
    ) -> StepOutcome:
        assert self.selection is not None, "what is tidied was prepared"
        tidied = super().tidy(pending, result, outcome)
        return _add_left_out(tidied, self.selection)


@dataclass(kw_only=True, eq=False)
class _CleanStepByHudi(_CleanStep):
    """A reviewed clean that Hudi executes from its inflight file to its end."""

    def begin(self, pending: CleanWork) -> None:
        pass

    def work(self, pending: CleanWork) -> Ended[StepOutcome]:
        hudi = self.session.context.hudi
        assert hudi is not None, "it was chosen for its Hudi"
        return Ended(hudi_execution.execute_clean_by_hudi(self.session, hudi, pending))


def _decide(session: ApplySession, step: CleanStep, fresh: FreshPlan) -> _Decision:
    check_pending_cleans(fresh)
    fresh_step = next((s for s in fresh.plan.steps if isinstance(s, CleanStep)), None)
    state = fresh.state
    folders = state.metafile_partitions.union(state.partitions)
    selection = select_fresh(
        step, fresh_step, fresh.plan.kept, state.files, folders, _choose_boundary(step, fresh_step)
    )
    if not selection.is_empty:
        _check_metadata(session, state, selection)
    return _Decision(
        fresh=fresh,
        selection=selection,
        policy=(fresh_step or step).policy,
        earliest=choose_earliest(state, selection.earliest, selection.staying, selection.files),
    )


def _check_metadata(session: ApplySession, state: TableState, selection: CleanSelection) -> None:
    """Raise FormatError or UnsupportedError when the metadata table could not be updated later."""
    time = session.publisher.choose_time(state.timeline)
    ours = Instant(time, Action.CLEAN, State.REQUESTED)
    timeline = Timeline.from_files(
        (*state.timeline.files, TimelineFile(ours, ours.file_name, 0, 0))
    )
    request = SyncRequest(
        storage=session.storage,
        properties=session.properties,
        timeline=timeline,
        instant=time,
        zone=session.publisher.zone,
        choose_time=lambda: time,
    )
    prepare_clean_sync(request, group_names(selection.files), selection.delete_partitions)


def _choose_boundary(step: CleanStep, fresh: CleanStep | None) -> str | None:
    """Return the smaller of the two boundaries; None under file versions, which have none."""
    steps = (step, fresh) if fresh else (step,)
    times = [step.earliest_instant_to_retain for step in steps]
    return min((time for time in times if time is not None), default=None)


def _write_request(
    session: ApplySession, decision: _Decision, timeline: Timeline, started_ms: int
) -> CleanWork | None:
    """Write the requested file; None when its name was taken meanwhile (``lock: none``)."""
    selection, state = decision.selection, decision.fresh.state
    extra = session.make_extra() | make_clean_extra(state, selection.delete_partitions)
    plan = make_cleaner_plan(
        state,
        selection.files,
        policy=decision.policy,
        earliest=decision.earliest,
        delete_partitions=selection.delete_partitions,
        extra=extra,
    )
    data = plan.encode(session.storage.location)
    session.lock.confirm()
    try:
        instant = session.request_instant(Action.CLEAN, timeline, data)
    except AlreadyExistsError:
        return None
    return CleanWork(
        instant=instant,
        plan=plan,
        request=data,
        files=selection.files,
        listed=state.files,
        delete_partitions=selection.delete_partitions,
        earliest=decision.earliest,
        started_ms=started_ms,
    )


def _withdraw(session: ApplySession, instant: str) -> None:
    """Withdraw our requested clean, unless another writer has begun to execute it."""
    timeline = session.reload_timeline()
    is_begun = timeline.find_file(instant, Action.CLEAN, State.INFLIGHT) is not None
    if is_begun or find_completion(timeline, instant, Action.CLEAN) is not None:
        raise BusyError(
            f"another writer executes our clean {instant} although a savepoint made meanwhile may "
            "protect files of it; look at the savepoint and plan again"
        )
    session.lock.confirm()
    session.publisher.withdraw(instant, Action.CLEAN)
    session.make_heartbeat(instant).remove()


def has_changed(before: Timeline, now: Timeline) -> bool:
    """Return True if anything happened since that a decided clean must not ignore.

    Writes that begin or complete only supersede more files. Whatever disappears (by a rollback or
    the archiver) and every other action (savepoint, clean, restore, compaction, clustering,
    replace) may change which files are newest, protected or pending.
    """
    old, new = set(before.files), set(now.files)
    return bool(old - new) or any(file.instant.action not in _HARMLESS for file in new - old)


def have_savepoints_changed(before: Timeline, now: Timeline) -> bool:
    """Return True if a savepoint was made, half made or removed."""
    return _list_savepoints(before) != _list_savepoints(now)


def _list_savepoints(timeline: Timeline) -> set[str]:
    return {file.name for file in timeline.files if file.instant.action is Action.SAVEPOINT}


def _add_left_out(outcome: StepOutcome, selection: CleanSelection) -> StepOutcome:
    return replace(
        outcome,
        gone=outcome.gone + selection.gone,
        left_out=selection.left_out if len(selection.left_out) else None,
        partitions_left=(*outcome.partitions_left, *selection.partitions_left),
    )
