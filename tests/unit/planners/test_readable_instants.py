"""How far back a table can be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.hudi.files.names import LogName
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.readable_instants import find_earliest_readable, find_readable_writes
from reconciler.state.model import CompletedClean
from tests.unit.planners.cow import base, commit, stamp, table, upserts


def clean(*removed, hour=9, partition="a"):
    return CompletedClean(
        instant=stamp(hour),
        is_blank=False,
        policy=None,
        earliest_instant_to_retain="",
        last_completed_commit="",
        savepointed=(),
        removed={partition: removed},
        extra={},
    )


def readable(state, *gone):
    rows = np.array([name in gone for name in state.files.name.to_pylist()], np.bool_)
    return find_earliest_readable(state, rows)


def test_an_untouched_table_can_be_read_from_its_first_commit():

    assert (stamp(0), stamp(0)) == readable(upserts(3))


def test_a_table_without_commits_cannot_be_read():

    assert (None, None) == readable(table({}, []))


def test_a_removed_slice_hides_the_times_until_the_next():

    assert (stamp(0), stamp(2)) == readable(upserts(4), base("g", 0), base("g", 1))


def test_a_slice_in_the_middle_leaves_the_times_before_it():

    assert (stamp(0), stamp(0)) == readable(upserts(4), base("g", 1))


def test_what_an_earlier_clean_removed_counts_before_and_after():
    state = table(
        {"a": [base("g", 2), base("g", 3)]},
        [commit(hour) for hour in range(4)],
        cleans=(clean(base("g", 0), base("g", 1)),),
    )

    assert (stamp(2), stamp(3)) == readable(state, base("g", 2))


def test_a_group_born_later_does_not_count():
    state = table(
        {"a": [base("g", 0), base("h", 1), base("h", 2)]}, [commit(hour) for hour in range(3)]
    )

    assert (stamp(0), stamp(0)) == readable(state, base("h", 1))


def test_a_replaced_group_is_needed_until_it_was_replaced():
    swap = Instant(stamp(2), Action.REPLACECOMMIT, State.COMPLETED)
    state = table(
        {"a": [base("g", 0)]},
        [commit(0), commit(1), swap, commit(3)],
        replaced={("a", "g"): stamp(2)},
    )

    assert (stamp(0), stamp(2)) == readable(state, base("g", 0))


def test_a_group_that_is_gone_and_was_replaced_before_the_timeline_began_hides_nothing():
    state = table({"a": [base("g", 5)]}, [commit(5), commit(6)], cleans=(clean(base("old", 1)),))

    assert (stamp(5), stamp(5)) == readable(state)


def test_a_slice_of_a_write_undone_since_hides_nothing():
    state = table(
        {"a": [base("g", 0), base("g", 5)]},
        [commit(0), commit(5)],
        cleans=(clean(base("g", 2)),),
    )

    assert (stamp(0), stamp(0)) == readable(state)


def test_no_commit_may_be_left_to_read():
    state = table(
        {"a": [base("g", 1)]},
        [commit(0)],
        cleans=(clean(base("g", 0)),),
    )

    assert (None, None) == readable(state)


def test_removed_logs_belong_to_the_slice_that_began_before_they_ended():
    def log(hour):
        return LogName(
            file_id="g", instant=stamp(hour), version=1, token="0-1-0", is_cdc=False
        ).text

    deltas = [
        Instant(stamp(hour), Action.DELTACOMMIT, State.COMPLETED, f"{stamp(hour)[:-1]}5")
        for hour in (1, 3)
    ]
    state = table(
        {"a": [base("g", 2), log(3)]},
        [commit(0), commit(2), *deltas],
        table_type="MERGE_ON_READ",
        cleans=(clean(base("g", 0), log(1)),),
    )

    assert (stamp(2), None) == readable(state, base("g", 2), log(3))


def test_a_clean_with_a_blank_record_removed_what_it_planned_and_is_not_there():
    planned = {"a": (base("g", 0), base("g", 1)), "gone": (base("h", 0),)}
    blank = replace(clean(), is_blank=True, removed={}, planned=planned)
    writes = [commit(hour) for hour in range(3)]
    state = table({"a": [base("g", 1), base("g", 2)]}, writes, cleans=(blank,))
    untouched = table(
        {"a": [base("g", 0), base("g", 1), base("g", 2)], "gone": [base("h", 0)]},
        writes,
        cleans=(blank,),
    )

    assert (stamp(0), stamp(0)) == readable(untouched)
    assert (stamp(1), stamp(1)) == readable(state)


def test_a_write_behind_a_hole_can_be_read_again():
    state = table(
        {"a": [base("g", 0), base("g", 3)]},
        [commit(hour) for hour in range(4)],
        cleans=(clean(base("g", 1), base("g", 2)),),
    )
    writes, found = find_readable_writes(state)

    assert tuple(map(stamp, range(4))) == writes
    assert [True, False, False, True] == found.tolist()


def test_a_table_without_commits_has_no_readable_writes():
    state = table({}, [])
    writes, found = find_readable_writes(state)

    assert ((), []) == (writes, found.tolist())
