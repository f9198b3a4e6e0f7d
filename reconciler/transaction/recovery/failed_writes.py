"""Undo failed writes of other writers on storage, as a published rollback plan says.

Everything here happens under the table's lock and may be repeated. Source: MarkerBasedRollback-
Strategy, BaseRollbackHelper (0.15), RollbackHelperV1 (1.x).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Final

from reconciler.errors import AlreadyExistsError, BusyError, NotFoundError
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block, read_blocks
from reconciler.hudi.files.names import BaseName, LogName, make_file_path
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State
from reconciler.hudi.timeline.markers import APPEND, marker_path
from reconciler.hudi.timeline.rollback import RollbackPlan, RollbackRequest
from reconciler.plans.model import LogAppend
from reconciler.spec.model import Concurrency
from reconciler.state.failed_writes import FailedWritesReader
from reconciler.state.marker_folder import read_markers
from reconciler.storage.api import Storage, StorageEntry
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.paths import resolve_path
from reconciler.transaction.process import Process, read_store_clock_ms
from reconciler.transaction.recovery.marked_files import remove_markers
from reconciler.transaction.recovery.takeover import read_last_heartbeat
from reconciler.transaction.session import TableSession

#: the write token of log files with command blocks (HoodieLogFormat.UNKNOWN_WRITE_TOKEN)
_WRITE_ID: Final = "1-0-1"
#: HoodieCommandBlock.ROLLBACK_BLOCK
_ROLLBACK_BLOCK: Final = "0"

#: partition and name
File = tuple[str, str]


def find_pending_write(timeline: Timeline, time: str) -> Instant | None:
    """Return the pending write of rows, or clustering, of a time, if there is one."""
    pending = timeline.pending(COMMITS | {Action.CLUSTERING})
    return next((i for i in pending if i.requested == time), None)


def check_failed(
    session: TableSession,
    timeline: Timeline,
    pending: Instant,
    limits: Concurrency,
    process: Process | None = None,
) -> None:
    """Raise BusyError unless a pending write is of another writer, which is dead by both clocks.

    ``process``: this one, where a rollback of another writer is finished. Then the write may be
    reconciler's own, of a dead run.
    """
    what = f"{session.name}: {pending.action} {pending.requested}"
    reader = FailedWritesReader(session.storage, session.properties, timeline)
    found = reader.read_writes([pending])
    if not found:
        beat = read_last_heartbeat(session.storage, pending.requested)
        if process is not None and beat is not None:
            if beat.is_owner_dead(session.storage, process, session.clock.now_ms()):
                return
            raise BusyError(f"{what} is the work of {beat.owner}, which still runs")
        raise BusyError(f"{what} is a write of reconciler by now; plan again")
    (write,) = found
    if write.is_dead(session.clock.now_ms(), limits) and write.is_dead(
        read_store_clock_ms(session.storage), limits
    ):
        return
    sign = "changes the table" if write.beat_ms is None else "has a heartbeat"
    raise BusyError(f"{what} is not dead: its writer {sign}; run apply again when it is done")


def check_abandoned(
    session: TableSession, timeline: Timeline, pending: Instant, limits: Concurrency
) -> None:
    """Raise BusyError unless nobody works on a pending table service of another writer.

    A dead run of reconciler may have begun to finish it. That run writes no inflight file, so such
    a file is of a writer that came later.
    """
    what = f"{session.name}: {pending.action} {pending.requested}"
    beat = read_last_heartbeat(session.storage, pending.requested)
    if beat is not None:
        if not beat.is_owner_dead(
            session.storage, session.run_context.process, session.clock.now_ms()
        ):
            raise BusyError(f"{what} is the work of {beat.owner}, which still runs")
        if pending.state is State.REQUESTED:
            return
    reader = FailedWritesReader(session.storage, session.properties, timeline)
    (found,) = reader.read_services([pending], lambda _owner: False)
    if found.is_dead(session.clock.now_ms(), limits) and found.is_dead(
        read_store_clock_ms(session.storage), limits
    ):
        return
    raise BusyError(
        f"{what} is not left behind: its writer changes the table; run apply again when it is done"
    )


def is_named_by(name: str, instant: str) -> bool:
    """Return True if a data file is named by an instant: a rollback deletes nothing else."""
    parsed = BaseName.parse(name) or LogName.parse(name)
    return parsed is not None and parsed.instant == instant


def find_unnamed_files(
    storage: Storage, instant: str, files: Collection[File], appends: Iterable[LogAppend]
) -> list[File]:
    """Return the existing files that an instant's markers announce and that are not named, sorted.

    Lists the partitions of such markers. Raises StorageError.
    """
    shared = {(one.partition, one.file_id, one.base_instant) for one in appends}
    list_names = cache(partial(_list_names, storage))
    unnamed = []
    for partition, name, kind in read_markers(storage, instant).markers:
        if (partition, name) in files or not _is_written(partition, name, instant, kind, shared):
            continue
        if name in list_names(partition):
            unnamed.append((partition, name))
    return sorted(unnamed)


def _is_written(
    partition: str, name: str, instant: str, kind: str, shared: Collection[tuple[str, str, str]]
) -> bool:
    """Return whether a marker's file holds rows of its write outside of the ``shared`` slices."""
    if is_named_by(name, instant):
        return True
    log = LogName.parse(name)
    if kind != APPEND or log is None:
        return False
    return (partition, log.file_id, log.instant) not in shared


