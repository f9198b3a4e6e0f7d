"""The time zone of a timeline, by the times of its files; pure.

An instant is named after the local time of its writer, and its requested file is written at once.
So the time of the file, which is the same everywhere, shows how far that local time is from UTC. A
copy of a table has the times of the copy: these do not follow the instants, and show nothing.

A replica may follow its source by a whole number of half hours. Its files are later than the
writers', as if these were further west; nothing but the spec then tells it from a wrong zone. Files
that are earlier than their instants are those of writers further east: no copy is earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from reconciler import units
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action, Instant, State, parse_instant
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.zones import FREQUENT_ZONES

_WRITES: Final = (Action.COMMIT, Action.DELTACOMMIT)
_HALF_HOUR: Final = 1800
#: seconds from an instant to the time of its file: a store's clock may be a minute behind
_EARLIEST_FILE_S: Final = -60
_LATEST_FILE_S: Final = 120
_MAX_OFFSET_S: Final = 14 * 3600
_MIN_TIMES: Final = 3
#: older files add no information, and may be from before a copy
_MAX_TIMES: Final = 12
#: times follow instants if their delays differ by less than this share of the time between them
_MAX_JITTER: Final = 0.25
_MAX_ZONES: Final = 3
#: files of one instant that were copied together are at most so many milliseconds apart, although
#: their names say that the write took longer
_COPIED_TOGETHER_MS: Final = 2_000
_LONG_WRITE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ObservedOffset:
    """The offset from UTC in seconds that a file shows for the local time of its instant."""

    local_time: datetime
    seconds: int


def observe_offsets(timeline: Timeline) -> tuple[ObservedOffset, ...]:
    """Return the offsets that the files of the newest writes show; none if they show nothing.

    They show nothing if there are fewer than three, if one is not written at a half hour's distance
    from its instant, if their times do not follow the instants, or if a copy has written all files
    of an instant at once.
    """
    if _is_copied(timeline):
        return ()
    found, delays, times = [], [], []
    for local_time, seconds in islice(_list_times(timeline), _MAX_TIMES):
        named = int(local_time.replace(tzinfo=UTC).timestamp())
        ahead = named - seconds
        offset = -(-(ahead + _EARLIEST_FILE_S) // _HALF_HOUR) * _HALF_HOUR
        delay = offset - ahead
        if delay > _LATEST_FILE_S or abs(offset) > _MAX_OFFSET_S:
            return ()
        found.append(ObservedOffset(local_time, offset))
        delays.append(delay)
        times.append(seconds)
    if len(found) < _MIN_TIMES:
        return ()
    jitter, span = max(delays) - min(delays), max(times) - min(times)
    return tuple(found) if span and jitter <= _MAX_JITTER * span else ()


def _list_times(timeline: Timeline) -> Iterable[tuple[datetime, int]]:
    """Yield local time and epoch seconds of the requested files of writes, newest first."""
    for file in reversed(timeline.files):
        instant = file.instant
        if instant.state is State.REQUESTED and instant.action in _WRITES and file.modified_ms:
            local_time = parse_instant(instant.requested)
            if local_time is not None:
                yield local_time, file.modified_ms // 1000


def _is_copied(timeline: Timeline) -> bool:
    """Return whether all files of every long write were written at once: a copy did that."""
    completed = timeline.completed_files(_WRITES)[-_MAX_TIMES:]
    long = [file for file in completed if (_count_milliseconds(file.instant) > _LONG_WRITE_MS)]
    began = [
        timeline.find_file(file.instant.requested, file.instant.action, State.REQUESTED)
        for file in long
    ]
    pairs = [(a.modified_ms, b.modified_ms) for a, b in zip(began, long, strict=True) if a]
    return bool(pairs) and all(abs(b - a) <= _COPIED_TOGETHER_MS for a, b in pairs)


def _count_milliseconds(instant: Instant) -> float:
    """Return how long a write took by its completed file's name; 0 if that does not tell."""
    begin, end = (parse_instant(time or "") for time in (instant.requested, instant.completed))
    return 0.0 if begin is None or end is None else (end - begin).total_seconds() * 1000


