"""Zone rules; all expected values come from java.time."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from reconciler.index.zone_rules import YearlyRule, ZoneRules

PRAGUE = ZoneRules.from_java(
    3464,
    "[Transition[Gap at 1891-10-01T00:00+00:57:44 to +01:00], "
    "Transition[Overlap at 1996-10-27T03:00+02:00 to +01:00]]",
    (
        YearlyRule(3, -1, 7, 3600, "UTC", 3600, 3600, 7200),
        YearlyRule(10, -1, 7, 3600, "UTC", 3600, 7200, 3600),
    ),
)
TORONTO = ZoneRules.from_java(
    -18_000,
    "[Transition[Gap at 1919-03-30T23:30-05:00 to -04:00], "
    "Transition[Overlap at 2006-10-29T02:00-04:00 to -05:00]]",
    (
        YearlyRule(3, 8, 7, 7200, "WALL", -18_000, -18_000, -14_400),
        YearlyRule(11, 1, 7, 7200, "WALL", -18_000, -14_400, -18_000),
    ),
)
KOLKATA = ZoneRules.from_java(19_800, "[]")


def micros(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("clocks", "local", "instant"),
    [
        (KOLKATA, "0001-01-01T05:30:00", "0001-01-01T00:00:00"),
        (PRAGUE, "1891-09-30T23:59:59", "1891-09-30T23:02:15"),
        (PRAGUE, "1891-10-01T00:01:00", "1891-09-30T23:03:16"),
        (PRAGUE, "1891-10-01T00:02:16", "1891-09-30T23:02:16"),
        (PRAGUE, "2024-03-31T02:30:00", "2024-03-31T01:30:00"),
        (PRAGUE, "2024-10-27T02:30:00", "2024-10-27T00:30:00"),
        (PRAGUE, "2024-10-27T03:00:00", "2024-10-27T02:00:00"),
        (PRAGUE, "2407-07-01T12:00:00", "2407-07-01T10:00:00"),
        (PRAGUE, "9999-12-31T23:59:59", "9999-12-31T22:59:59"),
        (PRAGUE, "9999-07-31T23:59:59", "9999-07-31T21:59:59"),
        (TORONTO, "2024-03-10T01:59:59", "2024-03-10T06:59:59"),
        (TORONTO, "2024-03-10T03:00:00", "2024-03-10T07:00:00"),
        (TORONTO, "2024-11-03T01:30:00", "2024-11-03T05:30:00"),
        (TORONTO, "2024-11-03T02:00:00", "2024-11-03T07:00:00"),
    ],
)
def test_local_time_is_converted_to_an_instant(clocks, local, instant):

    assert micros(instant) == clocks.to_instant(micros(local))


@pytest.mark.parametrize(
    ("clocks", "local", "instants"),
    [
        (KOLKATA, "0001-01-01T05:30:00", ["0001-01-01T00:00:00"]),
        (PRAGUE, "1891-10-01T00:01:00", []),
        (PRAGUE, "1891-10-01T00:02:16", ["1891-09-30T23:02:16"]),
        (PRAGUE, "2024-03-31T01:59:59", ["2024-03-31T00:59:59"]),
        (PRAGUE, "2024-03-31T02:30:00", []),
        (PRAGUE, "2024-03-31T03:00:00", ["2024-03-31T01:00:00"]),
        (PRAGUE, "2024-10-27T01:59:59", ["2024-10-26T23:59:59"]),
        (PRAGUE, "2024-10-27T02:30:00", ["2024-10-27T00:30:00", "2024-10-27T01:30:00"]),
        (PRAGUE, "2024-10-27T03:00:00", ["2024-10-27T02:00:00"]),
        (PRAGUE, "9999-10-31T02:30:00", ["9999-10-31T00:30:00", "9999-10-31T01:30:00"]),
        (TORONTO, "2024-03-10T02:30:00", []),
        (TORONTO, "2024-11-03T01:30:00", ["2024-11-03T05:30:00", "2024-11-03T06:30:00"]),
    ],
)
def test_local_time_has_no_instant_if_skipped_and_two_if_repeated(clocks, local, instants):

    assert list(map(micros, instants)) == list(clocks.find_instants(micros(local)))


def test_day_with_skipped_midnight_begins_at_the_change():
    """Local time went from half past eleven to half past midnight."""
    begins = TORONTO.day_start((date(1919, 3, 31) - date(1970, 1, 1)).days)

    assert micros("1919-03-31T04:30:00") == begins
    assert begins < TORONTO.to_instant(micros("1919-03-31T00:00:00"))


def test_rules_repeat_after_the_last_change():
    """The year 9999 is like 2399."""
    last, same = (int(micros(f"{year}-07-01T00:00:00") / 1e6) for year in (9999, 2399))

    assert 7200 == PRAGUE.offset_at(last) == PRAGUE.offset_at(same)


def test_invalid_list_of_changes_is_an_error():
    with pytest.raises(ValueError, match="Transition"):
        ZoneRules.from_java(0, "[Transition[Leap at 1970-01-01T00:00Z to +01:00]]")
