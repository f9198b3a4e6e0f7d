"""New instant times only ever grow, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reconciler.errors import BlockedError
from reconciler.transaction.instants import choose_instant, format_instant

NEW_YORK = ZoneInfo("America/New_York")


def parse_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_an_instant_shows_the_wall_clock_of_the_zone():
    assert format_instant(parse_ms("2026-11-21T05:11:51.388Z"), NEW_YORK) == "20261121001151388"
    assert format_instant(parse_ms("2026-11-21T05:11:51.388Z"), UTC) == "20261121051151388"


def test_the_hour_that_repeats_in_autumn_goes_on_after_the_newest():
    now = parse_ms("2026-11-01T06:10:00Z")  # 01:10 for the second time

    assert choose_instant("20261101015959999", now, NEW_YORK) == "20261101020000000"


def test_a_newest_instant_a_little_ahead_is_followed():
    now = parse_ms("2026-01-01T00:00:00Z")

    assert choose_instant("20260101000459000", now, UTC) == "20260101000459001"


def test_a_newest_instant_far_ahead_is_refused():
    with pytest.raises(BlockedError, match="5 minutes ahead"):
        choose_instant("20260101000501000", parse_ms("2026-01-01T00:00:00Z"), UTC)


@pytest.mark.parametrize("newest", ["99999999999999999", "20260199999999999"])
def test_a_newest_instant_that_is_no_time_blames_no_clock(newest):
    with pytest.raises(BlockedError, match=f"{newest} is no time; find out what wrote"):
        choose_instant(newest, parse_ms("2026-01-01T00:00:00Z"), UTC)


def test_a_time_of_seconds_precision_counts_as_the_end_of_its_second():
    now = parse_ms("2026-01-01T00:00:00.500Z")

    assert choose_instant("20260101000000", now, UTC) == "20260101000001000"


def test_a_time_may_lie_back_but_not_before_the_newest():
    now, hour = parse_ms("2026-01-01T00:00:00Z"), 3_600_000

    assert choose_instant("20251231000000000", now, UTC, back_ms=hour) == "20251231230000000"
    assert choose_instant("20251231235959998", now, UTC, back_ms=hour) == "20251231235959999"
    assert choose_instant("20260101000459000", now, UTC, back_ms=hour) == "20260101000459001"