def list_fitting_zones(offsets: Sequence[ObservedOffset]) -> tuple[str, ...]:
    """Return at most three zones that explain every offset, well-known ones first."""
    if not offsets:
        return ()
    found = [name for name in FREQUENT_ZONES if is_explained(offsets, ZoneInfo(name))]
    if not found:
        names = sorted(name for name in available_timezones() if _is_place(name))
        found = [name for name in names if is_explained(offsets, ZoneInfo(name))]
    return tuple(found[:_MAX_ZONES])


def _is_place(name: str) -> bool:
    return "/" in name and not name.startswith(("Etc/", "SystemV/", "posix/", "right/"))


def is_explained(offsets: Iterable[ObservedOffset], zone: tzinfo) -> bool:
    """Return whether a zone has every offset at the local time where it was observed."""
    return not any(_is_contradicted(offset, zone) for offset in offsets)


def _is_contradicted(offset: ObservedOffset, zone: tzinfo) -> bool:
    """Return whether a zone has another offset at a local time, in both hours if it has two."""
    moments = (offset.local_time.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return offset.seconds not in {_offset_seconds(moment) for moment in moments}


def find_contradiction(timeline: Timeline, name: str, *, are_copied: bool = False) -> str | None:
    """Return how the files of a timeline contradict a declared zone, and which zones fit.

    Three files must contradict it, and one zone must explain all files: nothing else is certain.
    ``are_copied``: the files were copied, so that they may be later than the writers'.
    """
    zone = ZoneInfo(name)
    offsets = observe_offsets(timeline)
    against = [offset for offset in offsets if _is_contradicted(offset, zone)]
    lags = {_declared_offset(offset, zone) - offset.seconds for offset in against}
    may_lag = bool(lags) and min(lags) > 0
    if are_copied and may_lag:
        return None
    if len(against) < _MIN_TIMES:
        return None
    fitting = list_fitting_zones(offsets)
    if not fitting:
        return None
    declared = {_declared_offset(offset, zone) for offset in against}
    lag = units.format_duration(max(lags))
    copied = f", fileTimes: copied if these files are copies made {lag} later" if may_lag else ""
    return (
        f"the writers are at {format_offsets(offset.seconds for offset in against)} by the times "
        f"of the timeline's files, but timezone: {name} is {format_offsets(declared)}; "
        f"{propose_zones(fitting)}{copied}, or correct the writers' clock"
    )


def propose_zones(zones: Sequence[str]) -> str:
    """Return which zone to declare, and others that fit.

    >>> propose_zones(["UTC"]), propose_zones(["Europe/Berlin", "Africa/Lagos"])
    ('declare timezone: UTC', 'declare timezone: Europe/Berlin (Africa/Lagos fits too)')
    """
    first, *rest = zones
    verb = "fits" if len(rest) == 1 else "fit"
    others = f" ({' and '.join(rest)} {verb} too)" if rest else ""
    return f"declare timezone: {first}{others}"


def format_offsets(seconds: Iterable[int]) -> str:
    """Format offsets from UTC.

    >>> format_offsets([0]), format_offsets([19800]), format_offsets([7200, 3600, 7200])
    ('UTC', 'UTC+05:30', 'UTC+01:00 and UTC+02:00')
    """
    return " and ".join(map(_format_offset, sorted(set(seconds))))


def _format_offset(seconds: int) -> str:
    if not seconds:
        return "UTC"
    hours, rest = divmod(abs(seconds), 3600)
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02}:{rest // 60:02}"


def _declared_offset(offset: ObservedOffset, zone: tzinfo) -> int:
    return _offset_seconds(offset.local_time.replace(tzinfo=zone))


def _offset_seconds(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None, "the moment has a zone"
    return round(offset.total_seconds())
