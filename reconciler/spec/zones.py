"""Names of time zones: which are valid, and which are meant by an abbreviation. Pure."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from typing import Final

from reconciler.errors import did_you_mean, quote_value

FREQUENT_ZONES: Final = (
    "UTC", "Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Moscow", "Asia/Dubai",
    "Asia/Karachi", "Asia/Kolkata", "Asia/Dhaka", "Asia/Bangkok", "Asia/Shanghai", "Asia/Tokyo",
    "Australia/Sydney", "Pacific/Auckland", "America/Sao_Paulo", "America/New_York",
    "America/Chicago", "America/Denver", "America/Los_Angeles",
)  # fmt: skip
"""Zones to propose before others."""

_MACHINE_ZONES: Final = frozenset(("localtime", "local", "posixrules", "Factory", "system"))
_MAX_LENGTH: Final = 100
#: a day in the winter and in the summer of either half of the earth
_DAYS: Final = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))


def find_zone_problem(text: str) -> str | None:
    """Check for a name of the IANA zone database that means the same on every machine.

    >>> find_zone_problem("Europe/Berlin"), find_zone_problem("UTC")
    (None, None)
    >>> find_zone_problem("Europe/Berln")
    "'Europe/Berln' is not a time zone; did you mean 'Europe/Berlin'?"
    >>> find_zone_problem("CEST")
    "'CEST' is an abbreviation, not the name of a time zone; write the zone, such as Europe/Berlin"
    """
    if text in _MACHINE_ZONES:
        return f"{quote_value(text)} differs from machine to machine; write the name of the zone"
    if len(text) <= _MAX_LENGTH and _is_zone(text):
        return None
    if zones := _find_by_abbreviation(text):
        problem = f"{quote_value(text)} is an abbreviation, not the name of a time zone"
        return f"{problem}; write the zone, such as {' or '.join(zones)}"
    problem = f"{quote_value(text)} is not a time zone"
    if close := _find_close_name(text):
        return f"{problem}; did you mean {close!r}?"
    return f"{problem}; write a name such as America/New_York or UTC"


def _is_zone(text: str) -> bool:
    if text.startswith(("posix/", "right/")):
        return False
    try:
        zoneinfo.ZoneInfo(text)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return True


def _find_close_name(text: str) -> str | None:
    """Return the zone that is meant; one letter of a short name may be another zone.

    >>> [_find_close_name(text) for text in ("utc", "New York", "EDST", "GMT+1", "Amrica/Denver")]
    ['UTC', 'America/New_York', None, None, 'America/Denver']
    """
    names = zoneinfo.available_timezones() - _MACHINE_ZONES
    if "/" in text:
        return did_you_mean(text, names)
    names = {name for name in names if not name.startswith("Etc/")}  # with the sign reversed
    plain = text.strip().lower().replace(" ", "_")
    same = [name for name in names if plain in (name.lower(), name.lower().rpartition("/")[2])]
    return min(same, key=lambda name: (name.lower() != plain, name), default=None)


def _find_by_abbreviation(text: str) -> list[str]:
    """Return the frequent zones whose clocks have an abbreviation, if it is no zone itself.

    >>> _find_by_abbreviation("PDT"), _find_by_abbreviation("CST"), _find_by_abbreviation("EDST")
    (['America/Los_Angeles'], ['Asia/Shanghai', 'America/Chicago'], [])
    """
    abbreviation = text.upper()
    if abbreviation in FREQUENT_ZONES:
        return []
    return [
        name
        for name in FREQUENT_ZONES
        if any(day.astimezone(zoneinfo.ZoneInfo(name)).tzname() == abbreviation for day in _DAYS)
    ]
