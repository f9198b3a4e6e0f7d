"""What cleans kept is read back from what they left; Hudi's own numbers are the judge."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from reconciler.adopt.observed_retention import RetentionCandidate, observe_retention
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.state.model import CompletedClean
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.trees import unpack
from tests.unit.planners import cow

CASES = Path(__file__).parents[2] / "cases" / "clean"
TOLD = re.compile(r"clean \{.*'hoodie\.cleaner\.\w+\.retained': (\d+)\} -> \d+ @(\d+)")
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def seen(state, zone=UTC):
    return observe_retention(state, state.view, zone)


def kept(state, zone=UTC):
    return [candidate.keep for candidate in seen(state, zone).candidates]


def clean(instant, earliest="", last="", policy="KEEP_LATEST_COMMITS", removed=None):
    return CompletedClean(
        instant=instant,
        is_blank=False,
        policy=policy,
        earliest_instant_to_retain=earliest,
        last_completed_commit=last,
        savepointed=(),
        removed=removed or {},
        extra={},
    )


def after(hour):
    """The clean's instant in the hour after a commit."""
    return f"20240101{hour:02d}3000000"


def cleaned(count, *cleans, **more):
    return cow.upserts(count, cleans=cleans, **more)


def told_by_hudi():
    for folder in sorted(CASES.iterdir()):
        scenario = json.loads((folder / "scenario.json").read_text())
        for step in scenario.get("steps", ()):
            if (found := TOLD.match(step)) and "archived" not in folder.name:
                yield pytest.param(folder, int(found[1]), found[2], id=folder.name)


@pytest.mark.parametrize(("case", "told", "instant"), list(told_by_hudi()))
def test_what_is_seen_is_what_hudi_was_told(case, told, instant, tmp_path):
    unpack(case / "table.zip", tmp_path, hollow=True)
    state = observe(open_storage(str(tmp_path)), None, observed_ms=0)
    if [found.is_blank for found in state.cleans] == [True]:
        assert seen(state) is None  # the file that would tell was emptied by a crash
        return

    assert state.cleans[-1].instant == instant
    assert kept(state) == [told]


def test_cleans_that_agree_are_counted_and_named():
    state = cleaned(
        6,
        clean(after(3), cow.stamp(2), cow.stamp(3)),
        clean(after(4), cow.stamp(3), cow.stamp(4)),
        clean(after(5), cow.stamp(4), cow.stamp(5)),
    )
    found = seen(state)

    assert found.field == "commits"
    (said,) = found.findings
    assert said == (
        "The 3 cleans from 20240101033000000 to 20240101053000000 followed KEEP_LATEST_COMMITS and "
        "kept 2 commits each."
    )
    assert found.candidates == (RetentionCandidate(keep=2),)


def test_of_cleans_that_vary_the_widest_counts():
    state = cleaned(
        6,
        clean(after(4), cow.stamp(1), cow.stamp(4)),
        clean(after(5), cow.stamp(4), cow.stamp(5)),
    )
    found = seen(state)

    assert "kept 2 to 4 commits, the newest 2." in found.findings[0]
    assert found.candidates == (RetentionCandidate(keep=4, because="The widest is declared."),)


def test_what_a_write_in_progress_held_back_is_more_than_was_told():
    # commit 2 was still being written when the second clean looked
    instants = [cow.commit(hour) for hour in (0, 1, 3, 4, 5, 6)]
    late = Instant(cow.stamp(2), Action.COMMIT, State.COMPLETED, "20240101050000000")
    names = {"a": [cow.base("g", hour) for hour in range(7)]}
    state = cow.table(
        names,
        [*instants, late],
        cleans=(
            clean(after(1), cow.stamp(0), cow.stamp(1)),
            clean(after(4), cow.stamp(1), cow.stamp(4)),
        ),
    )
    found = seen(state)

    assert "kept 2 to 3 commits, the newest 3." in found.findings[0]
    assert [candidate.keep for candidate in found.candidates] == [2, 3]
    assert "no write in progress can have held back kept 2." in found.candidates[0].because


