"""Dates and times of a spec, such as ``2026-12-31`` and ``2026-12-31T23:59:59Z``."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.errors import quote_value

#: characters of a date without a time
_DATE_LENGTH: Final = len("2026-12-31")


def parse_moment(text: str, zone: tzinfo | None) -> datetime:
    """Return the time that a text names: a date is the end of that day.

    ``zone``: of dates, and of times without an offset. Raises ValueError for other text.

    >>> parse_moment("2026-12-31", UTC).isoformat()
    '2027-01-01T00:00:00+00:00'
    >>> parse_moment("2026-12-31T23:59:59+01:00", UTC).isoformat()
    '2026-12-31T23:59:59+01:00'
    """
    if len(text) == _DATE_LENGTH:
        following = date.fromisoformat(text) + timedelta(days=1)
        return datetime.combine(following, time(), zone)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def find_moment_problem(text: str) -> str | None:
    """Check a date or time.

    >>> find_moment_problem("2026-02-28T12:00")
    >>> find_moment_problem("2026-02-30")
    "'2026-02-30' is not a valid date or time"
    """
    try:
        parse_moment(text, UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return f"{quote_value(text)} is not a valid date or time"
    return None


def may_be_after(later: str, earlier: str, zone: str | None) -> bool:
    """Return whether a time is after another one, or may be; ``zone``: None if it is unknown.

    >>> may_be_after("2026-12-31", "2026-12-31T12:00", None)
    True
    >>> may_be_after("2026-12-31T12:00Z", "2026-12-31", "UTC")
    False
    """
    first, second = (parse_moment(text, None) for text in (later, earlier))
    if (first.tzinfo is None) != (second.tzinfo is None):
        if zone is None:
            return True
        first, second = (parse_moment(text, ZoneInfo(zone)) for text in (later, earlier))
    return first > second
