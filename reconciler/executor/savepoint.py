"""Run a reviewed savepoint step: make a savepoint as Hudi does, or remove one of ours."""

from __future__ import annotations

from reconciler.errors import AlreadyExistsError, StorageError
from reconciler.executor.clean.run import has_changed
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.outcomes import SavepointOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.savepoint import SavepointMetadata
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.savepoints.pinned_files import find_pinned_rows, group_by_partition
from reconciler.plans.model import Note
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.state.model import TableState
from reconciler.state.savepoint_comment import format_savepoint_comment
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change


def run_savepoint(
    session: ApplySession, step: SavepointStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Do what was reviewed if a fresh plan has the same step; otherwise say why nothing is done.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError, BusyError,
    StorageError, FormatError.
    """
    return run_change(_SavepointChange(session=session, fresh=fresh, step=step))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """The fresh step, and the table that it was planned from."""

    step: SavepointStep
    state: TableState


@dataclass(kw_only=True, eq=False)
class _SavepointChange(LockedApplyChange[_Decision, StepOutcome]):
    """A reviewed savepoint step. Its instant is that of a commit, and it ends under the lock.

    The metadata table has no record of savepoints, so nothing is synced.
    """

    activity = "a savepoint was being prepared"
    request_phase = "savepoint"
    refusable = "savepoint"

    step: SavepointStep

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        fresh = self.take_fresh_plan()
        wanted = (self.step.change, self.step.instant)
        for step in fresh.plan.steps:
            if isinstance(step, SavepointStep) and (step.change, step.instant) == wanted:
                return _Decision(step=step, state=fresh.state)
        left = _explain_left(self.step, fresh)
        return Ended(_make_outcome(self.step, how="nothing", left=left))

    def request(
        self,
        prepared: _Decision,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome] | None:
        session, step = self.session, prepared.step
        if has_changed(prepared.state.timeline, session.reload_timeline()):
            return None
        session.lock.confirm()
        if step.change == "remove":
            session.publisher.unpin(step.instant)
            return Ended(_make_outcome(step, how="completed"))
        try:
            warnings = _pin(session, step, prepared.state)
        except AlreadyExistsError:
            return None
        return Ended(_make_outcome(step, how="completed", warnings=warnings))


def _pin(session: ApplySession, step: SavepointStep, state: TableState) -> tuple[Note, ...]:
    """Write the files of a savepoint; the table's lock is held.

    A store may lose its answer to a completed file that it wrote: that is a warning.
    """
    data = _make_record(session, step, state).encode()
    try:
        session.publisher.pin(step.instant, data)
    except AlreadyExistsError:
        raise
    except StorageError as error:
        timeline = session.reload_timeline()
        if timeline.find_file(step.instant, Action.SAVEPOINT, State.COMPLETED) is None:
            raise
        text = f"the savepoint of {step.instant} is made, although the store says: {error}"
        return (Note("store", text),)
    return ()


def _make_record(
    session: ApplySession, step: SavepointStep, state: TableState
) -> SavepointMetadata:
    declared = next(one for one in session.spec.savepoints or () if one.name == step.name)
    actor = session.context.origin.actor or session.owner.who
    return SavepointMetadata(
        made_by=f"{actor} with {session.owner.tool}",
        made_ms=session.clock.now_ms(),
        comment=format_savepoint_comment(declared),
        files=group_by_partition(state, find_pinned_rows(state, step.instant)),
    )


def _explain_left(step: SavepointStep, fresh: FreshPlan) -> str | None:
    """Return why a reviewed step is not in a fresh plan; None if it was done meanwhile."""
    present = next((one for one in fresh.state.savepoints if one.instant == step.instant), None)
    if step.change == "remove":
        if present is None:
            return None
        if present.declared is None:
            return "another tool or person has made this savepoint since the review"
        return "the savepoint is wanted again since the review: plan again"
    if present is not None and present.completed and present.declared is not None:
        return None
    notes = [note.because for note in fresh.plan.warnings if note.rule == "savepoint"]
    return "; ".join(notes) or "a fresh plan does not make it any more: plan again"


def _make_outcome(
    step: SavepointStep, *, how: str, left: str | None = None, warnings: tuple[Note, ...] = ()
) -> StepOutcome:
    return StepOutcome(
        kind="savepoint",
        how="completed" if how == "completed" else "nothing",
        instant=step.instant if how == "completed" else None,
        warnings=warnings,
        savepoint=SavepointOutcome(
            change=step.change,
            name=step.name,
            until=step.until,
            files=step.files,
            bytes=step.bytes,
            left=left,
        ),
    )
