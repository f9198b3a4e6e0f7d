"""Parse dates and times exactly as Spark does; None for any text that Spark might read differently.

Source: Spark's SparkDateTimeUtils (stringToDate, parseTimestampString), and java.time for zones.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.index.zone_rules import ZoneRules

#: the time zone of a session: the rules of its Java, or only the name without a session
SessionZone = str | ZoneRules

_DAY: Final = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.DOTALL | re.ASCII
)
_TIME: Final = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?\s*"
    r"(Z|UTC|[+-]\d\d:\d\d|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+)?)?)?)?\Z",
    re.ASCII,
)
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)\Z", re.ASCII)
_FIRST: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ABOUT_A_DAY: Final = timedelta(hours=25)
_MICRO: Final = timedelta(microseconds=1)
_MICROS: Final = 1_000_000
MICROS_A_DAY: Final = 86_400_000_000
_MAX_OFFSET: Final = 18 * 60


def parse_days(text: str) -> int | None:
    """Return the days since 1970-01-01 of a text that Spark casts to a date.

    >>> parse_days("1970-01-02"), parse_days("1970-1-3T12:00"), parse_days("2 Jan")
    (1, 2, None)
    """
    match = _DAY.match(text.strip(" "))
    if match is None:
        return None
    try:
        return (date(int(match[1]), int(match[2] or 1), int(match[3] or 1)) - _FIRST).days
    except ValueError:
        return None


def parse_local_micros(text: str) -> int | None:
    """Return the microseconds since 1970 of a time without zone; None if the text names a zone."""
    parsed = _parse_time(text)
    if parsed is None or parsed[1]:
        return None
    return (parsed[0].replace(tzinfo=UTC) - _EPOCH) // _MICRO


def parse_micros(text: str, zone: SessionZone) -> int | None:
    """Return the microseconds since 1970 in UTC of a time in its own zone, else in ``zone``.

    None if the text names a region and ``zone`` has Java's rules: Python's rules may differ.

    >>> parse_micros("1970-01-01 00:00:01", "UTC"), parse_micros("1970-01-01 00:00 +01:00", "UTC")
    (1000000, -3600000000)
    """
    parsed = _parse_time(text)
    if parsed is None:
        return None
    local, named = parsed
    if isinstance(zone, ZoneRules) and isinstance(_find_zone(named), ZoneInfo):
        return None
    return _to_instant(local, named or zone)


def day_start(days: int, zone: SessionZone) -> int | None:
    """Return when a day begins in a zone, in microseconds since 1970 in UTC."""
    if isinstance(zone, ZoneRules):
        return zone.day_start(days)
    place = _find_zone(zone)
    if isinstance(place, timezone):
        return days * MICROS_A_DAY - place.utcoffset(None) // _MICRO
    try:
        begin = datetime.combine(_FIRST + timedelta(days=days), datetime.min.time())
    except OverflowError:
        return None
    return _to_instant(begin, zone)


def unambiguous_day_start(days: int, zone: SessionZone) -> int | None:
    """Return when a day begins, if everything before is an earlier day and nothing after is.

    None if the zone changes its offset near that time, which may repeat a day or begin it later.
    """
    begin = day_start(days, zone)
    if begin is None:
        return None
    if isinstance(zone, ZoneRules):
        second, about = begin // _MICROS, _ABOUT_A_DAY // timedelta(seconds=1)
        return begin if zone.offset_at(second - about) == zone.offset_at(second + about) else None
    place = _find_zone(zone)
    if place is None:
        return None
    try:
        around = [_EPOCH + begin * _MICRO + side for side in (-_ABOUT_A_DAY, _ABOUT_A_DAY)]
        offsets = {moment.astimezone(place).utcoffset() for moment in around}
    except OverflowError:
        return None
    return begin if len(offsets) == 1 else None


def find_days_around(micros: int, zone: SessionZone) -> tuple[int, int] | None:
    """Return the first day that begins at an instant or later, and the first that begins later.

    >>> find_days_around(0, "UTC"), find_days_around(1, "UTC")
    ((0, 1), (1, 1))
    """
    day = micros // MICROS_A_DAY
    begins = [(at, day_start(at, zone)) for at in range(day - 2, day + 4)]
    known = [(at, begin) for at, begin in begins if begin is not None]
    if len(known) < len(begins):
        return None
    from_then = next(at for at, begin in known if begin >= micros)
    return from_then, next(at for at, begin in known if begin > micros)


def find_local_micros(micros: int, zone: SessionZone) -> int | None:
    """Return what the clocks of a zone show at an instant, as microseconds since 1970."""
    if isinstance(zone, ZoneRules):
        return micros + zone.offset_at(micros // _MICROS) * _MICROS
    local = _to_local(micros, zone)
    return None if local is None else (local.replace(tzinfo=UTC) - _EPOCH) // _MICRO


def find_instants(local_micros: int, zone: SessionZone) -> tuple[int, ...] | None:
    """Return all instants of a local time: two if it is repeated, none if it is skipped.

    All are microseconds since 1970. None if Java may differ.

    >>> find_instants(0, "+01:00")
    (-3600000000,)
    """
    if isinstance(zone, ZoneRules):
        return zone.find_instants(local_micros)
    local = _EPOCH.replace(tzinfo=None) + local_micros * _MICRO
    instants = {_to_instant(local.replace(fold=fold), zone) for fold in (0, 1)}
    known = [(at, _to_local(at, zone)) for at in instants if at is not None]
    if len(known) < len(instants) or None in dict(known).values():
        return None
    return tuple(sorted(at for at, shown in known if shown == local))


def write_day(days: int) -> str:
    """Return the text to which Spark casts a date.

    >>> write_day(0)
    '1970-01-01'
    """
    return (_FIRST + timedelta(days=days)).isoformat()


def write_local_micros(micros: int) -> str:
    """Return the text to which Spark casts a time without zone.

    >>> write_local_micros(0), write_local_micros(1_500_000)
    ('1970-01-01 00:00:00', '1970-01-01 00:00:01.5')
    """
    text = (_EPOCH.replace(tzinfo=None) + micros * _MICRO).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def _parse_time(text: str) -> tuple[datetime, str] | None:
    """Return the local time and the zone that a text names."""
    match = _TIME.match(text.strip(" "))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int((fraction or "0").ljust(6, "0"))
    date_part = (int(year), int(month or 1), int(day or 1))
    time_part = (int(hour or 0), int(minute or 0), int(second or 0), micros)
    try:
        return datetime(*date_part, *time_part), zone or ""  # noqa: DTZ001 - a local time
    except ValueError:
        return None


def _to_instant(local: datetime, zone: SessionZone) -> int | None:
    """Return the instant of a local time in microseconds; None if Java may differ.

    Java and Python agree on repeated and on skipped local times. They may disagree on the rules of
    a region before 1970.
    """
    if isinstance(zone, ZoneRules):
        return zone.to_instant((local.replace(tzinfo=UTC) - _EPOCH) // _MICRO)
    place = _find_zone(zone)
    if place is None or (isinstance(place, ZoneInfo) and local.year <= _FIRST.year):
        return None
    try:
        return (local.replace(tzinfo=place) - _EPOCH) // _MICRO
    except OverflowError:
        return None


def _to_local(micros: int, zone: str) -> datetime | None:
    """Return the local time of an instant; None if Java may differ."""
    place = _find_zone(zone)
    try:
        local = None if place is None else (_EPOCH + micros * _MICRO).astimezone(place)
    except OverflowError:
        return None
    if local is None or (isinstance(place, ZoneInfo) and local.year <= _FIRST.year):
        return None
    return local.replace(tzinfo=None)


@lru_cache(maxsize=64)
def _find_zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "Etc/UTC", "GMT"):
        return UTC
    if match := _OFFSET.match(name):
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes > _MAX_OFFSET or int(match[3]) > 59:  # noqa: PLR2004 - minutes an hour
            return None
        return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(name) if "/" in name else None
    except (KeyError, ValueError, OSError):
        return None
