"""Which zone the times of a timeline's files show, and when they contradict the declared one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.plans.refusals import format_instant, refuse_by_state
from reconciler.plans.timeline_zone import (
    find_contradiction,
    list_fitting_zones,
    observe_offsets,
)
from reconciler.spec.model import Policy, Retention, TableSpec
from tests.selection import examples
from tests.unit.planners.cow import upserts

WINTER = datetime(2026, 1, 15, 12, tzinfo=UTC)
SUMMER = datetime(2026, 7, 15, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 25, 1, tzinfo=UTC)
"""When clocks in Europe go from 03:00 back to 02:00."""
ZONES = (
    "UTC",
    "Europe/Berlin",
    "Asia/Kolkata",
    "America/New_York",
    "America/St_Johns",
    "Asia/Tokyo",
)


def make_timeline(files, action=Action.COMMIT):
    """Return the timeline of (instant, epoch seconds of its requested file)."""
    return Timeline.from_files(
        TimelineFile(Instant(name, action, State.REQUESTED), name, 1, int(at * 1000))
        for name, at in files
    )


def write_hourly(zone, start=WINTER, *, commits=12, minutes=60, delay=1.0):
    """Return (instant, epoch seconds) of writes whose machine is in a zone."""
    moments = [start + timedelta(minutes=minutes * n, seconds=17 * n) for n in range(commits)]
    return [(format_instant(at, ZoneInfo(zone)), at.timestamp() + delay) for at in moments]


def observe(files):
    return {offset.seconds for offset in observe_offsets(make_timeline(files))}


def contradict(files, declared):
    return find_contradiction(make_timeline(files), declared)


@pytest.mark.parametrize(
    ("zone", "start", "seconds"),
    [
        ("UTC", WINTER, {0}),
        ("Asia/Kolkata", WINTER, {19800}),
        ("America/New_York", SUMMER, {-14400}),
        ("Europe/Berlin", AUTUMN - timedelta(hours=6), {3600, 7200}),
    ],
)
def test_files_show_the_offset_of_their_writers(zone, start, seconds):
    assert observe(write_hourly(zone, start)) == seconds


@pytest.mark.parametrize("delay", [-59, 0, 118])
def test_a_clock_a_minute_apart_and_a_slow_store_change_nothing(delay):
    assert observe(write_hourly("Europe/Berlin", delay=delay)) == {3600}


@pytest.mark.parametrize("delay", [-300, 600, 1000, 20 * 24 * 3600 + 1000])
def test_files_at_no_half_hour_from_their_instants_show_nothing(delay):
    assert observe(write_hourly("UTC", delay=delay)) == set()


def test_a_copy_shows_nothing():
    files = write_hourly("UTC")
    end = files[-1][1]
    at_once = [(name, end + 3600) for name, _ in files]
    in_turn = [(name, end + 3600 + n) for n, (name, _) in enumerate(files)]
    quick = write_hourly("UTC", minutes=0)  # within three minutes, copied an hour later

    for copied in (at_once, in_turn, [(name, end + 7200) for name, _ in files[-3:]]):
        assert observe(copied) == set() or not list_fitting_zones(
            observe_offsets(make_timeline(copied))
        )
        assert contradict(copied, "Europe/Berlin") is None
    assert observe([(name, quick[-1][1] + 3600) for name, _ in quick]) == set()


def test_writes_since_a_copy_show_the_zone_again():
    before = [
        (name, WINTER.timestamp()) for name, _ in write_hourly("UTC", SUMMER.replace(year=2025))
    ]

    assert observe(before + write_hourly("UTC")) == {0}


def follow(files, lag, *, took=0):
    """Return the timeline of a replica: files of an instant are written at once, ``lag`` later."""
    found = []
    for name, at in files:
        end = datetime.strptime(name[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        completed = format_instant(end + timedelta(seconds=took), UTC)
        for state, done in ((State.REQUESTED, None), (State.COMPLETED, completed)):
            instant = Instant(name, Action.COMMIT, state, done)
            later = 1000 * (state is State.COMPLETED)
            found.append(
                TimelineFile(instant, f"{name}.{state}", 1, int((at + lag) * 1000) + later)
            )
    return Timeline.from_files(found)


@pytest.mark.parametrize("lag", [3600, 6 * 3600])
def test_a_replica_is_known_by_files_that_were_written_at_once(lag):
    """A write takes a minute; files of a copy of it do not."""
    writes = write_hourly("Asia/Tokyo")

    assert find_contradiction(follow(writes, lag, took=60), "Asia/Tokyo") is None
    assert find_contradiction(follow(writes, lag, took=3), "Asia/Tokyo") is not None


def test_long_writes_of_a_writer_show_its_zone_as_short_ones_do():
    files = write_hourly("UTC")
    slow = follow(files, 0, took=60)
    slow = Timeline.from_files(
        replace(file, modified_ms=file.modified_ms + 60_000 * file.instant.is_completed)
        for file in slow.files
    )

    assert find_contradiction(slow, "Europe/Berlin") is not None


def test_a_replica_that_nothing_tells_from_a_wrong_zone_is_declared():
    late = make_timeline([(name, at + 3600) for name, at in write_hourly("Europe/Berlin")])

    assert find_contradiction(late, "Europe/Berlin").endswith(
        "declare timezone: UTC (Europe/London fits too), fileTimes: copied if these files are "
        "copies made 1h later, or correct the writers' clock"
    )
    assert find_contradiction(late, "Europe/Berlin", are_copied=True) is None


def test_no_copy_is_earlier_than_its_source():
    """A zone west of the writers' is wrong, whatever was copied."""
    files = make_timeline(write_hourly("Europe/Berlin"))
    found = find_contradiction(files, "UTC", are_copied=True)

    assert "fileTimes" not in found
    assert found == find_contradiction(files, "UTC")


