"""Read which file groups other writes touch, if they are pending or completed since a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from reconciler.errors import BusyError, FormatError, NotFoundError
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.heartbeat import DEAD_AFTER_S, heartbeat_path, is_silent
from reconciler.hudi.timeline.instant import WRITES, Action, Instant, State
from reconciler.hudi.timeline.plans import (
    RequestedReplace,
    parse_compaction,
    parse_rolled_back_time,
)
from reconciler.state.timeline_reader import is_being_written
from reconciler.transaction.conflicts import Footprint
from reconciler.transaction.recovery.marked_files import list_marked_files, parse_file_group
from reconciler.transaction.retry import raise_changing, retry_while_changing
from reconciler.transaction.session import TableSession

_WITH_HEARTBEAT: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})
_COMPACTIONS: Final = frozenset({Action.COMPACTION, Action.LOGCOMPACTION})
_REPLACING: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})
#: operations that bring no new keys, by Hudi's names (WriteOperationType)
_WITHOUT_NEW_KEYS: Final = frozenset(
    {"CLUSTER", "COMPACT", "LOG_COMPACT", "DELETE", "DELETE_PREPPED", "DELETE_PARTITION"}
)
#: how often a rollback's plan is read that another writer is writing, and the pause before each
_PLAN_READS: Final = 10
_PAUSE_S: Final = 0.2

#: requested time and action, as completed, of an instant
CompletedWrites = frozenset[tuple[str, Action]]


def collect_completed_writes(timeline: Timeline) -> CompletedWrites:
    """Return the completed writes, rollbacks and restores, which ``read_footprints`` skips."""
    done = (*timeline.commits, *timeline.completed({Action.ROLLBACK, Action.RESTORE}))
    return frozenset((i.requested, i.action.completes_as) for i in done)


def read_footprints(
    session: TableSession, known: CompletedWrites, own: str | None
) -> tuple[Timeline, list[Footprint]]:
    """Return the timeline as it is now, and every write on it that is pending or not known.

    ``own``: the instant of the session's own write. A known write that was undone since may have
    gone anywhere. Raises BusyError when the timeline keeps changing, FormatError for damage.
    """

    def attempt() -> tuple[Timeline, list[Footprint]] | None:
        timeline = session.reload_timeline()
        try:
            writes = [
                _make_footprint(i, _read_touched(session, timeline, i, own))
                for i in _find_unknown_writes(timeline, known, own)
            ]
            undone = _find_undone_writes(session, timeline, known)
            return timeline, [*writes, *(_make_footprint(instant, None) for instant in undone)]
        except NotFoundError:
            return None

    def give_up() -> tuple[Timeline, list[Footprint]]:
        raise_changing(session.name, "it was read")

    return retry_while_changing(attempt, give_up)


def find_unexcluded_write(
    session: TableSession, timeline: Timeline, own: str | None = None
) -> Instant | None:
    """Return a pending write of another writer that no lock keeps out; None under a lock.

    ``own``: the instant of the session's own write. Every kind of change asks this.
    """
    if session.lock.excludes_others:
        return None
    return next((i for i in timeline.pending(WRITES) if i.requested != own), None)


def _find_unknown_writes(
    timeline: Timeline, known: CompletedWrites, own: str | None
) -> Iterable[Instant]:
    for instant in timeline.writes:
        key = (instant.requested, instant.action.completes_as)
        if instant.requested != own and not (instant.is_completed and key in known):
            yield instant


def _read_touched(
    session: TableSession, timeline: Timeline, instant: Instant, own: str | None
) -> WriteFootprint | None:
    """Return the file groups that a write touches; None if it may go anywhere."""
    if instant.is_completed:
        file = timeline.find_file(instant.requested, instant.action, instant.state)
        assert file is not None, "an instant of the timeline has a file"
        data, path = session.read_instant(file)
        return WriteFootprint.parse(data, path) if data else None
    if instant.action in _COMPACTIONS | _REPLACING:
        return _read_planned_write(session, timeline, instant)
    return _read_announced_write(session, timeline, instant, own)


def _read_announced_write(
    session: TableSession, timeline: Timeline, instant: Instant, own: str | None
) -> WriteFootprint | None:
    """Read a pending write, whose inflight file holds its profile; its markers name files too."""
    inflight = timeline.find_file(instant.requested, instant.action, State.INFLIGHT)
    if inflight is None:
        return WriteFootprint() if _is_dead(session, instant, own) else None
    data, path = session.read_instant(inflight)
    try:
        touched = WriteFootprint.parse(data, path)
    except FormatError:  # empty, as bulk inserts leave it, or half written
        return None
    if touched.is_empty:
        return None
    pairs = [(partition, group) for partition, ids in touched.groups.items() for group in ids]
    for partition, name in list_marked_files(session.storage, instant.requested):
        if (file_id := parse_file_group(name)) is not None:
            pairs.append((partition, file_id))
    return replace(_group_pairs(pairs), insert_partitions=touched.insert_partitions)


def _is_dead(session: TableSession, instant: Instant, own: str | None) -> bool:
    """Return True if a write that has not begun never will: no heartbeat for ``staleAfter``.

    Writers that share a table beat once a minute. After two minutes without a heartbeat Hudi's
    cleans roll a write back, and its clusterings do not wait for it. A writer that comes back after
    all finds reconciler's replacecommit when it completes, and gives up (optimistic concurrency
    control). A writer without a heartbeat may be the only one, and alive.
    """
    entry = session.storage.stat(heartbeat_path(instant.requested))
    if entry is None or instant.action not in _WITH_HEARTBEAT:
        return False
    after = max(session.stale_after, DEAD_AFTER_S)
    now_ms = session.clock.now_ms()
    beat = session.storage.stat(heartbeat_path(own)) if own is not None else None
    if beat is not None:  # this host's clock may be fast, so its last heartbeat bounds the time
        now_ms = min(now_ms, beat.modified_ms)
    return is_silent(entry.modified_ms, now_ms, after)


def _read_planned_write(
    session: TableSession, timeline: Timeline, instant: Instant
) -> WriteFootprint | None:
    """Read the slices of a compaction or a clustering; any other replacement may go anywhere."""
    file = timeline.find_file(instant.requested, instant.action, State.REQUESTED)
    if file is None:
        return None
    data, path = session.read_instant(file)
    if instant.action in _COMPACTIONS:
        operations = parse_compaction(data, path)
        return _group_pairs((operation.partition, operation.file_id) for operation in operations)
    plan = RequestedReplace.parse(data, path) if data else None
    if plan is None or not plan.is_clustering:
        return None
    return _group_pairs((part.partition, part.file_id) for part in plan.slices)


def find_undoing(
    session: TableSession, timeline: Timeline, known: CompletedWrites
) -> Instant | None:
    """Return a rollback or restore, pending or not, that undoes a known write; None without.

    Raises BusyError if that is not known, because the plan of a rollback cannot be read.
    """
    try:
        return next(iter(_find_undone_writes(session, timeline, known)), None)
    except NotFoundError as gone:
        raise _make_removed_error(session, gone) from None


def _find_undone_writes(
    session: TableSession, timeline: Timeline, known: CompletedWrites
) -> Iterable[Instant]:
    """Yield the rollbacks and restores that undo a known write."""
    times = {time for time, _ in known}
    for instant in timeline.instants:
        if instant.is_completed and (instant.requested, instant.action) in known:
            continue
        if instant.action is Action.RESTORE or (
            instant.action is Action.ROLLBACK
            and _read_rollback_target(session, timeline, instant) in times
        ):
            yield instant


def find_rollback_ms(
    session: TableSession, timeline: Timeline, own: str, known: CompletedWrites = frozenset()
) -> int | None:
    """Return when another writer last rolled a pending instant back, or began to.

    Epoch milliseconds; None if there is no rollback except the known ones. Raises as
    ``is_being_rolled_back``.
    """
    times = [
        entry.modified_ms
        for entry in timeline.entries
        if entry.instant.action is Action.ROLLBACK
        and entry.instant.requested > own
        and (entry.instant.requested, Action.ROLLBACK) not in known
        and _undoes(session, timeline, entry.instant, own)
    ]
    return max(times, default=None)


def is_being_rolled_back(session: TableSession, timeline: Timeline, own: str) -> bool:
    """Return True if a rollback of a pending instant has begun and is not completed.

    Raises BusyError if that is not known, because the plan of a rollback cannot be read.
    """
    rollbacks = timeline.pending({Action.ROLLBACK})
    return any(_undoes(session, timeline, rollback, own) for rollback in rollbacks)


def _undoes(session: TableSession, timeline: Timeline, rollback: Instant, own: str) -> bool:
    try:
        return _read_rollback_target(session, timeline, rollback) == own
    except NotFoundError as gone:
        raise _make_removed_error(session, gone) from None


def _make_removed_error(session: TableSession, gone: NotFoundError) -> BusyError:
    return BusyError(
        f"{session.name}: {gone.path} was removed while it was read, so another writer is at "
        "work; run it again"
    )


def _read_rollback_target(session: TableSession, timeline: Timeline, instant: Instant) -> str:
    """Return the time of the instant that a rollback undoes; "" if it undoes nothing.

    A rollback waits for no lock, and its plan may be incomplete because it is being written. Nobody
    can execute a rollback whose empty plan a dead writer left, so it undoes nothing. Raises
    BusyError for any other plan that cannot be read, and NotFoundError if it is removed.
    """
    file = timeline.find_file(instant.requested, Action.ROLLBACK, State.REQUESTED)
    if file is None:
        return ""
    path = f"{session.properties.timeline_folder}/{file.name}"
    for attempt in range(1, _PLAN_READS + 1):
        data, _path = session.read_instant(file)
        try:
            return parse_rolled_back_time(data, path)
        except FormatError:
            if not is_being_written(session.storage, path, session.clock.now_ms()):
                if not data and instant.state is State.REQUESTED:
                    return ""
                raise BusyError(
                    f"{session.name}: {path} is damaged, so nobody knows which write this rollback "
                    "undoes; if no writer is at work, delete this file, then run it again"
                ) from None
        session.clock.sleep(_PAUSE_S * attempt)
    raise BusyError(
        f"{session.name}: {path} is being written, so it is not known which write this rollback "
        "undoes; run it again when it is complete"
    )


def _group_pairs(pairs: Iterable[tuple[str, str]]) -> WriteFootprint:
    groups: dict[str, set[str]] = {}
    for partition, file_id in pairs:
        groups.setdefault(partition, set()).add(file_id)
    return WriteFootprint(groups={partition: frozenset(ids) for partition, ids in groups.items()})


def _make_footprint(instant: Instant, touched: WriteFootprint | None) -> Footprint:
    """Return the footprint of a write; ``touched``: None if it may go anywhere."""
    known = touched or WriteFootprint()
    return Footprint(
        instant=instant.requested,
        action=instant.action.value,
        is_completed=instant.is_completed,
        groups=known.groups,
        inserts=known.insert_partitions,
        is_known=touched is not None,
        has_new_keys=(known.operation or "").upper() not in _WITHOUT_NEW_KEYS,
    )
