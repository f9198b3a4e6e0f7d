"""Run a reviewed rollback: take back a write whose run is dead, and nothing else.

Hudi's rollbacks are instants of their own. Those of our own writes leave none: nothing of the write
was ever visible, and its owner is known to be dead. A write of another writer is rolled back as
Hudi does.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.errors import BusyError, UnsupportedError
from reconciler.executor.failed_write import roll_back_failed_write
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.freshness import make_keys
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.files.table_files import has_files
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.recovery.rollback_write import find_written_rows
from reconciler.plans.model import NamedFiles, Note, RollbackStep
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.recovery.dead_writes import find_pending_instant, is_row_write
from reconciler.transaction.recovery.pending_instants import (
    check_no_shared_logs,
    withdraw_named_files,
)
from reconciler.transaction.recovery.takeover import read_last_heartbeat
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change

_UNNAMED = "it came after the review, and the plan does not name it: plan again"
_KEPT = "its write has a file that came after the review, so nothing of it goes: plan again"
_COMPLETED = "its write was completed after the review, so it is the table's"
_WITHDRAWN = "its write is off the timeline since the review: plan again"

#: partition and name
File = tuple[str, str]


def run_rollback(session: ApplySession, step: RollbackStep, fresh: FreshPlan | None) -> StepOutcome:
    """Take the write back if it is what was reviewed and dead; otherwise leave it, and say why.

    ``fresh`` is a plan that was made just now, if there is one. Raises BusyError while its run
    lives or Hudi rolls it back, StorageError, FormatError. A write that the metadata table cannot
    forget is not taken back.
    """
    if step.writer == "foreign":
        return roll_back_failed_write(session, step, fresh)
    return run_change(_Rollback(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _Rollback(LockedApplyChange[FreshPlan, StepOutcome]):
    """A reviewed rollback. It has no instant of its own and ends under the lock."""

    activity = "a rollback was being prepared"
    request_phase = "rollback"

    step: RollbackStep

    def prepare(self) -> FreshPlan:
        return self.take_fresh_plan()

    def request(
        self,
        prepared: FreshPlan,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome]:
        session, step = self.session, self.step
        timeline = session.reload_timeline()
        pending = find_pending_instant(timeline, step.instant)
        if pending is None or not is_row_write(session, timeline, pending):
            is_there = any(instant.requested == step.instant for instant in timeline.instants)
            reason = _COMPLETED if is_there else _WITHDRAWN
            return Ended(_report_finished(prepared, step, reason))
        _check_dead(session, pending)
        if is_being_rolled_back(session, timeline, step.instant):
            raise BusyError(
                f"{session.name}: a rollback of {pending.action} {step.instant} is pending; run "
                "apply again when Hudi has finished it"
            )
        return Ended(_take_back(session, step, prepared, pending))


def _check_dead(session: ApplySession, pending: Instant) -> None:
    """Raise BusyError while the write's run lives, and if its owner is unknown."""
    what = f"{session.name}: {pending.action} {pending.requested}"
    beat = read_last_heartbeat(session.storage, pending.requested)
    if beat is None:
        raise BusyError(
            f"{what} has no heartbeat of ours any more, so another writer has its hand in it; run "
            "apply again when it is done"
        )
    if not beat.is_owner_dead(session.storage, session.context.process, session.clock.now_ms()):
        raise BusyError(f"{what} is the work of {beat.owner}, which still runs")


def _take_back(
    session: ApplySession, step: RollbackStep, fresh: FreshPlan, pending: Instant
) -> StepOutcome:
    """Withdraw a dead write; a file of it that nobody has reviewed keeps it pending.

    The table's lock is held.
    """
    named, sizes = set(_list_pairs(step.files)), _get_sizes(fresh, step.instant)
    unnamed = sizes.keys() - named
    if unnamed:
        return StepOutcome(
            kind="rollback", how="nothing", left_out=_explain_left(named, unnamed, sizes)
        )
    session.lock.confirm()
    try:
        check_no_shared_logs(session.storage, step.instant)
    except UnsupportedError as error:
        return StepOutcome(kind="rollback", how="failed", warnings=(Note("logFiles", str(error)),))
    try:
        done = withdraw_named_files(session, step.instant, pending.action, named)
    except UnsupportedError as error:  # it stays pending, in no other step's way
        return StepOutcome(kind="rollback", how="failed", warnings=(Note("metadata", str(error)),))
    removed = set(done.removed)
    outcome = StepOutcome(
        kind="rollback",
        how="nothing" if done.unnamed else "undone",
        instant=None if done.unnamed else step.instant,
        removed=len(removed),
        bytes=sum(sizes.get(file, 0) for file in removed),
        gone=len(named - removed),
        left_out=_explain_left(named - removed, done.unnamed, sizes) if done.unnamed else None,
    )
    if not done.unnamed:
        session.storage.delete(heartbeat_path(step.instant))
    return outcome


def _report_finished(fresh: FreshPlan, step: RollbackStep, because: str) -> StepOutcome:
    """Return the outcome of a rollback whose write is not pending any more."""
    is_there = has_files(fresh.state.files, make_keys(step.files)).tolist()
    left = {file for file, there in zip(_list_pairs(step.files), is_there, strict=True) if there}
    return StepOutcome(
        kind="rollback",
        how="nothing",
        gone=len(step.files) - len(left),
        left_out=FileReasons.from_rows([(*file, because) for file in left]),
    )


def _get_sizes(fresh: FreshPlan, instant: str) -> dict[File, int]:
    """Return the existing files of a pending write, with their sizes."""
    state = fresh.state
    write = next((write for write in state.pending_writes if write.instant == instant), None)
    if write is None:
        return {}
    sizes = {(folder, name): size for folder, name, size in write.unlisted}
    for row in find_written_rows(write, state).tolist():
        path = state.files.partitions[state.files.partition[row]]
        sizes[path, state.files.name[row].as_py()] = int(state.files.size[row])
    return sizes


def _explain_left(
    named: Collection[File], unnamed: Collection[File], existing: Collection[File]
) -> FileReasons | None:
    """Return what keeps the write, and the reviewed files that stay with it."""
    stays = [(*file, _KEPT) for file in set(named) & set(existing) - set(unnamed)]
    return FileReasons.from_rows([*stays, *((*file, _UNNAMED) for file in set(unnamed))])


def _list_pairs(files: NamedFiles) -> list[File]:
    return list(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))
