"""Bring a requested rollback of another writer's write to its end, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from reconciler.errors import AlreadyExistsError, BusyError, StaleError
from reconciler.executor.failed_write_review import COMPLETED, File, explain_left
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplyChange, ApplySession
from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.rollback import RollbackMetadata, RolledBackPartition
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import LogAppend, Note
from reconciler.spec.model import Concurrency, PendingServices
from reconciler.transaction.metadata.rollback_sync import prepare_rollback_sync
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.failed_writes import (
    append_command_blocks,
    check_abandoned,
    check_failed,
    find_pending_write,
    find_unnamed_files,
    measure_logs,
    remove_failed_write,
    revert_clustering,
)
from reconciler.transaction.recovery.marked_files import remove_files, remove_markers
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Completion, Ended, RequestedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackWork:
    """A requested rollback, and what it removes.

    ``sizes``: of ``files`` that exist, as listed. ``is_begun``: its inflight file is there.
    ``limits``: when its writer counts as dead.
    ``is_resumed``: another run has requested it, and may have begun to delete. ``is_clustering``:
    its target is a clustering of another writer; ``keeps_request``: it goes back to its request.
    """

    instant: str
    target: str
    target_action: Action
    files: tuple[File, ...]
    appends: tuple[LogAppend, ...]
    sizes: Mapping[File, int]
    started_ms: int
    limits: Concurrency
    is_begun: bool = False
    is_resumed: bool = False
    is_clustering: bool = False
    keeps_request: bool = False

    @property
    def action(self) -> Action:
        return Action.ROLLBACK


def find_limits(session: ApplySession, fresh: FreshPlan, instant: str) -> Concurrency:
    """Return when the spec holds the writer of a pending write or table service for dead."""
    declared, state = session.spec.concurrency or Concurrency(), fresh.state
    services = {one.instant for one in state.pending_clusterings}
    services |= {one.instant for one in state.pending_compactions}
    if instant not in services:
        return declared
    after = (declared.pending or PendingServices()).after
    return replace(declared, stale_after=after, heartbeat_timeout=after)


def is_foreign_clustering(fresh: FreshPlan, instant: str) -> bool:
    """Return whether an instant is a pending clustering of another writer."""
    return any(
        clustering.instant == instant and not clustering.is_ours
        for clustering in fresh.state.pending_clusterings
    )


@dataclass(kw_only=True, eq=False)
class RollbackExecution(ApplyChange, RequestedChange[RollbackWork, None, StepOutcome]):
    """Brings a requested rollback to its end. ``removed`` files are added to.

    ``has_begun``: something of the write may be gone, so the rollback must be finished.
    """

    session: ApplySession
    fresh: FreshPlan | None = None
    removed: set[File] = field(default_factory=set)
    has_begun: bool = False

    def begin(self, pending: RollbackWork) -> None:
        """Write the inflight file; BusyError when another writer executes the rollback."""
        if pending.is_begun:
            return
        try:
            self.session.publisher.begin(pending.instant, Action.ROLLBACK, b"")
        except AlreadyExistsError:
            raise BusyError(
                f"another writer has begun to execute our rollback {pending.instant}; plan again "
                "when it is done"
            ) from None

    def work(self, pending: RollbackWork) -> None:
        """Do nothing: all is done under the lock, so that the writer cannot complete meanwhile."""

    def settle(
        self,
        pending: RollbackWork,
        result: None,  # noqa: ARG002
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Completion[StepOutcome] | Ended[StepOutcome]:
        session = self.session
        timeline = session.reload_timeline()
        if find_completion(timeline, pending.instant, Action.ROLLBACK) is not None:
            return Ended(self._make_outcome(pending, "adopted"))
        if timeline.find_file(pending.instant, Action.ROLLBACK, State.REQUESTED) is None:
            raise StaleError("another writer removed its requested file from the timeline")
        if (kept := self._check_target(timeline, pending)) is not None:
            return Ended(kept)
        return self._undo(timeline, pending)

    def _check_target(self, timeline: Timeline, pending: RollbackWork) -> StepOutcome | None:
        """Look at the write and its files once more; return the outcome if it stays.

        A rollback of this run that has removed nothing yet is withdrawn then.
        """
        session, target = self.session, find_pending_write(timeline, pending.target)
        if target is None:
            if any(i.requested == pending.target and i.is_completed for i in timeline.instants):
                return self._withdraw(pending, [(*file, COMPLETED) for file in pending.files])
            return None
        if pending.is_clustering:
            check_abandoned(session, timeline, target, pending.limits)
        else:
            process = session.context.process if pending.is_resumed else None
            check_failed(session, timeline, target, pending.limits, process)
        unnamed = find_unnamed_files(
            session.storage, pending.target, pending.files, pending.appends
        )
        if unnamed:
            return self._withdraw(pending, explain_left(pending.files, unnamed, pending.sizes))
        return None

    def _withdraw(self, pending: RollbackWork, left: Sequence[tuple[str, str, str]]) -> StepOutcome:
        """Take our rollback back, or leave one that has begun to the next apply."""
        outcome = StepOutcome(
            kind="rollback",
            how="inflight" if pending.is_resumed or self.has_begun else "nothing",
            left_out=FileReasons.from_rows(left),
        )
        if outcome.how == "inflight":
            return replace(outcome, instant=pending.instant, removed=len(self.removed))
        self.session.lock.confirm()
        self.session.publisher.withdraw(pending.instant, Action.ROLLBACK)
        return outcome

    def _undo(self, timeline: Timeline, pending: RollbackWork) -> Completion[StepOutcome]:
        """Delete the files and write the command blocks; the table's lock is held."""
        session = self.session
        session.lock.confirm()
        self.has_begun = True
        self.removed.update(remove_files(session.storage, pending.files))
        commands = append_command_blocks(
            session.storage, pending.instant, pending.target, pending.appends
        )
        failed = measure_logs(session.storage, pending.appends)
        return Completion(
            timeline=timeline,
            prepare_sync=partial(_prepare_sync, pending, {**failed, **commands}),
            check=partial(
                revert_clustering if pending.keeps_request else remove_failed_write,
                session,
                pending.target,
                pending.target_action,
            ),
            make_payload=lambda _properties: self._encode(pending, commands, failed),
            make_outcome=lambda notes: self._make_outcome(pending, "completed", notes),
        )

    def _encode(
        self, pending: RollbackWork, commands: Mapping[File, int], failed: Mapping[File, int]
    ) -> bytes:
        files = {path for path, _name in (*pending.files, *commands, *failed)}
        metadata = RollbackMetadata(
            started=pending.instant,
            duration_ms=max(0, self.session.clock.now_ms() - pending.started_ms),
            target=pending.target,
            action=pending.target_action.value,
            partitions={
                path: RolledBackPartition(
                    deleted=tuple(name for folder, name in pending.files if folder == path),
                    command_logs=group_sizes(commands).get(path, {}),
                    failed_logs=group_sizes(failed).get(path, {}),
                )
                for path in files
            },
        )
        return metadata.encode(self.session.storage.location)

    def _make_outcome(
        self, pending: RollbackWork, how: str, notes: tuple[Note, ...] = ()
    ) -> StepOutcome:
        return StepOutcome(
            kind="rollback",
            how="adopted" if how == "adopted" else "completed",
            instant=pending.instant,
            removed=len(self.removed),
            bytes=sum(pending.sizes.get(file, 0) for file in self.removed),
            gone=len(set(pending.files) - self.removed),
            warnings=notes,
        )

    def tidy(
        self,
        pending: RollbackWork,
        result: None,  # noqa: ARG002
        outcome: StepOutcome,
    ) -> StepOutcome:
        """Remove the rollback's own markers, which lead a later run to its log files."""
        if pending.appends and outcome.how == "completed":
            remove_markers(self.session.storage, pending.instant)
        return outcome

    def is_undone_after(self, error: BaseException) -> bool:  # noqa: ARG002
        """A rollback is only undone before anything of the write is gone."""
        return not self.has_begun

    def abandon(self, pending: RollbackWork) -> None:
        if not pending.is_resumed:
            self.session.publisher.withdraw(pending.instant, Action.ROLLBACK)


def _prepare_sync(
    pending: RollbackWork, logs: Mapping[File, int], request: SyncRequest
) -> MetadataSync | None:
    return prepare_rollback_sync(request, pending.target, group_sizes(logs))


def group_sizes(files: Mapping[File, int]) -> dict[str, dict[str, int]]:
    """Return sizes by partition and name."""
    grouped: dict[str, dict[str, int]] = {}
    for (path, name), size in sorted(files.items()):
        grouped.setdefault(path, {})[name] = size
    return grouped
