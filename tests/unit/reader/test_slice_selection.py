"""The file slices that a read sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reconciler.errors import BlockedError
from reconciler.hudi.files.names import LogName
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.reader.slice_selection import (
    ReadLimit,
    check_readable,
    find_newest_write,
    pick_slices,
)
from reconciler.state.model import CompletedClean, PendingClean, PendingCompactionGroup
from tests.unit.planners.cow import base, commit, stamp, table, upserts


def log(group, hour, number=1, token="1-0-1"):
    return LogName(
        file_id=group, instant=stamp(hour), version=number, token=token, is_cdc=False
    ).text


def delta(hour, ended=None, state=State.COMPLETED):
    done = f"{stamp(hour if ended is None else ended)[:-1]}5"
    return Instant(
        stamp(hour), Action.DELTACOMMIT, state, done if state is State.COMPLETED else None
    )


def compaction(hour, *groups):
    return tuple(
        PendingCompactionGroup(
            instant=stamp(hour),
            action=Action.COMPACTION,
            partition="a",
            file_id=group,
            base_instant=stamp(0),
        )
        for group in groups
    )


def pending(hour):
    return Instant(stamp(hour), Action.COMPACTION, State.REQUESTED)


def mor(names, instants, **more):
    return table({"a": names}, instants, table_type="MERGE_ON_READ", **more)


def seen(state, until=None, **how):
    """Return (base, logs) of each slice."""
    picked = pick_slices(state, until or ReadLimit(), **how)
    count = len(picked)
    found = picked.to_table(np.zeros(count, np.int32), np.zeros(count, np.bool_)).to_pylist()
    return [(row["base"], row["logs"]) for row in found]


def before(hour):
    return ReadLimit(requested=stamp(hour))


def cleaned(*removed, partition="a"):
    return CompletedClean(
        instant=stamp(9),
        is_blank=False,
        policy=None,
        earliest_instant_to_retain="",
        last_completed_commit="",
        savepointed=(),
        removed={partition: removed},
        extra={},
    )


def test_of_each_group_the_newest_base_file_is_seen():
    state = table(
        {"a": [base("f", 0), base("f", 1), base("g", 0)], "": [base("h", 1)]},
        [commit(0), commit(1)],
    )

    assert [
        (base("h", 1), []),
        (f"a/{base('f', 1)}", []),
        (f"a/{base('g', 0)}", []),
    ] == seen(state)


def test_a_table_without_writes_shows_nothing():

    assert [] == seen(table({}, []))
    assert [] == seen(table({"a": [base("f", 0)]}, [commit(0, State.INFLIGHT)]))
    assert find_newest_write(table({}, [])) is None


def test_what_an_unfinished_write_made_is_not_there():
    state = table({"a": [base("f", 0), base("f", 1)]}, [commit(0), commit(1, State.INFLIGHT)])

    assert [(f"a/{base('f', 0)}", [])] == seen(state)
    assert stamp(0) == find_newest_write(state)


def test_what_is_older_than_the_timeline_is_completed():

    assert [(f"a/{base('f', 0)}", [])] == seen(table({"a": [base("f", 0)]}, [commit(1)]))


def test_time_travel_sees_what_there_was():
    state = upserts(3)

    assert [(f"a/{base('g', 1)}", [])] == seen(state, before(1))
    assert stamp(1) == find_newest_write(state, before(1))


def test_a_moment_between_two_writes_shows_the_one_before():

    assert [(f"a/{base('g', 0)}", [])] == seen(upserts(3), ReadLimit(requested="20240101003000000"))


def test_a_replaced_group_is_seen_before_its_replacement_only():
    replace = Instant(stamp(1), Action.REPLACECOMMIT, State.COMPLETED, f"{stamp(1)[:-1]}5")
    state = table(
        {"a": [base("f", 0), base("g", 1)]},
        [commit(0), replace],
        replaced={("a", "f"): stamp(1)},
    )

    assert [(f"a/{base('g', 1)}", [])] == seen(state)
    assert [(f"a/{base('f', 0)}", [])] == seen(state, before(0))
    assert [(f"a/{base('g', 1)}", [])] == seen(state, only_base=True)


def test_logs_follow_their_base_file_in_merge_order():
    state = mor(
        [base("f", 0), log("f", 2), log("f", 1, 2), log("f", 1), log("f", 1, 10)],
        [commit(0), delta(1), delta(2)],
    )
    logs = [log("f", 1), log("f", 1, 2), log("f", 1, 10), log("f", 2)]

    assert [(f"a/{base('f', 0)}", [f"a/{name}" for name in logs])] == seen(state)


def test_attempts_at_one_log_file_go_by_their_tokens_as_numbers():
    names = [log("f", 1, 1, "10-0-1"), log("f", 1, 1, "9-0-1"), log("f", 1, 1, "9-0-0")]
    state = mor([base("f", 0), *names], [commit(0), delta(1)])
    (_base, logs) = seen(state)[0]

    assert [f"a/{names[2]}", f"a/{names[1]}", f"a/{names[0]}"] == logs


def test_a_slice_may_be_log_files_alone():

    assert [(None, [f"a/{log('f', 1)}"])] == seen(mor([log("f", 1)], [delta(1)]))


def test_log_files_of_unfinished_writes_are_not_there():
    names = [base("f", 0), log("f", 1), log("f", 2)]
    state = mor(names, [commit(0), delta(1, state=State.INFLIGHT), delta(2)])

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 2)}"])] == seen(state)


def test_the_log_file_of_an_unfinished_write_hides_no_later_one():
    """Hudi puts the second log into the slice of the first and then does not show it."""
    state = mor([log("f", 1), log("f", 2)], [delta(1, state=State.INFLIGHT), delta(2)])

    assert [(None, [f"a/{log('f', 2)}"])] == seen(state)


def test_the_base_file_of_an_unfinished_write_hides_no_log_file():
    """Hudi puts the log into the slice of the unfinished write and loses its rows."""
    state = mor(
        [base("f", 0), base("f", 1), log("f", 2)],
        [commit(0), delta(1, state=State.INFLIGHT), delta(2)],
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 2)}"])] == seen(state)


def test_logs_of_a_pending_compaction_come_after_those_it_compacts():
    state = mor(
        [base("f", 0), log("f", 1), log("f", 3)],
        [commit(0), delta(1), pending(2), delta(3)],
        compactions=compaction(2, "f"),
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 1)}", f"a/{log('f', 3)}"])] == seen(state)


def test_a_log_that_ended_after_a_pending_compaction_began_comes_last_though_it_began_first():
    state = mor(
        [base("f", 0), log("f", 1), log("f", 2)],
        [commit(0), delta(1, ended=4), delta(2), pending(3)],
        compactions=compaction(3, "f"),
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 2)}", f"a/{log('f', 1)}"])] == seen(state)


def test_a_pending_compaction_orders_no_log_files_for_reads_before_it():
    state = mor(
        [base("f", 0), log("f", 1), log("f", 2)],
        [commit(0), delta(1, ended=4), delta(2), pending(3)],
        compactions=compaction(3, "f"),
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 1)}", f"a/{log('f', 2)}"])] == seen(
        state, before(2)
    )


def test_a_pending_compaction_of_a_slice_without_base_file_takes_nothing_away():
    state = mor(
        [log("f", 1), log("f", 3)], [delta(1), pending(2), delta(3)], compactions=compaction(2, "f")
    )

    assert [(None, [f"a/{log('f', 1)}", f"a/{log('f', 3)}"])] == seen(state)


def test_the_half_made_base_file_of_a_pending_compaction_is_not_read():
    state = mor(
        [base("f", 0), log("f", 1), base("f", 2)],
        [commit(0), delta(1), Instant(stamp(2), Action.COMPACTION, State.INFLIGHT)],
        compactions=compaction(2, "f"),
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 1)}"])] == seen(state)
    assert [(f"a/{base('f', 0)}", [])] == seen(state, only_base=True)


def test_time_travel_before_a_compaction_keeps_the_log_that_it_did_not_compact():
    """The write began before the compaction and ended after it; Hudi shows it in no slice."""
    compacted = Instant(stamp(2), Action.COMMIT, State.COMPLETED, f"{stamp(3)[:-1]}5")
    state = mor(
        [base("f", 0), log("f", 1), base("f", 2)], [commit(0), delta(1, ended=4), compacted]
    )

    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 1)}"])] == seen(state, before(1))
    assert [(f"a/{base('f', 2)}", [f"a/{log('f', 1)}"])] == seen(state)


def test_in_version_6_a_log_file_goes_by_the_base_file_it_is_named_after():
    state = mor(
        [base("f", 0), log("f", 0), log("f", 0, 2), base("f", 2)],
        [commit(0), delta(1), delta(2)],
        table_version=6,
        completions={},
        v6_completions={stamp(hour): stamp(9) for hour in range(3)},
    )

    assert [(f"a/{base('f', 2)}", [])] == seen(state)
    logs = [f"a/{log('f', 0)}", f"a/{log('f', 0, 2)}"]
    assert [(f"a/{base('f', 0)}", logs)] == seen(state, before(1))


def test_a_read_optimised_read_sees_base_files_alone():
    state = mor(
        [base("f", 0), log("f", 1), log("g", 1)],
        [commit(0), delta(1)],
    )

    assert [(f"a/{base('f', 0)}", [])] == seen(state, only_base=True)


def test_an_incremental_read_sees_what_had_ended():
    state = mor([base("f", 0), log("f", 1), log("f", 2)], [commit(0), delta(1, ended=4), delta(2)])

    until = ReadLimit(completed=stamp(3))
    assert [(f"a/{base('f', 0)}", [f"a/{log('f', 2)}"])] == seen(state, until)
    assert stamp(2) == find_newest_write(state, until)


def test_sizes_are_those_of_the_files():
    state = mor([base("f", 0), log("f", 1), log("f", 2)], [commit(0), delta(1), delta(2)])
    picked = pick_slices(state)
    (row,) = picked.to_table(np.zeros(1, np.int32), np.zeros(1, np.bool_)).to_pylist()

    assert (10, 20) == (row["base_size"], row["log_size"])


def refusal(state, until):
    with pytest.raises(BlockedError) as refused:
        check_readable(state, until)
    return str(refused.value)


def test_a_read_before_what_a_clean_left_names_the_earliest_instant():
    state = table(
        {"a": [base("g", 2), base("g", 3)]},
        [commit(hour) for hour in range(4)],
        cleans=(cleaned(base("g", 0), base("g", 1)),),
    )

    assert refusal(state, before(1)) == (
        f"/t: cannot read as of {stamp(1)}: files were cleaned; the earliest readable time is "
        f"{stamp(2)}"
    )
    assert check_readable(state, before(2)) is None
    assert check_readable(state, ReadLimit(requested="2025")) is None


def test_a_hole_behind_a_savepoint_names_what_comes_after_it_too():
    state = table(
        {"a": [base("g", 0), base("g", 3)]},
        [commit(hour) for hour in range(4)],
        cleans=(cleaned(base("g", 1), base("g", 2)),),
    )

    assert check_readable(state, before(0)) is None
    assert refusal(state, before(2)).endswith(
        f"the earliest readable time is {stamp(0)}, the next is {stamp(3)}"
    )


def test_a_read_before_the_timeline_is_refused():

    assert refusal(upserts(2), ReadLimit(requested="2023")) == (
        f"/t: cannot read as of 2023: the timeline starts at {stamp(0)}; the earliest readable "
        f"time is {stamp(0)}"
    )


def test_what_a_half_done_clean_removed_is_gone():
    names = (base("g", 0), base("g", 1))
    clean = PendingClean(
        instant=stamp(9), state="INFLIGHT", started_ms=0, files={"a": names, "b": (base("h", 0),)}
    )
    state = table(
        {"a": [base("g", 1), base("g", 2)]},
        [commit(hour) for hour in range(3)],
        pending_cleans=(clean,),
    )

    assert "the earliest readable time" in refusal(state, before(0))
    assert check_readable(state, before(1)) is None


def test_what_a_clean_with_a_blank_record_planned_and_is_not_there_is_gone():
    clean = replace(cleaned(), is_blank=True, removed={}, planned={"a": (base("g", 0),)})
    writes = [commit(hour) for hour in range(3)]
    state = table({"a": [base("g", 1), base("g", 2)]}, writes, cleans=(clean,))
    kept = table({"a": [base("g", hour) for hour in range(3)]}, writes, cleans=(clean,))

    assert f"the earliest readable time is {stamp(1)}" in refusal(state, before(0))
    assert check_readable(state, before(1)) is None
    assert check_readable(kept, before(0)) is None


def test_a_table_whose_every_write_lost_files_says_so():
    state = mor(
        [log("g", 0)],
        [commit(0), delta(1)],
        table_version=6,
        completions={},
        cleans=(cleaned(base("g", 0)),),
    )

    assert refusal(state, before(1)) == (
        f"/t: cannot read as of {stamp(1)}, nor any other write of its timeline: files were cleaned"
    )