def test_a_commit_that_was_still_being_written_is_not_counted():
    late = Instant(cow.stamp(2), Action.COMMIT, State.COMPLETED, "20240101120000000")
    state = cow.table(
        {"a": [cow.base("g", hour) for hour in range(4)]},
        [cow.commit(0), cow.commit(1), late, cow.commit(3)],
        cleans=(clean(after(3), cow.stamp(0), cow.stamp(3)),),
    )

    assert kept(state) == [3]


def test_commits_that_are_archived_or_rolled_back_cannot_be_counted():
    archived = cleaned(3, clean(after(2), "20231231000000000", cow.stamp(2)))
    rolled_back = cleaned(3, clean(after(8), cow.stamp(1), cow.stamp(8)))

    assert kept(archived) == kept(rolled_back) == []
    assert "the commits that it kept are archived" in seen(archived).findings[0]


def test_some_of_many_cleans_tell():
    state = cleaned(
        4,
        clean(after(1), "20231231000000000", cow.stamp(1)),
        clean(after(3), cow.stamp(2), cow.stamp(3)),
    )

    assert "; 1 of them can be read back and kept 2 commits." in seen(state).findings[0]
    assert kept(state) == [2]


def test_without_a_clean_that_says_something_nothing_is_seen():
    blank = CompletedClean(
        instant=after(2),
        is_blank=True,
        policy=None,
        earliest_instant_to_retain="",
        last_completed_commit="",
        savepointed=(),
        removed={},
        extra={},
    )

    assert seen(cleaned(3)) is None
    assert seen(cleaned(3, blank)) is None
    assert seen(cleaned(3, clean(after(2), cow.stamp(1), cow.stamp(2), policy=None))) is None


def test_only_the_newest_policy_counts():
    state = cleaned(
        4,
        clean(after(2), policy="KEEP_LATEST_FILE_VERSIONS"),
        clean(after(3), cow.stamp(1), cow.stamp(3)),
    )
    found = seen(state)

    assert [3] == kept(state)
    assert found.findings[1] == (
        "The clean 20240101023000000 followed KEEP_LATEST_FILE_VERSIONS, so they are ignored."
    )


def test_an_unknown_policy_is_named_inertly():
    found = seen(cleaned(2, clean(after(1), cow.stamp(0), policy="KEEP\nALL\x1b[31m")))

    assert found.field is None
    assert found.findings == (
        "The clean 20240101013000000 followed KEEP ALL\\x1b[31m, an unknown policy.",
    )


def instant_at(hours, zone=UTC):
    moment = (NEW_YEAR + timedelta(hours=hours)).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}000"


def by_hours(told, every, cleans_at, zone=UTC):
    """A table with a commit every so many hours and cleans that keep ``told`` hours."""
    commits = range(0, max(cleans_at) + 1, every)
    made = []
    for at in cleans_at:
        earliest = next(h for h in commits if h >= at + 0.01 - told)
        made.append(
            clean(
                instant_at(at + 0.01, zone),
                instant_at(earliest, zone),
                instant_at(max(h for h in commits if h <= at), zone),
                "KEEP_LATEST_BY_HOURS",
            )
        )
    instants = [
        Instant(instant_at(h, zone), Action.COMMIT, State.COMPLETED, instant_at(h, zone))
        for h in commits
    ]
    return cow.table({"a": []}, instants, cleans=tuple(made))


def test_hours_are_told_by_the_one_number_that_explains_every_clean():
    found = seen(by_hours(24, 1, (48, 60, 72)))

    assert found.field == "hours"
    assert found.findings[0].endswith(" and kept at least 23 and less than 24.1 hours.")
    assert found.candidates == (RetentionCandidate(keep=24),)


def test_a_single_number_of_whole_days_is_told_where_several_hours_fit():
    found = seen(by_hours(72, 5, (101,)))

    assert found.candidates == (
        RetentionCandidate(keep=72, because="72 is the only number of whole days among them."),
    )


