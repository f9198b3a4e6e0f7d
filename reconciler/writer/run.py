"""One write from its announcement to its end: requested, inflight, files, completed, or undone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.errors import (
    AlreadyExistsError,
    BusyError,
    ReconcilerError,
    RowsError,
    StorageError,
)
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.timeline.instant import WRITES, Action, State
from reconciler.hudi.timeline.write_commit import WorkloadProfile
from reconciler.plans.model import Note
from reconciler.spec.model import TableSpec
from reconciler.state.observe import observe
from reconciler.transaction.footprints import (
    collect_completed_writes,
    find_foreign_writes,
    is_being_rolled_back,
    read_footprints,
)
from reconciler.transaction.locks.file_lock import NoLock
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.marked_files import remove_marked_files, remove_markers
from reconciler.transaction.recovery.pending_instants import (
    remove_withdrawn_attempt,
    withdraw_instant,
)
from reconciler.transaction.session import TableSession
from reconciler.writer.conflicts import check_mode, check_stream_batches
from reconciler.writer.facts import WriteFacts, read_write_facts
from reconciler.writer.job import RowCounts, RowWriter, WriteAssignment, WrittenFiles
from reconciler.writer.partition_paths import check_not_nested
from reconciler.writer.publishing import publish_write, remove_leftovers
from reconciler.writer.request import WriteMode, WriteRequest, WriteResult
from reconciler.writer.unpublished import UnpublishedWrite

#: how often a timeline may change under our eyes before we let its writers be
_ATTEMPTS: Final = 8
#: what Hudi requests when it is going to replace something without a plan
_NO_PLAN: Final = {"operationType": None, "clusteringPlan": None, "extraMetadata": None}
_NOTHING: Final = RowCounts(
    incoming=0, dropped=0, absent_deletes=0, inserts=0, updates=0, deletes=0
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _AnnouncedWrite:
    """A write that is announced, and the table that it follows from."""

    instant: str
    facts: WriteFacts


def run_write(
    session: TableSession,
    spec: TableSpec,
    request: WriteRequest,
    writer: RowWriter | None,
    *,
    extra: Mapping[str, str],
    announced: str | None = None,
) -> WriteResult:
    """Write rows into the table; ``extra`` is kept with the instant.

    ``writer``: None for a write without rows; one that only deletes partitions has none to write.
    ``announced``: the instant that a table was just made with. What goes wrong is undone before it
    is raised: BusyError where another writer has a hand in the same file groups, what ``read_write_facts``
    and the ``writer`` raise, StorageError.
    """
    with session.heartbeats.run():
        begun = _announce_write(session, spec, request, announced, extra)
        with _keep_heartbeat(session, begun.instant):
            try:
                done = _write_files(session, request, begun, writer, extra)
                outcome = _complete(session, done)
            except (Exception, KeyboardInterrupt):
                with contextlib.suppress(ReconcilerError):  # else the next run undoes it
                    abandon_write(session, begun.instant, request.mode.action)
                raise
            return remove_leftovers(session, done, outcome)


def _complete(session: TableSession, done: UnpublishedWrite) -> WriteResult:
    """The end of a write whose files are there.

    Once it is completed it is: who cannot give the lock back says so, and nobody writes it again.
    """
    outcome = None
    try:
        with session.hold_lock():
            if done.files or len(done.replaced):
                outcome = publish_write(session, done)
            else:
                _undo_write(session, done.instant, done.mode.action)
                outcome = WriteResult(
                    status="nothing", counts=done.counts, warnings=_note_absent_partitions(done)
                )
    except StorageError as error:
        if outcome is None:
            raise
        return replace(outcome, warnings=(*outcome.warnings, Note("lock", f"it stays: {error}")))
    return outcome


def _note_absent_partitions(done: UnpublishedWrite) -> tuple[Note, ...]:
    """What is said of a deletion of partitions that are not there."""
    if done.mode is not WriteMode.DELETE_PARTITION:
        return ()
    paths = ", ".join(done.facts.state.partitions[:5]) or "none"
    return (Note("partitions", f"the table has no such partition with files; it has {paths}"),)


def _announce_write(
    session: TableSession,
    spec: TableSpec,
    request: WriteRequest,
    announced: str | None,
    extra: Mapping[str, str],
) -> _AnnouncedWrite:
    """Look at the table and announce the write, as long as nothing else has moved meanwhile."""
    for _attempt in range(_ATTEMPTS):
        state = observe(session.storage, None, observed_ms=session.clock.now_ms())
        try:
            facts = read_write_facts(session.storage, session.properties, spec, state, request)
            check_stream_batches(
                session, extra
            )  # what is completed from now on is asked of at the end
        except ReconcilerError:
            if announced is not None:
                with contextlib.suppress(ReconcilerError):
                    abandon_write(session, announced, Action.COMMIT)
                    session.make_heartbeat(announced).remove()
            raise
        instant = None
        try:
            with session.hold_lock():
                instant = _create_requested(session, request.mode, facts, announced)
        except ReconcilerError:
            action = Action.COMMIT if instant is None else request.mode.action
            if (doomed := instant or announced) is not None:  # or the lock could not be given back
                with contextlib.suppress(ReconcilerError):
                    abandon_write(session, doomed, action)
                    session.make_heartbeat(doomed).remove()
            raise
        if instant is not None:
            return _AnnouncedWrite(instant=instant, facts=facts)
    raise BusyError(
        f"{session.name}: its timeline changed {_ATTEMPTS} times while a write was being prepared; "
        "run it again when its writers are quieter"
    )


def _create_requested(
    session: TableSession, mode: WriteMode, facts: WriteFacts, announced: str | None
) -> str | None:
    """The requested file; None where a write was completed since the table was looked at."""
    timeline, found = read_footprints(
        session, collect_completed_writes(facts.state.timeline), announced
    )
    if any(one.is_completed for one in found):
        return None
    check_mode(mode, found, has_groups=bool(facts.table_groups.groups.is_live.any()))
    pending = find_foreign_writes(timeline, announced)
    if isinstance(session.lock, NoLock) and pending:
        raise BusyError(
            f"{pending[0].action} {pending[0].requested} is pending, and there is no lock: it and "
            "this write could lose each other's rows; configure concurrency.lock or wait"
        )
    if announced is not None and mode.action is Action.COMMIT:
        return announced
    session.lock.confirm()
    if announced is not None:  # a new table was announced by a commit, and this is another action
        session.publisher.withdraw(announced, Action.COMMIT)
        session.make_heartbeat(announced).remove()
    plan = b""
    if mode.replaces:
        plan = encode_container("HoodieRequestedReplaceMetadata.avsc", {**_NO_PLAN, "version": 1})
    try:
        return session.request_write(mode.action, timeline, plan)
    except AlreadyExistsError:
        return None


@contextlib.contextmanager
def _keep_heartbeat(session: TableSession, instant: str) -> Iterator[None]:
    """Beat while a write runs; say so when it ends before it is completed."""
    heartbeat = session.make_heartbeat(instant)
    try:
        with session.heartbeats.repeat(heartbeat.beat):
            yield
    except BaseException:
        with contextlib.suppress(ReconcilerError):
            if any(one.requested == instant for one in session.reload_timeline().pending(WRITES)):
                heartbeat.end()
            else:
                heartbeat.remove()
        raise
    with contextlib.suppress(ReconcilerError):
        heartbeat.remove()


def _write_files(
    session: TableSession,
    request: WriteRequest,
    begun: _AnnouncedWrite,
    writer: RowWriter | None,
    extra: Mapping[str, str],
) -> UnpublishedWrite:
    facts, instant = begun.facts, begun.instant

    def assigned(found: WriteAssignment) -> None:
        state, to = facts.state, found.assignment
        paths = {to.partitions[code] for code in np.unique(to.partition).tolist()}
        check_not_nested(paths, state.metafile_partitions.union(state.partitions))
        session.publisher.begin(
            instant, request.mode.action, _encode_profile(session, request.mode, facts, found)
        )

    if writer is None or request.mode is WriteMode.DELETE_PARTITION:
        session.publisher.begin(instant, request.mode.action, b"")
        done = None
    else:
        work = facts.make_job(request, instant, session.owner.token)
        done = writer.write(request.rows, work, assigned=assigned)
        if request.mode is WriteMode.INSERT_OVERWRITE_TABLE and not done.files:
            raise RowsError(
                f"{session.name}: there are no rows, and insert-overwrite-table would empty the "
                "table; if that is meant, delete its partitions (delete-partition)"
            )
    return UnpublishedWrite(
        mode=request.mode,
        instant=instant,
        facts=facts,
        known_writes=collect_completed_writes(facts.state.timeline),
        files=() if done is None else done.files,
        counts=_NOTHING if done is None else done.counts,
        replaced=_find_replaced_groups(request, facts, done),
        extra=extra,
    )


def _find_replaced_groups(
    request: WriteRequest, facts: WriteFacts, done: WrittenFiles | None
) -> NDArray[np.int64]:
    """The file groups that are gone with the write."""
    groups = facts.table_groups.groups
    live = np.flatnonzero(groups.is_live)
    match request.mode:
        case WriteMode.INSERT_OVERWRITE_TABLE:
            return live
        case WriteMode.INSERT_OVERWRITE if done is not None:
            paths = {file.partition for file in done.files}
        case WriteMode.DELETE_PARTITION:
            paths = set(request.partitions or ())
        case _:
            return np.zeros(0, np.int64)
    codes = [code for code, path in enumerate(groups.partitions) if path in paths]
    found: NDArray[np.int64] = live[np.isin(groups.partition[live], codes)]
    return found


def _encode_profile(
    session: TableSession, mode: WriteMode, facts: WriteFacts, found: WriteAssignment
) -> bytes:
    """What the write is going to do; nothing for one that replaces, whose plan says it."""
    if mode.replaces:
        return b""
    groups, workload = facts.table_groups.groups, found.workload
    inserts = dict(zip(workload.partitions, workload.inserts.tolist(), strict=True))
    updates: dict[str, dict[str, tuple[str, int]]] = {}
    for group, rows in zip(workload.group.tolist(), workload.updates.tolist(), strict=True):
        path = groups.partitions[groups.partition[group]]
        begun = groups.instants[groups.slice_start[group]]
        updates.setdefault(path, {})[groups.file_id[group].as_py()] = (begun, rows)
    profile = WorkloadProfile(operation=mode.hudi_name, inserts=inserts, updates=updates)
    return profile.encode(version=session.properties.table_version)


def abandon_write(session: TableSession, instant: str, action: Action) -> None:
    """Undo a write that failed; where another has undone it already, what came later goes too.

    Takes the lock.
    """
    with session.hold_lock():
        _undo_write(session, instant, action)


def _undo_write(session: TableSession, instant: str, action: Action) -> None:
    """As ``abandon_write``, under the lock. What a rollback that is pending may count on stays to it."""
    timeline = session.reload_timeline()
    if find_completion(timeline, instant, action) is not None:
        return
    session.lock.confirm()
    if is_being_rolled_back(session, timeline, instant):
        remove_marked_files(session.storage, instant)
        remove_markers(session.storage, instant)
    elif timeline.find_file(instant, action, State.REQUESTED) is not None:
        withdraw_instant(session, instant, action)
    else:  # nobody else looks for what was told to the metadata table since
        remove_withdrawn_attempt(session.storage, instant)
