"""Dates in partition paths."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reconciler.spec.partition_dates import compile_date_pattern, find_date_pattern_problem


def text_of(pattern, path):
    period = compile_date_pattern(pattern).find_period(path)
    return None if period is None else period.text


@pytest.mark.parametrize(
    ("pattern", "path", "text"),
    [
        ("dt=%Y-%m-%d", "dt=2026-01-31", "2026-01-31"),
        ("%Y/%m/%d", "2026/01/31", "2026-01-31"),
        ("year=%Y/month=%m/day=%d", "year=2026/month=1/day=9", "2026-01-09"),
        ("%Y%m%d", "20260131", "2026-01-31"),
        ("%Y%m%d%H", "2026013107", "2026-01-31T07"),
        ("dt=%Y-%m-%d/h=%H", "dt=2026-01-31/h=7", "2026-01-31T07"),
        ("y=%Y", "y=2026", "2026"),
        ("year=%Y/dt=%Y-%m-%d", "year=2026/dt=2026-01-31", "2026-01-31"),
        ("region=*/dt=%Y-%m-%d", "region=eu/dt=2026-01-31", "2026-01-31"),
        ("a.b=%Y", "a.b=2026", "2026"),
        ("p=%%%Y", "p=%2026", "2026"),
    ],
)
def test_a_path_of_the_pattern_has_a_date(pattern, path, text):

    assert text == text_of(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("dt=%Y-%m-%d", "dt=2026-02-30"),
        ("dt=%Y-%m-%d", "dt=2026-13-01"),
        ("dt=%Y-%m-%d", "dt=2026-01-31/h=1"),
        ("dt=%Y-%m-%d", "x/dt=2026-01-31"),
        ("dt=%Y-%m-%d", "dt=__HIVE_DEFAULT_PARTITION__"),
        ("dt=%Y-%m-%d", "dt=0000-01-01"),
        ("dt=%Y-%m-%d", "dt=2026-01-31\n"),
        ("dt=%Y-%m-%d", "dt=\u0662\u0660\u0662\u0666-01-31"),
        ("year=%Y/dt=%Y-%m-%d", "year=2025/dt=2026-01-31"),
        ("region=*/y=%Y", "region=a/b/y=2026"),
        ("a.b=%Y", "axb=2026"),
        ("%Y%m%d", "2026131"),
        ("dt=%Y-%m-%d/h=%H", "dt=2026-01-31/h=24"),
    ],
)
def test_another_path_has_none(pattern, path):

    assert text_of(pattern, path) is None


@pytest.mark.parametrize(
    ("pattern", "path", "end"),
    [
        ("%Y", "2026", "2027-01-01T00:00:00"),
        ("%Y-%m", "2026-12", "2027-01-01T00:00:00"),
        ("%Y-%m-%d", "2028-02-28", "2028-02-29T00:00:00"),
        ("%Y-%m-%d-%H", "2026-12-31-23", "2027-01-01T00:00:00"),
        ("%Y-%m-%d", "9999-12-31", "9999-12-31T23:00:00"),
        ("%Y", "9999", "9999-12-31T23:00:00"),
    ],
)
def test_a_period_ends_when_the_next_one_begins(pattern, path, end):

    assert end == compile_date_pattern(pattern).find_period(path).end.isoformat()


def test_of_an_hour_that_occurs_twice_the_later_end_counts():
    period = compile_date_pattern("%Y-%m-%d-%H").find_period("2026-10-25-01")

    end = datetime.fromtimestamp(period.find_end_s(ZoneInfo("Europe/Berlin")), UTC)
    assert datetime(2026, 10, 25, 1, tzinfo=UTC) == end


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lastcommit", "did you mean 'lastCommit'"),
        ("dt", "has no date"),
        ("%m-%d", "has a day (%d) without a year (%Y)"),
        ("%Y-%d", "has a day (%d) without a month (%m)"),
        ("%Y-%m-%H", "has an hour (%H) without a day (%d)"),
        ("%Y-%b", "%b is no part of a date; write %Y (year)"),
        ("%Y%", "% is no part of a date"),
        ("/dt=%Y", "starts or ends with '/'"),
        ("dt=%Y/", "starts or ends with '/'"),
        ("*%Y", "* next to a date"),
    ],
)
def test_a_wrong_pattern_is_explained(text, problem):

    assert problem in find_date_pattern_problem(text)