def test_hours_that_cannot_be_told_stay_a_bracket():
    found = seen(by_hours(30, 5, (100,)))

    assert found.candidates == ()
    assert "kept at least 25 and less than 30.1 hours; the number" in found.findings[0]


def test_hours_have_no_upper_bound_when_the_commit_before_is_archived():
    found = seen(by_hours(24, 24, (20,)))

    assert found.candidates == ()
    assert "kept at least 20 hours; the number is unknown." in found.findings[0]


def test_cleans_of_different_hours_do_not_agree():
    early, late = by_hours(24, 1, (48,)), by_hours(72, 1, (96,))
    state = cow.table(
        {"a": []},
        late.timeline.instants,
        cleans=(*early.cleans, *late.cleans),
    )
    found = seen(state)

    assert found.candidates == ()
    assert found.findings[0].endswith("differ in the hours: between 24.1 and 71.")


def test_a_change_of_the_clock_within_the_window_is_no_hour_more():
    # clocks of Berlin went forward 2161 hours after the new year of 2024
    zone = ZoneInfo("Europe/Berlin")
    state = by_hours(24, 1, (2150, 2170), zone=zone)

    assert kept(state, zone) == [24]
    assert kept(state, None) == []


def test_file_versions_are_counted_in_the_groups_that_were_cleaned():
    names = {"a": [cow.base("g", 3), cow.base("g", 4), cow.base("g", 6), cow.base("h", 1)]}
    removed = {"a": (cow.base("g", 0), cow.base("g", 1), cow.base("gone", 1))}
    state = cow.table(
        names,
        [cow.commit(hour) for hour in range(7)],
        cleans=(clean(after(4), policy="KEEP_LATEST_FILE_VERSIONS", removed=removed),),
    )
    found = seen(state)

    assert found.field == "fileVersions"
    assert "and left 2 versions in the 1 file group that was cleaned." in found.findings[0]
    assert found.candidates == (RetentionCandidate(keep=2),)


def test_groups_that_were_replaced_do_not_count():
    names = {"a": [cow.base("g", 3), cow.base("h", 2), cow.base("h", 3), cow.base("h", 4)]}
    removed = {"a": (cow.base("g", 0), cow.base("h", 0))}
    state = cow.table(
        names,
        [cow.commit(hour) for hour in range(5)],
        replaced={("a", "h"): cow.stamp(4)},
        cleans=(clean(after(4), policy="KEEP_LATEST_FILE_VERSIONS", removed=removed),),
    )

    assert kept(state) == [1]


def test_of_file_versions_that_vary_the_widest_counts():
    names = {"a": [cow.base("g", 3), cow.base("g", 4), cow.base("h", 4)]}
    removed = {"a": (cow.base("g", 0), cow.base("h", 0))}
    state = cow.table(
        names,
        [cow.commit(hour) for hour in range(5)],
        cleans=(clean(after(4), policy="KEEP_LATEST_FILE_VERSIONS", removed=removed),),
    )

    assert "left 1 to 2 versions in the 2 file groups" in seen(state).findings[0]
    assert kept(state) == [2]


def test_a_later_clean_of_a_group_tells_more_than_an_earlier_one():
    names = {"a": [cow.base("g", 4), cow.base("g", 5)]}
    first = clean(after(3), policy="KEEP_LATEST_FILE_VERSIONS", removed={"a": (cow.base("g", 0),)})
    second = clean(after(5), policy="KEEP_LATEST_FILE_VERSIONS", removed={"a": (cow.base("g", 3),)})
    state = cow.table(names, [cow.commit(hour) for hour in range(6)], cleans=(first, second))

    assert kept(state) == [2]


def test_file_versions_of_groups_that_are_gone_cannot_be_counted():
    state = cow.upserts(
        2,
        cleans=(
            clean(
                after(1),
                policy="KEEP_LATEST_FILE_VERSIONS",
                removed={"a": (cow.base("gone", 0), "no name of Hudi's")},
            ),
        ),
    )

    assert kept(state) == []
    assert "are gone, so what it kept cannot be counted" in seen(state).findings[0]