def test_too_few_writes_and_other_actions_show_nothing():
    assert observe(write_hourly("UTC", commits=2)) == set()
    assert observe([("001", WINTER.timestamp()), *write_hourly("UTC", commits=2)]) == set()
    assert observe([(name, 0) for name, _ in write_hourly("UTC")]) == set()
    cleans = make_timeline(write_hourly("UTC"), Action.CLEAN)
    assert observe_offsets(cleans) == ()


def test_a_zone_east_of_the_writers_is_contradicted_with_what_fits():
    assert contradict(write_hourly("UTC"), "Europe/Berlin") == (
        "the writers are at UTC by the times of the timeline's files, but timezone: Europe/Berlin "
        "is UTC+01:00; declare timezone: UTC (Europe/London fits too), fileTimes: copied if these "
        "files are copies made 1h later, or correct the writers' clock"
    )


def test_a_zone_of_the_same_offset_is_not_contradicted_before_clocks_change():
    winter, summer = write_hourly("UTC"), write_hourly("UTC", SUMMER)

    assert contradict(winter, "Europe/London") is None
    assert contradict(summer, "Europe/London") is not None


def test_a_change_of_the_clock_contradicts_nobody():
    change = write_hourly("Europe/Berlin", AUTUMN - timedelta(hours=3), minutes=30)

    assert contradict(change, "Europe/Berlin") is None
    assert contradict(change, "UTC") is not None


def test_two_odd_files_contradict_nothing():
    files = write_hourly("UTC", commits=10)
    late = [
        (name, at + 3600) for name, at in write_hourly("UTC", WINTER + timedelta(days=1), commits=2)
    ]

    assert contradict(files + late, "UTC") is None


@given(
    writers=st.sampled_from(ZONES),
    declared=st.sampled_from(ZONES),
    start=st.integers(0, 9 * 366 * 24).map(lambda hours: WINTER - timedelta(hours=hours)),
    minutes=st.integers(1, 3000),
)
@settings(max_examples=examples(30, many=2000))
def test_only_another_offset_is_contradicted(writers, declared, start, minutes):
    files = write_hourly(writers, start, minutes=minutes)
    moments = [start + timedelta(minutes=minutes * n) for n in range(12)]
    differ = [
        moment.astimezone(ZoneInfo(writers)).utcoffset()
        != moment.astimezone(ZoneInfo(declared)).utcoffset()
        for moment in moments
    ]

    if not any(differ):
        assert contradict(files, declared) is None
    if all(differ):
        assert contradict(files, declared) is not None
    assert contradict(files, writers) is None
    copied = [(name, files[-1][1] + 3600) for name, _ in files]
    assert contradict(copied, declared) is None


def refuse(timezone, files, recorded=None, file_times=None):
    state = replace(upserts(5), timezone=recorded, timeline=make_timeline(files))
    hours = Retention(policy=Policy.HOURS, keep=24)
    spec = TableSpec(name="t", path="/t", retention=hours, timezone=timezone)
    spec = replace(spec, file_times=file_times)
    return refuse_by_state(spec, state, WINTER + timedelta(days=1))


def test_a_contradicted_zone_is_refused_as_a_clock():
    [note] = refuse("Europe/Berlin", write_hourly("UTC"))

    assert note.rule == "clock"
    assert refuse("UTC", write_hourly("UTC")) == ()
    assert refuse("Europe/Berlin", write_hourly("UTC"), file_times="copied") == ()


def test_a_name_that_is_no_time_is_named_and_blames_no_clock():
    [note] = refuse("UTC", [*write_hourly("UTC"), ("29991199999999999", 1.0)], file_times="copied")

    assert note.rule == "clock"
    assert note.because.startswith("the name of the timeline file 29991199999999999")
    assert "is no time" in note.because
    assert "timezone" not in note.because

    [late] = refuse("UTC", [*write_hourly("UTC"), ("29991130999999", 1.0)], file_times="copied")
    assert "is no time" in late.because
    [late] = refuse("UTC", [*write_hourly("UTC"), ("29991130101010999", 1.0)], file_times="copied")
    assert "is later than now" in late.because
    assert refuse("UTC", [*write_hourly("UTC"), ("00000000000000", 1.0)]) == ()


def test_a_zone_that_the_table_records_is_not_doubted():
    assert refuse("Europe/Berlin", write_hourly("Asia/Tokyo"), recorded="UTC") == ()


def test_a_missing_zone_is_proposed_by_what_the_files_show():
    [note] = refuse(None, write_hourly("America/New_York"))
    [unknown] = refuse(None, [(name, 1) for name, _ in write_hourly("UTC")])

    assert note.because.endswith(
        "UTC-05:00 by the times of its files; declare timezone: America/New_York"
    )
    assert unknown.because.endswith("with their zone, such as UTC or America/New_York")
