"""Days and instants that text stands for, where Spark and this agree beyond doubt; else None.

Source: Spark's SparkDateTimeUtils (stringToDate, parseTimestampString), and java.time for zones.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.index.zone_rules import ZoneRules

#: of a session: what its Java says, or the name alone where there is none to ask
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
_MOST_OFFSET: Final = 18 * 60


def parse_days(text: str) -> int | None:
    """Days since 1970-01-01 of a text that Spark casts to a date.

    >>> days_of("1970-01-02"), days_of("1970-1-3T12:00"), days_of("2 Jan")
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
    """Microseconds since 1970 of a time without a zone; None where the text names one."""
    found = _parse_time(text)
    if found is None or found[1]:
        return None
    return (found[0].replace(tzinfo=UTC) - _EPOCH) // _MICRO


def parse_micros(text: str, zone: SessionZone) -> int | None:
    """Microseconds since 1970 in UTC of a time in its own zone, else in ``zone``.

    What places the text may name Java knows otherwise than this, so they are not known beside it.

    >>> micros_of("1970-01-01 00:00:01", "UTC"), micros_of("1970-01-01 00:00 +01:00", "UTC")
    (1000000, -3600000000)
    """
    found = _parse_time(text)
    if found is None:
        return None
    local, named = found
    if isinstance(zone, ZoneRules) and isinstance(_find_zone(named), ZoneInfo):
        return None
    return _to_instant(local, named or zone)


def day_start(days: int, zone: SessionZone) -> int | None:
    """When a day begins in a zone, in microseconds since 1970 in UTC."""
    if isinstance(zone, ZoneRules):
        return zone.day_start(days)
    try:
        begin = datetime.combine(_FIRST + timedelta(days=days), datetime.min.time())
    except OverflowError:
        return None
    return _to_instant(begin, zone)


def unambiguous_day_start(days: int, zone: SessionZone) -> int | None:
    """The same where all before it is an earlier day, and nothing after it is.

    Clocks that are set about then may show a day twice, or begin it later.
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
    """The first day that begins at an instant or later, and the first that begins later.

    >>> days_around(0, "UTC"), days_around(1, "UTC")
    ((0, 1), (1, 1))
    """
    day = micros // MICROS_A_DAY
    begins = [(at, day_start(at, zone)) for at in range(day - 2, day + 4)]
    known = [(at, begin) for at, begin in begins if begin is not None]
    if len(known) < len(begins):
        return None
    from_then = next(at for at, begin in known if begin >= micros)
    return from_then, next(at for at, begin in known if begin > micros)


def _parse_time(text: str) -> tuple[datetime, str] | None:
    """A time as clocks show it, and the zone it names."""
    match = _TIME.match(text.strip(" "))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int((fraction or "0").ljust(6, "0"))
    date_part = (int(year), int(month or 1), int(day or 1))
    time_part = (int(hour or 0), int(minute or 0), int(second or 0), micros)
    try:
        return datetime(*date_part, *time_part), zone or ""  # noqa: DTZ001 - as clocks show it
    except ValueError:
        return None


def _to_instant(local: datetime, zone: SessionZone) -> int | None:
    """Java and Python agree on the first of two instants and on times that clocks skip.

    They need not agree on the clocks of a place before 1970, nor quite on those after.
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


@lru_cache(maxsize=64)
def _find_zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "Etc/UTC", "GMT"):
        return UTC
    if match := _OFFSET.match(name):
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes > _MOST_OFFSET or int(match[3]) > 59:  # noqa: PLR2004 - minutes an hour
            return None
        return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(name) if "/" in name else None
    except (KeyError, ValueError, OSError):
        return None
