from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from reconciler.errors import UsageError
from reconciler.reader.model import ReadRequest
from reconciler.reader.request import ReadArguments, parse_instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20260131040000123", "20260131040000123"),
        ("20260131040000", "20260131040000"),
        ("000", "000"),
        ("2026-01-31", "20260131000000000"),
        ("2026-01-31 04:00:00", "20260131040000999"),
        ("2026-01-31 04:00:00.0", "20260131040000000"),
        ("2026-01-31 04:00", "20260131040000000"),
        ("2026-01-31 04:00:00.123", "20260131040000123"),
        ("2026-01-31T04:00:00.999999", "20260131040000999"),
    ],
)
def test_a_time_of_the_timelines_zone_is_an_instant(text, instant):

    assert instant == parse_instant(text, None, "as of")


def test_a_time_with_an_offset_needs_the_zone_of_the_timeline():
    asked = ReadArguments(as_of="2026-01-31T04:00:00+01:00")

    assert asked.needs_zone
    assert "20260131030000999" == asked.to_request(UTC).as_of
    assert "20260130220000999" == asked.to_request(ZoneInfo("America/New_York")).as_of
    with pytest.raises(UsageError, match="does not declare the zone of its timeline"):
        asked.to_request()


@pytest.mark.parametrize("text", ["2026-01-31", "20260131040000000", "2026-01-31 04:00:00.123"])
def test_a_time_without_one_does_not(text):

    assert not ReadArguments(as_of=text).needs_zone


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2026", "20260131", "2026-W05-6", "2026-02-30", "202601310400001"]
)
def test_what_is_no_time_is_refused_with_the_ways_to_write_one(text):
    with pytest.raises(UsageError, match="not a valid instant or time; write 2026") as raised:
        parse_instant(text, None, "as of")

    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ReadArguments(kind="latest"), "must be one of snapshot, readOptimized, incremental"),
        (ReadArguments(kind="incremental"), "needs begin"),
        (
            ReadArguments(kind="incremental", begin="000", as_of="20260131040000"),
            "cannot have as of",
        ),
        (
            ReadArguments(kind="incremental", begin="20260201000000000", end="2026-01-31"),
            "is after its end",
        ),
        (ReadArguments(begin="000"), "begin and end need kind incremental"),
        (ReadArguments(end="000"), "begin and end need kind incremental"),
        (ReadArguments(columns=()), "name at least one"),
        (ReadArguments(columns=("a", "b", "a")), "a is named twice"),
    ],
)
def test_what_contradicts_itself_is_refused(asked, said):
    with pytest.raises(UsageError, match=said):
        asked.to_request()


def test_what_is_asked_becomes_a_request():
    asked = ReadArguments(kind="incremental", begin="000", end="2026-01-31", columns=["b", "a"])

    assert asked.to_request() == ReadRequest(
        kind="incremental", begin="000", end="20260131000000000", columns=("b", "a")
    )
