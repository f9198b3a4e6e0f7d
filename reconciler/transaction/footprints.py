"""Where the writes go that another write has to reckon with: those that it did not know of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.errors import BusyError, FormatError, NotFoundError
from reconciler.hudi.clustering import RequestedReplace
from reconciler.hudi.compaction import CompactionPlan
from reconciler.hudi.heartbeat import DEAD_AFTER_S, heartbeat_path, is_silent
from reconciler.hudi.instant import WRITES, Action, Instant, State
from reconciler.hudi.load import instant_path, read_instant_file
from reconciler.hudi.rollback import rolls_back
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.hudi.touched import Touched
from reconciler.transaction.conflicts import Footprint
from reconciler.transaction.hold import Hold
from reconciler.transaction.marked import group_of, marked_files

_ATTEMPTS: Final = 8
_WITH_HEARTBEAT: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})
_COMPACTIONS: Final = frozenset({Action.COMPACTION, Action.LOGCOMPACTION})
_REPLACING: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})
#: what brings no key that was not there, by Hudi's names (WriteOperationType)
_WITHOUT_NEW_KEYS: Final = frozenset(
    {"CLUSTER", "COMPACT", "LOG_COMPACT", "DELETE", "DELETE_PREPPED", "DELETE_PARTITION"}
)

#: requested time and action, as completed, of an instant
Known = frozenset[tuple[str, Action]]


def known_writes(timeline: Timeline) -> Known:
    """What is completed of writes, rollbacks and restores: ``footprints`` leaves it out later."""
    done = (*timeline.commits, *timeline.completed({Action.ROLLBACK, Action.RESTORE}))
    return frozenset((i.requested, i.action.completes_as) for i in done)


def footprints(hold: Hold, known: Known, own: str | None) -> tuple[Timeline, list[Footprint]]:
    """The timeline as it is now, and every write on it that is pending or was not known.

    ``own``: the instant of one's own write. A known write that was undone since may have gone
    anywhere. Raises BusyError when the timeline does not hold still, FormatError for damage.
    """
    for _attempt in range(_ATTEMPTS):
        timeline = hold.reread()
        try:
            found = [_footprint(hold, timeline, i, own) for i in _unknown(timeline, known, own)]
            return timeline, [*found, *_undone(hold, timeline, known)]
        except NotFoundError:
            continue
    raise BusyError(
        f"{hold.name}: its timeline changed {_ATTEMPTS} times while it was read; run "
        "again when its writers are quieter"
    )


def foreign_pending(timeline: Timeline, own: str | None = None) -> list[Instant]:
    """Writes of others that are not completed."""
    return [i for i in timeline.pending(WRITES) if i.requested != own]


def _unknown(timeline: Timeline, known: Known, own: str | None) -> Iterable[Instant]:
    for instant in timeline.writes:
        key = (instant.requested, instant.action.completes_as)
        if instant.requested != own and not (instant.is_completed and key in known):
            yield instant


def _footprint(hold: Hold, timeline: Timeline, instant: Instant, own: str | None) -> Footprint:
    if instant.is_completed:
        data, path = _content(hold, _file(timeline, instant))
        return _told(instant, Touched.parse(data, path)) if data else _anywhere(instant)
    if instant.action in _COMPACTIONS:
        return _planned_compaction(hold, timeline, instant)
    if instant.action in _REPLACING:
        return _planned_replacement(hold, timeline, instant)
    return _announced(hold, timeline, instant, own)


def _announced(hold: Hold, timeline: Timeline, instant: Instant, own: str | None) -> Footprint:
    """A write whose inflight file holds its profile, if it has one yet; markers say the same."""
    inflight = timeline.file(instant.requested, instant.action, State.INFLIGHT)
    if inflight is None:
        return _nowhere(instant) if _is_dead(hold, instant, own) else _anywhere(instant)
    data, path = _content(hold, inflight)
    try:
        touched = Touched.parse(data, path)
    except FormatError:  # empty, as bulk inserts leave it, or half written
        return _anywhere(instant)
    if touched.is_empty:
        return _anywhere(instant)
    groups = {partition: set(ids) for partition, ids in touched.groups.items()}
    for partition, name in marked_files(hold.storage, instant.requested):
        if (file_id := group_of(name)) is not None:
            groups.setdefault(partition, set()).add(file_id)
    all_groups = {partition: frozenset(ids) for partition, ids in groups.items()}
    return _told(instant, Touched(groups=all_groups, inserts=touched.inserts))


def _is_dead(hold: Hold, instant: Instant, own: str | None) -> bool:
    """Whether a write that has not begun never will: its heart stood still for ``staleAfter``.

    Writers that share a table beat once a minute; where one's heart stood still for two minutes,
    Hudi's cleans roll it back, and its clusterings do not wait for it. A writer that comes back
    after all finds our replacecommit when it completes, and gives up (OCC). One that has no
    heartbeat may be alone, and alive.
    """
    entry = hold.storage.stat(heartbeat_path(instant.requested))
    if entry is None or instant.action not in _WITH_HEARTBEAT:
        return False
    after = max(hold.stale_after, DEAD_AFTER_S)
    return is_silent(entry.modified_ms, _now_ms(hold, own), after)


def _now_ms(hold: Hold, own: str | None) -> int:
    """The time; where our own heart beats, no later than the store says: our clock may be fast."""
    now = hold.clock.now_ms()
    beat = hold.storage.stat(heartbeat_path(own)) if own is not None else None
    return now if beat is None else min(now, beat.modified_ms)


def _planned_compaction(hold: Hold, timeline: Timeline, instant: Instant) -> Footprint:
    file = timeline.file(instant.requested, instant.action, State.REQUESTED)
    if file is None:
        return _anywhere(instant)
    plan = CompactionPlan.parse(*_content(hold, file))
    return _told(instant, _of_pairs((op.partition, op.file_id) for op in plan.operations))


def _planned_replacement(hold: Hold, timeline: Timeline, instant: Instant) -> Footprint:
    """A clustering names its slices; what overwrites partitions may replace all there is."""
    file = timeline.file(instant.requested, instant.action, State.REQUESTED)
    data, path = (b"", "") if file is None else _content(hold, file)
    if not data:
        return _anywhere(instant)
    plan = RequestedReplace.parse(data, path)
    if not plan.is_clustering:
        return _anywhere(instant)
    return _told(instant, _of_pairs((one.partition, one.file_id) for one in plan.slices))


def _undone(hold: Hold, timeline: Timeline, known: Known) -> Iterable[Footprint]:
    """Rollbacks and restores of what was known to be completed."""
    times = {time for time, _ in known}
    for instant in timeline.instants:
        is_known = instant.is_completed and (instant.requested, instant.action) in known
        match instant.action:
            case Action.RESTORE if not is_known:
                yield _anywhere(instant)
            case Action.ROLLBACK if not is_known:
                if _rolls_back(hold, timeline, instant) in times:
                    yield _anywhere(instant)


def rolled_back_ms(
    hold: Hold, timeline: Timeline, own: str, known: Known = frozenset()
) -> int | None:
    """When somebody last took a pending instant back, to do it again or to be rid of it.

    Epoch milliseconds; None where nobody did, but for rollbacks that are known.
    """
    found = [
        entry.modified_ms
        for entry in timeline.entries
        if entry.instant.action is Action.ROLLBACK
        and entry.instant.requested > own
        and (entry.instant.requested, Action.ROLLBACK) not in known
        and _rolls_back(hold, timeline, entry.instant) == own
    ]
    return max(found, default=None)


def is_being_rolled_back(hold: Hold, timeline: Timeline, own: str) -> bool:
    """Whether somebody has begun to take a pending instant back, and has not said that it is."""
    rollbacks = timeline.pending({Action.ROLLBACK})
    return any(_rolls_back(hold, timeline, one) == own for one in rollbacks)


def _rolls_back(hold: Hold, timeline: Timeline, instant: Instant) -> str:
    """The commit that a rollback is to undo."""
    file = timeline.file(instant.requested, Action.ROLLBACK, State.REQUESTED)
    if file is None:
        return ""
    return rolls_back(*_content(hold, file))


def _of_pairs(pairs: Iterable[tuple[str, str]]) -> Touched:
    groups: dict[str, set[str]] = {}
    for partition, file_id in pairs:
        groups.setdefault(partition, set()).add(file_id)
    return Touched(groups={partition: frozenset(ids) for partition, ids in groups.items()})


def _told(instant: Instant, touched: Touched) -> Footprint:
    return Footprint(
        instant=instant.requested,
        action=instant.action.value,
        is_completed=instant.is_completed,
        groups=touched.groups,
        inserts=touched.inserts,
        has_new_keys=(touched.operation or "").upper() not in _WITHOUT_NEW_KEYS,
    )


def _anywhere(instant: Instant) -> Footprint:
    return Footprint(
        instant=instant.requested,
        action=instant.action.value,
        is_completed=instant.is_completed,
        is_known=False,
    )


def _nowhere(instant: Instant) -> Footprint:
    return Footprint(
        instant=instant.requested, action=instant.action.value, is_completed=instant.is_completed
    )


def _file(timeline: Timeline, instant: Instant) -> TimelineFile:
    file = timeline.file(instant.requested, instant.action, instant.state)
    assert file is not None, "an instant of the timeline has a file"
    return file


def _content(hold: Hold, file: TimelineFile) -> tuple[bytes, str]:
    path = instant_path(hold.properties, file)
    return read_instant_file(hold.storage, hold.properties, file), path
