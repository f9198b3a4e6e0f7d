"""Run a reviewed deletion of partitions: replace their file groups by nothing.

As Hudi's DeletePartitionCommitActionExecutor: a replacecommit without new files. The files go with
a later clean, and are read as of earlier instants until then.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from reconciler.errors import AlreadyExistsError, BusyError, UnsupportedError
from reconciler.executor.expiry.selection import (
    PartitionSelection,
    find_written_partitions,
    select_partitions,
)
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.gate import RefusedError
from reconciler.executor.outcomes import DeletionOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplyChange, ApplySession
from reconciler.hudi.metadata.sync_decisions import decide_write_sync
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.write_commit import WriteCommit, encode_replace_request
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.rewrite.replaced_keys import read_log_keys
from reconciler.state.schema import read_declared_schema
from reconciler.transaction.conflicts import Footprint
from reconciler.transaction.footprints import (
    CompletedWrites,
    collect_completed_writes,
    find_unexcluded_write,
    read_footprints,
)
from reconciler.transaction.metadata.write_sync import WriteChanges, prepare_write_sync
from reconciler.transaction.recovery.own_writes import is_still_pending, take_back_write
from reconciler.transaction.recovery.pending_instants import withdraw_instant
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, Completion, Ended, run_change

#: Hudi's name of the operation
OPERATION: Final = "DELETE_PARTITION"
_ACTION: Final = Action.REPLACECOMMIT
_KIND: Final = "deletePartition"
_SCHEMA: Final = "schema"
_UNDOING: Final = ("rollback", "restore")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Decision:
    """The partitions to delete, and the table that they were chosen from.

    ``schema``: the table's Avro schema, which every commit carries; None if none declares it.
    """

    fresh: FreshPlan
    chosen: PartitionSelection
    schema: str | None

    @property
    def known(self) -> CompletedWrites:
        """The writes that had completed when the partitions were chosen."""
        return collect_completed_writes(self.fresh.state.timeline)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RequestedDeletion:
    """A deletion that is requested."""

    instant: str
    decision: _Decision
    action: Action = _ACTION


def run_delete_partitions(
    session: ApplySession, step: DeletePartitionStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Delete the reviewed partitions that are still past retention and unwritten; report the rest.

    ``fresh`` is a plan that was made just now, if there is one. Raises RefusedError, BusyError and
    UnsupportedError before anything is written; what goes wrong later is undone before it is
    raised.
    """
    return run_change(_PartitionDeletion(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _PartitionDeletion(
    ApplyChange, Change[_Decision, _RequestedDeletion, _Decision, StepOutcome]
):
    """A reviewed deletion of partitions."""

    activity = "a deletion of partitions was being prepared"
    refusable = _KIND

    session: ApplySession
    step: DeletePartitionStep
    fresh: FreshPlan | None = None

    def prepare(self) -> _Decision | Ended[StepOutcome]:
        session, fresh = self.session, self.take_fresh_plan()
        _check_no_foreign_write(session, fresh.state.timeline, None)
        chosen = select_partitions(self.step, fresh)
        if not chosen.partitions:
            return _report_nothing(chosen)
        properties = session.reload_properties()
        _check_metadata(properties)
        declared = read_declared_schema(session.storage, properties, fresh.state)
        schema = None if declared is None else declared.text
        return _Decision(fresh=fresh, chosen=chosen, schema=schema)

    def request(
        self, prepared: _Decision, should_wait: ShouldWait
    ) -> _RequestedDeletion | Ended[StepOutcome] | None:
        """Announce the deletion of the partitions that no other write touches."""
        session, known = self.session, prepared.known
        timeline, writes = read_footprints(session, known, None)
        if known - collect_completed_writes(timeline):
            return None  # a write was undone or archived since
        _check_no_foreign_write(session, timeline, None)
        chosen = prepared.chosen
        if should_wait(chosen.claims, writes):
            return None
        chosen = _drop_written(session, chosen, writes)
        if not chosen.partitions:
            return _report_nothing(chosen)
        session.lock.confirm()
        data = encode_replace_request(OPERATION, session.make_extra())
        try:
            instant = session.request_write(_ACTION, timeline, data)
        except AlreadyExistsError:
            return None
        return _RequestedDeletion(instant=instant, decision=replace(prepared, chosen=chosen))

    def drop_request(self, pending: _RequestedDeletion | None) -> None:
        if pending is not None:
            self.session.run_locked(partial(self.abandon, pending))
            self.session.make_heartbeat(pending.instant).remove()

    def work(self, pending: _RequestedDeletion) -> _Decision:
        """Write the inflight file: there is nothing to write but the commit."""
        self.session.publisher.begin(pending.instant, _ACTION, b"")
        return pending.decision

    def settle(
        self, pending: _RequestedDeletion, result: _Decision, should_wait: ShouldWait
    ) -> Completion[StepOutcome] | Ended[StepOutcome] | None:
        session, instant = self.session, pending.instant
        timeline, writes = read_footprints(session, result.known, instant)
        check = partial(_check_still_pending, session, instant, result.known)
        check()
        _check_no_foreign_write(session, timeline, instant)
        if should_wait(result.chosen.claims, writes):
            return None
        chosen = _drop_written(session, result.chosen, writes)
        if not chosen.partitions:
            withdraw_instant(session, instant, _ACTION)
            return _report_nothing(chosen)
        changes = _describe_changes(session, result, chosen)
        return Completion(
            timeline=session.reload_timeline(),
            prepare_sync=partial(prepare_write_sync, changes=changes),
            check=check,
            make_payload=partial(_encode_commit, session, chosen, result.schema),
            make_outcome=partial(_make_outcome, instant, chosen),
        )

    def abandon(self, pending: _RequestedDeletion) -> None:
        take_back_write(self.session, pending.instant, _ACTION)


def _check_metadata(properties: TableProperties) -> None:
    """Raise RefusedError for an index of the metadata table that cannot be kept right."""
    if not properties.metadata_partitions:
        return
    try:
        decide_write_sync(
            properties.metadata_partitions,
            table_version=properties.table_version,
            inflight=properties.metadata_partitions_inflight,
        )
    except UnsupportedError as error:
        raise RefusedError((Note("metadata", str(error), step=_KIND),)) from None


def _check_no_foreign_write(session: ApplySession, timeline: Timeline, own: str | None) -> None:
    """Raise RefusedError for another pending write that no lock keeps out."""
    other = find_unexcluded_write(session, timeline, own)
    if other is not None:
        text = (
            f"{other.action} {other.requested} is pending, and without a lock it could write to "
            "a partition while that is deleted; configure concurrency.lock or wait"
        )
        raise RefusedError((Note("lock", text, step=_KIND),))


def _check_still_pending(session: ApplySession, instant: str, known: CompletedWrites) -> None:
    """Raise BusyError if another writer has rolled the deletion back, or has begun to."""
    if not is_still_pending(session, instant, _ACTION, known):
        raise BusyError(
            f"another writer has rolled back our deletion of partitions {instant}; nothing was "
            "deleted, plan again"
        )


def _drop_written(
    session: ApplySession, chosen: PartitionSelection, writes: list[Footprint]
) -> PartitionSelection:
    """Return the partitions that no other write touches.

    Raises BusyError while a rollback is pending: it may bring back what the plan did not see.
    """
    undoing = next((w for w in writes if w.action in _UNDOING and not w.is_completed), None)
    if undoing is not None:
        raise BusyError(f"{session.name}: {undoing} is pending; apply again when it is done")
    return chosen.drop(find_written_partitions(chosen.paths, writes))


def _describe_changes(
    session: ApplySession, decision: _Decision, chosen: PartitionSelection
) -> WriteChanges:
    """Return what the metadata table has to know: the file groups that are replaced."""
    groups, replaced = chosen.groups, chosen.replaced.tolist()
    return WriteChanges(
        added={},
        replaced=[
            (groups.get_base_path(group), int(groups.base[group]))
            for group in replaced
            if groups.base[group] >= 0
        ],
        replaced_groups=[(groups.get_partition(g), groups.get_file_id(g)) for g in replaced],
        read_log_keys=partial(read_log_keys, session.storage, decision.fresh.state, chosen.paths),
        rewritten_partitions=chosen.paths,
    )


def _encode_commit(
    session: ApplySession,
    chosen: PartitionSelection,
    schema: str | None,
    properties: TableProperties,
) -> bytes:
    commit = WriteCommit(
        stats_by_partition={},
        operation=OPERATION,
        replaced=chosen.groups.list_file_ids(chosen.replaced),
        extra={**session.make_extra(), **({} if schema is None else {_SCHEMA: schema})},
    )
    return commit.encode(version=properties.table_version)


def _report_nothing(chosen: PartitionSelection) -> Ended[StepOutcome]:
    deletion = DeletionOutcome(gone=chosen.gone, left=chosen.left)
    return Ended(StepOutcome(kind=_KIND, how="nothing", deletion=deletion))


def _make_outcome(instant: str, chosen: PartitionSelection, notes: tuple[Note, ...]) -> StepOutcome:
    rows = [partition.rows for partition in chosen.partitions]
    known = [count for count in rows if count is not None]
    return StepOutcome(
        kind=_KIND,
        how="completed",
        instant=instant,
        deletion=DeletionOutcome(
            partitions=tuple(partition.path for partition in chosen.partitions),
            groups=len(chosen.replaced),
            files=sum(partition.files for partition in chosen.partitions),
            bytes=sum(partition.bytes for partition in chosen.partitions),
            rows=sum(known) if len(known) == len(rows) else None,
            gone=chosen.gone,
            left=chosen.left,
        ),
        warnings=notes,
    )
