"""Read which file groups other writes touch: those that are pending, and those that came since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.load import read_instant_file
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.heartbeat import DEAD_AFTER_S, heartbeat_path, is_silent
from reconciler.hudi.timeline.instant import WRITES, Action, Instant, State
from reconciler.hudi.timeline.plans import (
    RequestedReplace,
    parse_compaction,
    parse_rolled_back_time,
)
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

#: requested time and action, as completed, of an instant
CompletedWrites = frozenset[tuple[str, Action]]


def collect_completed_writes(timeline: Timeline) -> CompletedWrites:
    """Return the completed writes, rollbacks and restores, which ``read_footprints`` leaves out."""
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
            found = [
                _read_footprint(session, timeline, i, own)
                for i in _find_unknown_writes(timeline, known, own)
            ]
            return timeline, [*found, *_find_undone_writes(session, timeline, known)]
        except NotFoundError:
            return None

    def give_up() -> tuple[Timeline, list[Footprint]]:
        raise_changing(session.name, "it was read")

    return retry_while_changing(attempt, give_up)


def find_foreign_writes(timeline: Timeline, own: str | None = None) -> list[Instant]:
    """Return the writes that are pending, except the one with the instant ``own``."""
    return [i for i in timeline.pending(WRITES) if i.requested != own]


def find_unexcluded_write(
    session: TableSession, timeline: Timeline, own: str | None = None
) -> Instant | None:
    """Return a pending write of another writer that no lock keeps out; None under a lock.

    ``own``: the instant of the session's own write. Every kind of change asks this.
    """
    if session.lock.excludes_others:
        return None
    return next(iter(find_foreign_writes(timeline, own)), None)


def _find_unknown_writes(
    timeline: Timeline, known: CompletedWrites, own: str | None
) -> Iterable[Instant]:
    for instant in timeline.writes:
        key = (instant.requested, instant.action.completes_as)
        if instant.requested != own and not (instant.is_completed and key in known):
            yield instant


def _read_footprint(
    session: TableSession, timeline: Timeline, instant: Instant, own: str | None
) -> Footprint:
    if instant.is_completed:
        data, path = _read_content(session, _find_file(timeline, instant))
        return (
            _make_footprint(instant, WriteFootprint.parse(data, path))
            if data
            else _make_unknown_footprint(instant)
        )
    if instant.action in _COMPACTIONS:
        return _read_compaction(session, timeline, instant)
    if instant.action in _REPLACING:
        return _read_replacement(session, timeline, instant)
    return _read_announced_write(session, timeline, instant, own)


def _read_announced_write(
    session: TableSession, timeline: Timeline, instant: Instant, own: str | None
) -> Footprint:
    """Read a pending write, whose inflight file holds its profile; its markers name files too."""
    inflight = timeline.find_file(instant.requested, instant.action, State.INFLIGHT)
    if inflight is None:
        return (
            _make_empty_footprint(instant)
            if _is_dead(session, instant, own)
            else _make_unknown_footprint(instant)
        )
    data, path = _read_content(session, inflight)
    try:
        touched = WriteFootprint.parse(data, path)
    except FormatError:  # empty, as bulk inserts leave it, or half written
        return _make_unknown_footprint(instant)
    if touched.is_empty:
        return _make_unknown_footprint(instant)
    groups = {partition: set(ids) for partition, ids in touched.groups.items()}
    for partition, name in list_marked_files(session.storage, instant.requested):
        if (file_id := parse_file_group(name)) is not None:
            groups.setdefault(partition, set()).add(file_id)
    all_groups = {partition: frozenset(ids) for partition, ids in groups.items()}
    return _make_footprint(
        instant, WriteFootprint(groups=all_groups, insert_partitions=touched.insert_partitions)
    )


def _is_dead(session: TableSession, instant: Instant, own: str | None) -> bool:
    """Whether a write that has not begun never will: it has not beaten for ``staleAfter``.

    Writers that share a table beat once a minute. After two minutes without a heartbeat Hudi's
    cleans roll a write back, and its clusterings do not wait for it. A writer that comes back after
    all finds our replacecommit when it completes, and gives up (optimistic concurrency control). A
    writer without a heartbeat may be the only one, and alive.
    """
    entry = session.storage.stat(heartbeat_path(instant.requested))
    if entry is None or instant.action not in _WITH_HEARTBEAT:
        return False
    after = max(session.stale_after, DEAD_AFTER_S)
    return is_silent(entry.modified_ms, _get_now_ms(session, own), after)


def _get_now_ms(session: TableSession, own: str | None) -> int:
    """Return the time, but none after our own last heartbeat: our clock may be fast."""
    now = session.clock.now_ms()
    beat = session.storage.stat(heartbeat_path(own)) if own is not None else None
    return now if beat is None else min(now, beat.modified_ms)


def _read_compaction(session: TableSession, timeline: Timeline, instant: Instant) -> Footprint:
    file = timeline.find_file(instant.requested, instant.action, State.REQUESTED)
    if file is None:
        return _make_unknown_footprint(instant)
    operations = parse_compaction(*_read_content(session, file))
    return _make_footprint(instant, _group_pairs((op.partition, op.file_id) for op in operations))


def _read_replacement(session: TableSession, timeline: Timeline, instant: Instant) -> Footprint:
    """Read a pending replacement: a clustering names its slices, any other may replace anything."""
    file = timeline.find_file(instant.requested, instant.action, State.REQUESTED)
    data, path = (b"", "") if file is None else _read_content(session, file)
    if not data:
        return _make_unknown_footprint(instant)
    plan = RequestedReplace.parse(data, path)
    if not plan.is_clustering:
        return _make_unknown_footprint(instant)
    return _make_footprint(
        instant, _group_pairs((one.partition, one.file_id) for one in plan.slices)
    )


def _find_undone_writes(
    session: TableSession, timeline: Timeline, known: CompletedWrites
) -> Iterable[Footprint]:
    """Find the rollbacks and restores that undo what was known to be completed."""
    times = {time for time, _ in known}
    for instant in timeline.instants:
        is_known = instant.is_completed and (instant.requested, instant.action) in known
        match instant.action:
            case Action.RESTORE if not is_known:
                yield _make_unknown_footprint(instant)
            case Action.ROLLBACK if not is_known:
                if _read_rollback_target(session, timeline, instant) in times:
                    yield _make_unknown_footprint(instant)


def find_rollback_ms(
    session: TableSession, timeline: Timeline, own: str, known: CompletedWrites = frozenset()
) -> int | None:
    """Return when another writer last rolled a pending instant back, or began to.

    Epoch milliseconds; None where nobody did, but for rollbacks that are known.
    """
    found = [
        entry.modified_ms
        for entry in timeline.entries
        if entry.instant.action is Action.ROLLBACK
        and entry.instant.requested > own
        and (entry.instant.requested, Action.ROLLBACK) not in known
        and _read_rollback_target(session, timeline, entry.instant) == own
    ]
    return max(found, default=None)


def is_being_rolled_back(session: TableSession, timeline: Timeline, own: str) -> bool:
    """Whether a rollback of a pending instant has begun and is not completed."""
    rollbacks = timeline.pending({Action.ROLLBACK})
    return any(_read_rollback_target(session, timeline, one) == own for one in rollbacks)


def _read_rollback_target(session: TableSession, timeline: Timeline, instant: Instant) -> str:
    """Return the time of the instant that a rollback undoes."""
    file = timeline.find_file(instant.requested, Action.ROLLBACK, State.REQUESTED)
    if file is None:
        return ""
    return parse_rolled_back_time(*_read_content(session, file))


def _group_pairs(pairs: Iterable[tuple[str, str]]) -> WriteFootprint:
    groups: dict[str, set[str]] = {}
    for partition, file_id in pairs:
        groups.setdefault(partition, set()).add(file_id)
    return WriteFootprint(groups={partition: frozenset(ids) for partition, ids in groups.items()})


def _make_footprint(instant: Instant, touched: WriteFootprint) -> Footprint:
    return Footprint(
        instant=instant.requested,
        action=instant.action.value,
        is_completed=instant.is_completed,
        groups=touched.groups,
        inserts=touched.insert_partitions,
        has_new_keys=(touched.operation or "").upper() not in _WITHOUT_NEW_KEYS,
    )


def _make_unknown_footprint(instant: Instant) -> Footprint:
    return Footprint(
        instant=instant.requested,
        action=instant.action.value,
        is_completed=instant.is_completed,
        is_known=False,
    )


def _make_empty_footprint(instant: Instant) -> Footprint:
    return Footprint(
        instant=instant.requested, action=instant.action.value, is_completed=instant.is_completed
    )


def _find_file(timeline: Timeline, instant: Instant) -> TimelineFile:
    file = timeline.find_file(instant.requested, instant.action, instant.state)
    assert file is not None, "an instant of the timeline has a file"
    return file


def _read_content(session: TableSession, file: TimelineFile) -> tuple[bytes, str]:
    return read_instant_file(session.storage, session.properties, file)
