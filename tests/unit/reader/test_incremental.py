"""The writes and slices of an incremental read."""

from __future__ import annotations

import pytest

from reconciler.errors import BlockedError
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.reader.incremental import (
    check_range,
    find_commit_times,
    find_touched_slices,
    make_read_limit,
)
from reconciler.reader.slice_selection import ReadLimit, pick_slices
from tests.unit.planners.cow import base, commit, stamp, upserts
from tests.unit.reader.test_slice_selection import delta, log, mor


def ended(hour):
    return f"{stamp(hour)[:-1]}5"


def test_the_begin_is_outside_of_the_range_and_the_end_inside():
    state = upserts(4)

    assert (stamp(1), stamp(2)) == find_commit_times(state, ended(0), ended(2))
    assert (stamp(2), stamp(3)) == find_commit_times(state, ended(1), None)
    assert () == find_commit_times(state, ended(3), None)
    assert tuple(map(stamp, range(4))) == find_commit_times(state, "0", None)


def test_ranges_are_of_completion_times_from_version_8_on():
    state = mor([log("f", 1), log("f", 2)], [commit(0), delta(1, ended=5), delta(2)])

    assert (stamp(2),) == find_commit_times(state, ended(1), ended(4))
    assert (stamp(1),) == find_commit_times(state, ended(2), None)
    assert ReadLimit(completed=ended(4)) == make_read_limit(state, ended(4))


def test_ranges_are_of_requested_times_in_version_6():
    state = upserts(3, table_version=6, completions={})

    assert (stamp(1), stamp(2)) == find_commit_times(state, stamp(0), stamp(2))
    assert ReadLimit(requested=stamp(2)) == make_read_limit(state, stamp(2))


def test_without_an_end_everything_is_seen():

    assert ReadLimit() == make_read_limit(upserts(1), None)


def archived(hour, action=Action.COMMIT):
    return Instant(stamp(hour), action, State.COMPLETED, ended(hour))


def test_a_range_that_reaches_into_the_archive_names_where_it_could_begin():
    with pytest.raises(BlockedError) as refused:
        check_range(upserts(1), ended(1), [archived(1), archived(3), archived(2)])

    assert str(refused.value) == (
        f"/t: writes after {ended(1)} are archived, so their changes are unknown; begin "
        f"at {ended(3)} or later, or read the whole table"
    )


def test_a_range_behind_the_archive_is_whole():
    six = upserts(1, table_version=6)

    assert check_range(upserts(1), ended(3), [archived(3)]) is None
    assert check_range(upserts(1), ended(1), [archived(3, Action.CLEAN)]) is None
    assert check_range(six, stamp(3), [archived(3)]) is None


def touched(state, times):
    picked = pick_slices(state)
    rows = picked.files.name.take(picked.base.tolist()).to_pylist()
    hits = find_touched_slices(picked, state, times)
    return sorted(name for name, hit in zip(rows, hits, strict=True) if hit)


def test_only_slices_that_may_hold_a_record_of_the_range_are_read():
    names = [base("f", 0), base("g", 1), base("h", 2), base("i", 0), log("i", 2)]
    state = mor(names, [commit(0), commit(1), delta(2)])

    assert [base("g", 1), base("h", 2)] == touched(state, (stamp(1),))
    assert [base("h", 2), base("i", 0)] == touched(state, (stamp(2),))
    assert [] == touched(state, ())


def test_a_log_file_of_version_6_may_hold_a_record_of_any_write():
    names = [base("f", 0), base("g", 0), log("g", 0)]
    state = mor(names, [commit(0), delta(2)], table_version=6, completions={})

    assert [base("g", 0)] == touched(state, (stamp(2),))