def _list_names(storage: Storage, partition: str) -> frozenset[str]:
    return frozenset(entry.name for entry in list_if_exists(storage, partition))


def make_rollback_plan(
    target: Instant, files: Sequence[File], appends: Sequence[LogAppend], sizes: Mapping[File, int]
) -> RollbackPlan:
    """Return the plan that a rollback publishes, and that any Hudi writer may execute.

    ``sizes``: of the table's files. Hudi wants one request per file, as its markers give them.
    """
    deletions = []
    for partition, name in files:
        parsed = BaseName.parse(name) or LogName.parse(name)
        assert parsed is not None, "only data files are rolled back"
        deletions.append(
            RollbackRequest(
                partition=partition,
                file_id=parsed.file_id,
                base_instant=target.requested,
                files=(name,),
            )
        )
    blocks = [
        RollbackRequest(
            partition=one.partition,
            file_id=one.file_id,
            base_instant=one.base_instant,
            log_blocks={name: sizes.get((one.partition, name), 1) for name in one.logs},
        )
        for one in appends
    ]
    return RollbackPlan(
        target=target.requested, action=target.action.value, requests=(*deletions, *blocks)
    )


def append_command_blocks(
    storage: Storage, instant: str, target: str, appends: Iterable[LogAppend]
) -> dict[File, int]:
    """Write a log file with a command block for each slice, and return these files with sizes.

    ``instant``: the rollback's. A marker of the rollback announces each file, and by it an earlier
    attempt's is found; where Hudi has removed the markers, by its write token. Raises StorageError,
    FormatError.
    """
    earlier = [
        (partition, name)
        for partition, name, kind in read_markers(storage, instant).markers
        if kind == APPEND
    ]
    written: dict[File, int] = {}
    for append in appends:
        logs = _list_slice_logs(storage, append)
        sizes = {(append.partition, log.text): entry.size for log, entry in logs}
        announced = {file for file in sizes if file in earlier}
        similar = {(append.partition, log.text) for log, _ in logs if log.token == _WRITE_ID}
        done = {f for f in announced | similar if _has_command(storage, f, target)}
        written |= {file: sizes[file] for file in announced | done}
        if not done:
            written |= _write_command(storage, instant, target, append, [log for log, _ in logs])
    return written


def _list_slice_logs(storage: Storage, append: LogAppend) -> list[tuple[LogName, StorageEntry]]:
    """Return the log files of a slice, CDC files included."""
    parsed = ((LogName.parse(e.name), e) for e in list_if_exists(storage, append.partition))
    key = (append.file_id, append.base_instant)
    return [(log, e) for log, e in parsed if log is not None and (log.file_id, log.instant) == key]


def _has_command(storage: Storage, file: File, target: str) -> bool:
    """Return whether a log file holds a block that cancels those of a write."""
    path = resolve_path(*file)
    return any(
        block.type is BlockType.COMMAND
        and block.header.get(HeaderKey.TARGET_INSTANT_TIME) == target
        for block in read_blocks(storage.read(path), path)
    )


def _write_command(
    storage: Storage, instant: str, target: str, append: LogAppend, logs: Sequence[LogName]
) -> dict[File, int]:
    newest = max((log.version for log in logs), default=0)
    name = LogName(
        file_id=append.file_id,
        instant=append.base_instant,
        version=newest + 1,
        token=_WRITE_ID,
        is_cdc=False,
    ).text
    data = encode_command_block(instant, target)
    with suppress(AlreadyExistsError):  # of an attempt that died before it wrote the log file
        storage.create(marker_path(instant, append.partition, name, APPEND), b"")
    storage.create(resolve_path(append.partition, name), data)
    return {(append.partition, name): len(data)}


def encode_command_block(instant: str, target: str) -> bytes:
    """Encode the block by which a rollback cancels the earlier blocks of a write in a slice."""
    header = [
        (HeaderKey.INSTANT_TIME, instant),
        (HeaderKey.TARGET_INSTANT_TIME, target),
        (HeaderKey.COMMAND_BLOCK_TYPE, _ROLLBACK_BLOCK),
    ]
    return encode_block(BlockType.COMMAND, header, b"")


def measure_logs(storage: Storage, appends: Iterable[LogAppend]) -> dict[File, int]:
    """Return the existing log files of a failed write that stay, with their sizes."""
    sizes: dict[File, int] = {}
    for append in appends:
        for name in append.logs:
            entry = storage.stat(make_file_path(append.partition, name))
            if entry is not None and LogName.parse(name) is not None:
                sizes[append.partition, name] = entry.size
    return sizes


def revert_clustering(session: TableSession, target: str, action: Action) -> None:
    """Take a clustering back to its request, without the markers and the heartbeat of its attempt.

    The rollback of the attempt is still pending then, so that the next run goes on if this one
    stops. Source: HoodieTable.rollbackInflightClustering.
    """
    session.publisher.revert(target, action)
    with suppress(NotFoundError):
        remove_markers(session.storage, target)
    session.storage.delete(heartbeat_path(target))


def remove_failed_write(session: TableSession, target: str, action: Action) -> None:
    """Take a failed write off the timeline, whose files are gone, with markers and heartbeat.

    The rollback is still pending then, so that the next run goes on if this one stops.
    """
    session.publisher.withdraw(target, action)
    with suppress(NotFoundError):
        remove_markers(session.storage, target)
    session.storage.delete(heartbeat_path(target))
