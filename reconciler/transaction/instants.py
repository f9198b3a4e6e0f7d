"""Choose instant times: greater than everything on the timeline, in the timeline's zone.

Source: HoodieInstantTimeGenerator (``yyyyMMddHHmmssSSS``). Times are compared as strings, so the
rule that keeps them in order is the maximum, not the clock: a clock that is set back, or the hour
that repeats when summer time ends, only makes the next time one millisecond later than the newest.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from reconciler.errors import BlockedError

_DIGITS: Final = 17
_SECONDS_DIGITS: Final = 14
#: a timeline further ahead than this has another zone or a broken clock
AHEAD_LIMIT_MS: Final = 5 * 60_000


def format_instant(now_ms: int, zone: tzinfo) -> str:
    """Return the instant time of a moment.

    >>> format_instant(1_767_225_600_007, UTC)
    '20260101000000007'
    """
    moment = datetime.fromtimestamp(now_ms // 1000, UTC).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{now_ms % 1000:03d}"


def choose_instant(newest: str | None, now_ms: int, zone: tzinfo, *, back_ms: int = 0) -> str:
    """Return a time greater than ``newest``, the greatest requested or completion time there is.

    ``back_ms``: how long before now it may lie. Raises BlockedError when the newest is no
    time, or more than five minutes ahead of now in the zone.

    >>> choose_instant("20260101000000007", 1_767_225_600_007, UTC)
    '20260101000000008'
    >>> choose_instant("20251231235959", 1_767_225_600_007, UTC)
    '20260101000000007'
    >>> choose_instant("20251231235959000", 1_767_225_600_007, UTC, back_ms=60_000)
    '20251231235959001'
    """
    candidate = format_instant(now_ms - back_ms, zone)
    if newest is None or _pad(newest) < candidate:
        return candidate
    wall = _parse_wall_time(newest)
    if wall is None:
        raise BlockedError(
            f"the newest instant {newest} is no time; find out what wrote its timeline file, "
            "because no Hudi writer does, and remove the file if it is no write"
        )
    if _get_earliest_ms(wall, zone) - now_ms > AHEAD_LIMIT_MS:
        raise BlockedError(
            f"the newest instant {newest} is more than 5 minutes ahead of now "
            f"({format_instant(now_ms, zone)} in {zone}); check spec.timezone and the clocks of "
            "the table's writers"
        )
    later = wall + timedelta(milliseconds=1)
    return f"{later:%Y%m%d%H%M%S}{later.microsecond // 1000:03d}"


def parse_instant_ms(instant: str, zone: tzinfo) -> int:
    """Return the moment of an instant time in a zone, epoch milliseconds.

    Raises BlockedError for digits that are no time.

    >>> parse_instant_ms("20260101000000007", UTC)
    1767225600007
    """
    wall = _parse_wall_time(instant)
    if wall is None:
        raise BlockedError(f"{instant} is not a valid instant time")
    return _get_earliest_ms(wall, zone)


def _pad(instant: str) -> str:
    """Return a time of second precision as the last millisecond of it, as Hudi compares them."""
    return f"{instant}999" if len(instant) == _SECONDS_DIGITS else instant


def _parse_wall_time(instant: str) -> datetime | None:
    """Return the wall-clock time that an instant shows, None when it is no valid time."""
    digits = _pad(instant)[:_DIGITS]
    try:
        return datetime.strptime(f"{digits}000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007 (zone unknown yet)
    except ValueError:
        return None


def _get_earliest_ms(wall: datetime, zone: tzinfo) -> int:
    """Return the earlier moment of a wall-clock time: one hour repeats each autumn."""
    return int(wall.replace(tzinfo=zone, fold=0).timestamp() * 1000)
