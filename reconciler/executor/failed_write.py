"""Roll back a failed write of another writer, as Hudi does: by a rollback instant of its own.

The requested file says what goes, and from then on any Hudi writer may execute it. Under the lock
the writer is then looked at once more; the files go, command blocks are written, the metadata table
forgets the write, and the write leaves the timeline before the rollback completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from reconciler.errors import BusyError, UnsupportedError
from reconciler.executor.failed_write_execution import (
    RollbackExecution,
    RollbackWork,
    find_limits,
    group_sizes,
    is_foreign_clustering,
)
from reconciler.executor.failed_write_review import (
    File,
    find_fresh_step,
    find_unreviewed,
    list_pairs,
    report_finished,
)
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.rollback import RollbackPlan
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.recovery.failed_files import measure_failed_files
from reconciler.plans.model import LogAppend, Note, RollbackStep
from reconciler.spec.model import Concurrency
from reconciler.state.model import PendingRollback
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.metadata.rollback_sync import prepare_rollback_sync
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.recovery.failed_writes import (
    check_abandoned,
    check_failed,
    find_pending_write,
    is_named_by,
    make_rollback_plan,
    measure_logs,
)
from reconciler.transaction.recovery.takeover import take_over
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import (
    Change,
    Ended,
    finish_change,
    run_change,
    run_with_heartbeat,
)


def roll_back_failed_write(
    session: ApplySession,
    step: RollbackStep,
    fresh: FreshPlan | None,
    *,
    keeps_request: bool = False,
) -> StepOutcome:
    """Roll back a reviewed failed write if it is what was reviewed and its writer is dead.

    A rollback of it that is left pending is finished. ``fresh`` is a plan that was made just now,
    if there is one. ``keeps_request``: a clustering goes back to its request. Raises BusyError
    while a writer or a rollback is at work, StorageError, FormatError.
    """
    if not session.lock.excludes_others:
        raise BusyError(
            f"{session.name}: without a lock it cannot be known that {step.action} {step.instant} "
            "is left behind: let its writer finish it, or configure spec.concurrency.lock"
        )
    fresh = fresh or session.observe()
    for rollback in fresh.state.pending_rollbacks:
        if rollback.plan is not None and rollback.plan.target == step.instant:
            with session.phase("rollback"):
                return _finish_pending(session, step, fresh, rollback, keeps_request=keeps_request)
    change = _Rollback(session=session, fresh=fresh, step=step, keeps_request=keeps_request)
    return run_change(change)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """What a rollback may remove, and the fresh plan that it was decided from."""

    fresh: FreshPlan
    target: Instant
    files: tuple[File, ...]
    appends: tuple[LogAppend, ...]
    sizes: Mapping[File, int]


@dataclass(kw_only=True, eq=False)
class _Rollback(RollbackExecution, Change[_Decision, RollbackWork, None, StepOutcome]):
    """A reviewed rollback that is not on the timeline yet."""

    activity = "a rollback was being prepared"
    request_phase = "rollback"

    step: RollbackStep
    keeps_request: bool = False

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        fresh, step = self.take_fresh_plan(), self.step
        timeline = fresh.state.timeline
        target = find_pending_write(timeline, step.instant)
        planned = find_fresh_step(fresh, step)
        if target is None:
            return Ended(report_finished(fresh, step))
        if planned is None:
            _check_dead(self.session, fresh, timeline, target)
            raise BusyError(
                f"{self.session.name}: a fresh plan does not roll back {step.action} "
                f"{step.instant}: plan again"
            )
        sizes = measure_failed_files(step.instant, fresh.state)
        left = find_unreviewed(step, planned, sizes)
        if left:
            outcome = StepOutcome(
                kind="rollback", how="nothing", left_out=FileReasons.from_rows(left)
            )
            return Ended(outcome)
        decision = _Decision(
            fresh=fresh,
            target=target,
            files=tuple(list_pairs(planned.files)),
            appends=planned.appends or (),
            sizes=sizes,
        )
        try:
            _check_metadata(self.session, decision)
        except UnsupportedError as error:  # it stays pending, in no other step's way
            note = Note("metadata", str(error))
            return Ended(StepOutcome(kind="rollback", how="failed", warnings=(note,)))
        return decision

    def request(
        self,
        prepared: _Decision,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> RollbackWork | None:
        session = self.session
        timeline = session.reload_timeline()
        target = find_pending_write(timeline, prepared.target.requested)
        if target != prepared.target:
            return None
        if is_being_rolled_back(session, timeline, target.requested):
            raise BusyError(
                f"{session.name}: a rollback of {target.action} {target.requested} is pending; run "
                "apply again when it is finished"
            )
        _check_dead(session, prepared.fresh, timeline, target)
        plan = make_rollback_plan(target, prepared.files, prepared.appends, prepared.sizes)
        session.lock.confirm()
        started_ms = session.clock.now_ms()
        instant = session.request_instant(
            Action.ROLLBACK, timeline, plan.encode(session.storage.location)
        )
        return RollbackWork(
            instant=instant,
            target=target.requested,
            target_action=target.action,
            files=prepared.files,
            appends=prepared.appends,
            sizes=prepared.sizes,
            started_ms=started_ms,
            limits=find_limits(session, prepared.fresh, target.requested),
            is_clustering=is_foreign_clustering(prepared.fresh, target.requested),
            keeps_request=self.keeps_request,
        )

    def drop_request(self, pending: RollbackWork | None) -> None:
        if pending is not None:
            self.session.publisher.withdraw(pending.instant, Action.ROLLBACK)


def _check_dead(
    session: ApplySession, fresh: FreshPlan, timeline: Timeline, target: Instant
) -> None:
    """Raise BusyError unless the writer of a pending write or clustering is dead."""
    limits = find_limits(session, fresh, target.requested)
    if is_foreign_clustering(fresh, target.requested):
        check_abandoned(session, timeline, target, limits)
    else:
        check_failed(session, timeline, target, limits)


def _finish_pending(
    session: ApplySession,
    step: RollbackStep,
    fresh: FreshPlan,
    rollback: PendingRollback,
    *,
    keeps_request: bool,
) -> StepOutcome:
    """Finish a pending rollback that nobody works on, as its own plan says."""
    planned = find_fresh_step(fresh, step)
    what = f"{session.name}: rollback {rollback.instant} of {step.action} {step.instant}"
    if not rollback.is_dead(session.clock.now_ms(), session.spec.concurrency or Concurrency()):
        by = rollback.owner or "another writer"
        raise BusyError(f"{what} is the work of {by}; run apply again when it is done")
    if planned is None or rollback.plan is None:
        raise BusyError(f"{what} cannot be finished here; the plan's warnings say why")
    sizes = measure_failed_files(step.instant, fresh.state)
    left = find_unreviewed(step, planned, sizes)
    if left:
        return StepOutcome(kind="rollback", how="nothing", left_out=FileReasons.from_rows(left))
    take_over(session, rollback, known=fresh.state.timeline, kind="rollback")
    work = RollbackWork(
        instant=rollback.instant,
        target=step.instant,
        target_action=Action(step.action),
        files=_list_files(rollback.plan, planned),
        appends=planned.appends or (),
        sizes=sizes,
        started_ms=session.clock.now_ms(),
        limits=find_limits(session, fresh, step.instant),
        is_begun=rollback.state != State.REQUESTED,
        is_resumed=True,
        is_clustering=is_foreign_clustering(fresh, step.instant),
        keeps_request=keeps_request,
    )
    change = RollbackExecution(session=session)
    outcome: StepOutcome = run_with_heartbeat(
        session,
        rollback.instant,
        partial(finish_change, change, work),
        stays_pending=change.stays_pending,
    )
    return outcome


def _list_files(plan: RollbackPlan, step: RollbackStep) -> tuple[File, ...]:
    """Return the files of a rollback: those of its plan, and others that its write left."""
    planned = {
        (request.partition, name)
        for request in plan.requests
        for name in request.files
        if is_named_by(name, plan.target)
    }
    return tuple(sorted({*planned, *list_pairs(step.files)}))


def _check_metadata(session: ApplySession, decision: _Decision) -> None:
    """Raise FormatError or UnsupportedError when the metadata table could not be updated later."""
    time = session.publisher.choose_time(decision.fresh.state.timeline)
    ours = Instant(time, Action.ROLLBACK, State.REQUESTED)
    request = SyncRequest(
        storage=session.storage,
        properties=session.properties,
        timeline=Timeline.from_files(
            (*decision.fresh.state.timeline.files, TimelineFile(ours, ours.file_name, 0, 0))
        ),
        instant=time,
        zone=session.publisher.zone,
        choose_time=lambda: time,
    )
    logs = measure_logs(session.storage, decision.appends)
    prepare_rollback_sync(request, decision.target.requested, group_sizes(logs))
