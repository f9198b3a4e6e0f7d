"""Write rows into a table, from the request of the write to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.errors import (
    AlreadyExistsError,
    NotFoundError,
    ReconcilerError,
    RowsError,
    UsageError,
)
from reconciler.hudi.load import PROPERTIES
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.write_commit import WorkloadProfile, encode_replace_request
from reconciler.layout.sizing.assign import Workload
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.storage.api import StorageRef
from reconciler.transaction.footprints import collect_completed_writes, read_footprints
from reconciler.transaction.process import make_ownership_metadata
from reconciler.transaction.recovery.dead_writes import undo_dead_writes
from reconciler.transaction.recovery.own_writes import take_back_write
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Change, Completion, Ended, run_change
from reconciler.transaction.session import RunContext, TableSession
from reconciler.transaction.upgrades import check_same_timeline
from reconciler.writer.conflicts import (
    check_files_remain,
    check_mode,
    check_no_unlocked_write,
    check_stream_batches,
)
from reconciler.writer.facts import WriteFacts, read_write_facts
from reconciler.writer.job import RowCounts, RowWriter, WriteAssignment, WrittenFiles
from reconciler.writer.partition_paths import check_not_nested
from reconciler.writer.publishing import remove_leftovers, settle_write
from reconciler.writer.request import WriteMode, WriteRequest, WriteResult, get_plain_action
from reconciler.writer.stream_batches import has_batch, make_batch_extra
from reconciler.writer.table_opening import open_for_writing
from reconciler.writer.unpublished_write import UnpublishedWrite

_NOTHING: Final = RowCounts(
    incoming=0, dropped=0, absent_deletes=0, inserts=0, updates=0, deletes=0
)


def write_table(
    spec: TableSpec,
    request: WriteRequest,
    *,
    context: RunContext,
    token: str,
    writer: Callable[[StorageRef], RowWriter] | None,
) -> WriteResult:
    """Write as requested, completely or not at all.

    ``writer``: None for a write without rows. ``token``: a text that no other run has. A batch of a
    stream that the table has is not written again. Raises as ``open_for_writing`` and
    ``run_write``.
    """
    _check_extra(request.extra)
    storage = context.open_storage(spec.path, spec.storage_options)
    if request.batch is not None and has_batch(storage, *request.batch):
        return WriteResult(status="nothing")
    session, announced = open_for_writing(spec, storage, context, token, request)
    undo_dead_writes(session)
    owner = make_ownership_metadata(compute_spec_digest(spec.document), session.owner)
    batch = {} if request.batch is None else make_batch_extra(*request.batch)
    return run_write(
        session,
        spec,
        replace(request, extra={**request.extra, **batch, **owner}),
        None if writer is None else writer(storage.ref),
        announced=announced,
    )


def _check_extra(extra: Mapping[str, str]) -> None:
    """Raise UsageError for metadata keys that are reserved."""
    reserved = sorted(key for key in extra if key == "schema" or key.startswith("reconciler."))
    if reserved:
        raise UsageError(f"extra metadata {', '.join(reserved)}: these keys are reserved")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RequestedWrite:
    """A write that is requested, and the state of the table that it was prepared from."""

    instant: str
    action: Action
    facts: WriteFacts


def run_write(
    session: TableSession,
    spec: TableSpec,
    request: WriteRequest,
    writer: RowWriter | None,
    *,
    announced: str | None = None,
) -> WriteResult:
    """Write rows into the table.

    ``writer``: None for a write without rows; one that only deletes partitions has none to write.
    ``announced``: the instant that a table was just made with. A write that fails is undone before
    its error is raised: BusyError if another writer has written to the same file groups, what
    ``read_write_facts`` and the ``writer`` raise, StorageError.
    """
    change = _RowWrite(session, spec, request, writer, announced)
    with session.heartbeats.run():
        return run_change(change)


@dataclass(eq=False)
class _RowWrite(Change[WriteFacts, _RequestedWrite, UnpublishedWrite, WriteResult]):
    """A write of rows; arguments as of ``run_write``."""

    activity = "a write was being prepared"

    session: TableSession
    spec: TableSpec
    rows: WriteRequest
    writer: RowWriter | None
    announced: str | None

    def prepare(self) -> WriteFacts:
        session = self.session
        state = observe(session.storage, None, observed_ms=session.clock.now_ms())
        observed = TableProperties.from_raw(state.properties, PROPERTIES)
        check_same_timeline(session.name, session.properties, observed)
        facts = read_write_facts(session.storage, session.properties, self.spec, state, self.rows)
        # batches that complete from now on are looked for at the end
        check_stream_batches(session, self.rows.extra)
        return facts

    def request(self, prepared: WriteFacts, should_wait: ShouldWait) -> _RequestedWrite | None:  # noqa: ARG002
        instant = self._create_requested(prepared)
        if instant is None:
            return None
        return _RequestedWrite(instant=instant, action=self.action, facts=prepared)

    @property
    def action(self) -> Action:
        """The action of the write's instant."""
        return self.rows.mode.get_action(self.session.properties.table_type)

    def _create_requested(self, facts: WriteFacts) -> str | None:
        """Write the requested file; None if a write has completed since the table was observed."""
        session, mode, announced = self.session, self.rows.mode, self.announced
        known = collect_completed_writes(facts.state.timeline)
        timeline, footprints = read_footprints(session, known, announced)
        if any(footprint.is_completed for footprint in footprints):
            return None
        follows = facts.index_buckets is not None or mode.operation.needs_lookup
        has_groups = bool(facts.groups.is_live.any()) and (follows or mode.replaces)
        check_mode(footprints, follows_groups=has_groups)
        check_no_unlocked_write(session, timeline, announced)
        first = get_plain_action(session.properties.table_type)
        if announced is not None and self.action is first:
            return announced
        session.lock.confirm()
        if announced is not None:  # a commit announced the new table, and this is another action
            session.publisher.withdraw(announced, first)
            session.make_heartbeat(announced).remove()
        plan = encode_replace_request() if mode.replaces else b""
        try:
            return session.request_write(self.action, timeline, plan)
        except AlreadyExistsError:
            return None

    def drop_request(self, pending: _RequestedWrite | None) -> None:
        instant = pending.instant if pending is not None else self.announced
        first = get_plain_action(self.session.properties.table_type)
        action = pending.action if pending is not None else first
        if instant is None:
            return
        with contextlib.suppress(ReconcilerError):
            self.session.run_locked(partial(take_back_write, self.session, instant, action))
            self.session.make_heartbeat(instant).remove()

    def work(self, pending: _RequestedWrite) -> UnpublishedWrite:
        facts, mode = pending.facts, self.rows.mode
        written: WrittenFiles | None = None
        if self.writer is None or mode is WriteMode.DELETE_PARTITION:
            self.session.publisher.begin(pending.instant, pending.action, b"")
        else:
            written = self._write_rows(self.writer, pending)
            if mode is WriteMode.INSERT_OVERWRITE_TABLE and not written.partitions:
                raise RowsError(
                    f"{self.session.name}: there are no rows, and insert-overwrite-table would "
                    "empty the table; if that is meant, delete its partitions (delete-partition)"
                )
        return UnpublishedWrite(
            mode=mode,
            instant=pending.instant,
            action=pending.action,
            facts=facts,
            files=() if written is None else written.files,
            logs=() if written is None else written.logs,
            counts=_NOTHING if written is None else written.counts,
            replaced=_find_replaced_groups(self.rows, facts, written),
            extra=self.rows.extra,
            lookup=None if written is None else written.lookup,
        )

    def _write_rows(self, writer: RowWriter, pending: _RequestedWrite) -> WrittenFiles:
        """Write the rows; raises as the writer, BusyError for files that were cleaned meanwhile."""
        job = pending.facts.make_job(self.rows, pending.instant, self.session.owner.token)
        try:
            return writer.write(self.rows.rows, job, assigned=partial(self._begin, pending))
        except ReconcilerError as error:
            # of an error in a worker, Spark only passes on the text
            if isinstance(error, NotFoundError) or type(error) is ReconcilerError:
                check_files_remain(self.session, pending.facts, pending.instant)
            raise

    def _begin(self, pending: _RequestedWrite, assigned: WriteAssignment) -> None:
        """Write the inflight file, once rows are assigned to files."""
        state, assignment = pending.facts.state, assigned.assignment
        paths = {assignment.partitions[code] for code in np.unique(assignment.partition).tolist()}
        check_not_nested(paths, state.metafile_partitions.union(state.partitions))
        profile = self._encode_profile(pending.facts.groups, assigned.workload)
        self.session.publisher.begin(pending.instant, pending.action, profile)

    def _encode_profile(self, groups: FileGroupSizes, workload: Workload) -> bytes:
        """Return what the inflight file announces; nothing for a write that replaces."""
        mode = self.rows.mode
        if mode.replaces:
            return b""
        inserts = dict(zip(workload.partitions, workload.inserts.tolist(), strict=True))
        updates: dict[str, dict[str, tuple[str, int]]] = {}
        for group, rows in zip(workload.group.tolist(), workload.updates.tolist(), strict=True):
            slice_start = groups.instants[groups.slice_start[group]]
            by_file_id = updates.setdefault(groups.get_partition(group), {})
            by_file_id[groups.get_file_id(group)] = (slice_start, rows)
        profile = WorkloadProfile(operation=mode.hudi_name, inserts=inserts, updates=updates)
        return profile.encode(version=self.session.properties.table_version)

    def settle(
        self,
        pending: _RequestedWrite,
        result: UnpublishedWrite,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Completion[WriteResult] | Ended[WriteResult]:
        if result.files or result.logs or len(result.replaced):
            return settle_write(self.session, result)
        self.abandon(pending)
        notes = _note_absent_partitions(result)
        counts, lookup = result.counts, result.lookup
        return Ended(WriteResult(status="nothing", counts=counts, warnings=notes, lookup=lookup))

    def tidy(
        self,
        pending: _RequestedWrite,  # noqa: ARG002
        result: UnpublishedWrite | None,
        outcome: WriteResult,
    ) -> WriteResult:
        assert result is not None, "no write ends at its work"
        return remove_leftovers(self.session, result, outcome)

    def abandon(self, pending: _RequestedWrite) -> None:
        take_back_write(self.session, pending.instant, pending.action)


def _note_absent_partitions(done: UnpublishedWrite) -> tuple[Note, ...]:
    """Note that the partitions to delete are not there."""
    if done.mode is not WriteMode.DELETE_PARTITION:
        return ()
    paths = ", ".join(done.facts.state.partitions[:5]) or "none"
    return (Note("partitions", f"the table has no such partition with files; it has {paths}"),)


def _find_replaced_groups(
    request: WriteRequest, facts: WriteFacts, written: WrittenFiles | None
) -> Integers:
    """Return the file groups that the write replaces."""
    groups = facts.groups
    live = np.flatnonzero(groups.is_live)
    match request.mode:
        case WriteMode.INSERT_OVERWRITE_TABLE:
            return live
        case WriteMode.INSERT_OVERWRITE if written is not None:
            paths = written.partitions
        case WriteMode.DELETE_PARTITION:
            paths = set(request.partitions or ())
        case _:
            return np.zeros(0, np.int64)
    codes = [code for code, path in enumerate(groups.partitions) if path in paths]
    replaced: Integers = live[np.isin(groups.partition[live], codes)]
    return replaced
