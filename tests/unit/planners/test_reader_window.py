"""What readers need stays, and who needs it is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.planners.reader_window import ReaderWindow, find_reader_window, refuse_shrinking
from reconciler.plans.model import KEEP_RULES, CleanStep, Impact, Note, ResumeStep
from reconciler.spec.model import (
    Concurrency,
    IncrementalConsumer,
    Lock,
    Policy,
    Readers,
    Retention,
    TableSpec,
)
from reconciler.state.model import PendingClean, PendingCompactionGroup, Savepoint
from tests.unit.planners.cow import base, commit, stamp, table, upserts

HOUR = 3600
NOW = datetime(2024, 1, 1, 5, tzinfo=UTC)


def query(hours):
    return Readers(longest_query=hours * HOUR)


def consumer(name, hours):
    return IncrementalConsumer(name=name, max_lag=hours * HOUR)


def spec(readers, keep=1, kind=Policy.COMMITS, **more):
    return TableSpec(
        name="t",
        path="/t",
        retention=Retention(policy=kind, keep=keep, **more),
        readers=readers,
        concurrency=Concurrency(lock=Lock(provider="filesystem")),
    )


def removed(plan):
    return [name for step in plan.steps for name in step.files.name.to_pylist()]


def kept(plan):
    rules = [KEEP_RULES[code] for code in plan.kept.rule]
    return list(zip(plan.kept.name.to_pylist(), rules, strict=True))


def test_what_was_superseded_within_the_longest_query_stays():
    plan = plan_table(spec(query(2)), upserts(5), NOW)

    assert [base("g", 0), base("g", 1)] == removed(plan)
    assert [(base("g", 2), "readers")] == kept(plan)
    assert (
        "the longest query runs 2h and may read its file slice until 2024-01-01T05:00:00+00:00: "
        f"it was superseded by {stamp(3)}, completed at {stamp(3)[:-1]}5"
    ) == plan.kept.because[0].as_py()
    assert (stamp(0), stamp(2)) == (
        plan.impact.earliest_readable_before,
        plan.impact.earliest_readable_after,
    )
    assert () == plan.refusals


def test_the_reader_that_needs_most_decides_and_is_named():
    readers = Readers(
        longest_query=HOUR, incremental_consumers=(consumer("web", 2), consumer("fraud", 3))
    )
    plan = plan_table(spec(readers), upserts(5), NOW)

    assert [base("g", 0)] == removed(plan)
    assert (
        plan.kept.because[0]
        .as_py()
        .startswith(
            "consumer fraud lags 3h and may read its file slice until 2024-01-01T05:00:00+00:00: "
        )
    )


@pytest.mark.parametrize("readers", [None, Readers(), Readers(longest_query=0)])
def test_readers_that_need_nothing_keep_nothing(readers):
    plan = plan_table(spec(readers), replace(upserts(5), timezone="LOCAL"), NOW)

    assert 3 == len(removed(plan))
    assert () == plan.refusals


def test_the_moment_of_completion_counts_and_not_the_start():
    state = upserts(3)
    late = {**state.completions, stamp(1): f"{stamp(4)[:-1]}5"}

    assert [base("g", 0)] == removed(plan_table(spec(query(2)), state, NOW))
    assert [] == removed(plan_table(spec(query(2)), replace(state, completions=late), NOW))


@pytest.mark.parametrize(("ended", "gone"), [(1, [base("g", 0)]), (4, [])])
def test_in_version_6_the_completed_file_says_when_a_write_was_done(ended, gone):
    done = {stamp(1): stamp(ended), stamp(2): stamp(2)}
    state = replace(upserts(3), table_version=6, completions={}, v6_completions=done)

    assert gone == removed(plan_table(spec(query(2)), state, NOW))


def test_an_instant_without_milliseconds_counts_as_the_end_of_its_second():
    second = stamp(3)[:14]
    names = [base("g", 0), f"g_0-0-0_{second}.parquet", base("g", 4)]
    instants = [commit(0), Instant(second, Action.COMMIT, State.COMPLETED), commit(4)]
    state = replace(table({"a": names}, instants), table_version=6, completions={})
    now = datetime(2024, 1, 1, 5, 0, 0, 500_000, tzinfo=UTC)

    assert [] == removed(plan_table(spec(query(2)), state, now))
    assert 1 == len(removed(plan_table(spec(query(2)), state, now + timedelta(seconds=1))))


def test_a_replaced_group_stays_while_it_may_be_read():
    replacing = Instant(stamp(3), Action.REPLACECOMMIT, State.COMPLETED, stamp(3))
    names = {"a": [base("g", 0), base("g", 1)], "b": [base("h", 3), base("h", 4)]}
    state = table(
        names,
        [commit(0), commit(1), replacing, commit(4)],
        replaced={("a", "g"): stamp(3)},
    )

    assert [base("g", 0)] == removed(plan_table(spec(query(3)), state, NOW))
    assert [base("g", 0), base("g", 1)] == removed(plan_table(spec(query(1)), state, NOW))


def test_a_partition_stays_while_a_file_of_it_may_be_read():
    replacing = Instant(stamp(3), Action.REPLACECOMMIT, State.COMPLETED, stamp(3))
    names = {"a": [base("g", 0)], "b": [base("h", 3), base("h", 4)]}
    state = table(names, [commit(0), replacing, commit(4)], replaced={("a", "g"): stamp(3)})
    [whole] = plan_table(spec(query(1)), state, NOW).steps

    assert ("a",) == whole.delete_partitions
    assert () == plan_table(spec(query(3)), state, NOW).steps


def test_file_versions_give_way_to_readers_too():
    plan = plan_table(spec(query(2), kind=Policy.FILE_VERSIONS), upserts(5), NOW)

    assert [base("g", 0), base("g", 1)] == removed(plan)
    assert ["readers", "readers"] == [rule for _, rule in kept(plan)]


def test_other_rules_are_named_first_and_the_cap_after():
    saved = Savepoint(instant=stamp(3), completed=True, files=frozenset({base("g", 3)}))
    state = replace(upserts(6), savepoints=(saved,))
    plan = plan_table(spec(query(3), max_commits_per_run=1), state, NOW + timedelta(hours=1))

    assert [
        (base("g", 1), "cap"),
        (base("g", 2), "readers"),
        (base("g", 3), "savepoint"),
    ] == kept(plan)


def test_what_a_pending_compaction_will_supersede_is_not_superseded_yet():
    compaction = Instant(stamp(2), Action.COMPACTION, State.INFLIGHT)
    operation = PendingCompactionGroup(
        instant=stamp(2),
        action=Action.COMPACTION,
        partition="a",
        file_id="g",
        base_instant=stamp(2),
    )
    names = {"a": [base("g", hour) for hour in range(3)], "b": [base("h", 3)]}
    state = table(names, [commit(0), commit(1), compaction, commit(3)], compactions=(operation,))
    plan = plan_table(spec(query(1), kind=Policy.FILE_VERSIONS), state, NOW)

    assert [base("g", 0)] == removed(plan)
    assert [(base("g", 1), "readers")] == kept(plan)
    assert (
        plan.kept.because[0]
        .as_py()
        .endswith(
            f"may read its file slice; {stamp(2)}, which is pending, has not superseded it yet"
        )
    )


def test_nothing_to_do_says_that_readers_are_why():
    plan = plan_table(spec(query(9)), upserts(4), NOW)

    assert () == plan.steps
    assert () == plan.drift
    assert [Note("nothingToDo", "nothing to do: readers may still read 2 slices")] == list(
        plan.warnings
    )


def test_without_a_zone_nobody_knows_when_now_is():
    plan = plan_table(spec(query(2)), replace(upserts(5), timezone="LOCAL"), NOW)

    assert () == plan.steps
    assert ["zone"] == [note.rule for note in plan.refusals]
    assert plan.refusals[0].because.startswith("readers needs the timeline's time zone. ")


def test_the_window_is_of_the_timelines_zone():
    local = replace(upserts(5), timezone="LOCAL")
    tokyo = replace(spec(query(2)), timezone="Asia/Tokyo")
    plan = plan_table(tokyo, local, NOW - timedelta(hours=9))

    assert [base("g", 0), base("g", 1)] == removed(plan)
    assert "until 2024-01-01T05:00:00+09:00" in plan.kept.because[0].as_py()


@pytest.mark.parametrize(
    ("now", "start"),
    [
        (datetime(2024, 10, 27, 0, 50, tzinfo=UTC), "20241027015000000"),  # 02:50, first time
        (datetime(2024, 10, 27, 1, 50, tzinfo=UTC), "20241027015000000"),  # 02:50, second time
        (datetime(2024, 10, 27, 2, 50, tzinfo=UTC), "20241027025000000"),
        (datetime(2024, 3, 31, 1, 10, tzinfo=UTC), "20240331011000000"),  # clocks went forward
    ],
)
def test_where_clocks_are_turned_back_the_window_starts_with_the_earlier_hour(now, start):
    berlin = replace(spec(query(1)), timezone="Europe/Berlin")
    found = find_reader_window(berlin, replace(upserts(5), timezone="LOCAL"), now)

    assert start == found.start


def test_a_window_longer_than_the_calendar_keeps_everything():
    plan = plan_table(spec(query(24 * 366 * 1000)), upserts(5), datetime(999, 1, 1, tzinfo=UTC))
    found = find_reader_window(
        spec(query(24 * 366 * 1000)), upserts(5), datetime(999, 1, 1, tzinfo=UTC)
    )

    assert "" == found.start
    assert [] == removed(plan)


def test_a_pending_clean_of_another_writer_loses_what_readers_need():
    foreign = PendingClean(
        instant=stamp(4),
        state="INFLIGHT",
        started_ms=0,
        files={"a": (base("g", 0), base("g", 1), base("g", 2))},
    )
    plan = plan_table(spec(query(2), keep=9), upserts(5, pending_cleans=(foreign,)), NOW)
    [step] = plan.steps

    assert isinstance(step, ResumeStep)
    assert [base("g", 0), base("g", 1)] == removed(plan)
    assert (
        f"clean {stamp(4)} plans to delete 1 file that must stay, so apply keeps it: "
        f"{base('g', 2)}: the longest query runs 2h and may read its file slice until "
        f"2024-01-01T05:00:00+00:00: it was superseded by {stamp(3)}, completed at "
        f"{stamp(3)[:-1]}5"
    ) in [note.because for note in plan.warnings]
    assert () == plan.refusals


def test_what_readers_keep_of_a_clean_step_is_not_in_it():
    [step] = plan_table(spec(query(2)), upserts(5), NOW).steps

    assert isinstance(step, CleanStep)
    assert stamp(4) == step.earliest_instant_to_retain


WINDOW = ReaderWindow(reader="consumer fraud lags", seconds=72 * HOUR, start=stamp(5), zone=UTC)


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, None), (stamp(6), stamp(6)), (stamp(3), stamp(5)), (stamp(7), stamp(6))],
)
def test_a_window_that_does_not_shrink_below_a_readers_need_is_fine(before, after):
    impact = Impact(earliest_readable_before=before, earliest_readable_after=after)

    assert () == refuse_shrinking(WINDOW, impact)
    assert () == refuse_shrinking(None, Impact(earliest_readable_before=stamp(1)))


@pytest.mark.parametrize(("after", "said"), [(stamp(6), stamp(6)), (None, "no instant")])
def test_a_window_that_shrinks_below_a_readers_need_is_refused(after, said):
    impact = Impact(earliest_readable_before=stamp(3), earliest_readable_after=after)

    assert (
        Note(
            "readers",
            f"consumer fraud lags 3d, back to {stamp(5)}, but after the plan the table can be read "
            f"from {said} instead of {stamp(3)}; retain more",
            step="clean",
        ),
    ) == refuse_shrinking(WINDOW, impact)


def test_a_slice_completed_late_is_read_however_old_its_successor():
    state = upserts(3)
    late = {**state.completions, stamp(0): f"{stamp(4)[:-1]}5"}
    plan = plan_table(spec(query(2)), replace(state, completions=late), NOW)

    assert [] == removed(plan)
    assert f"it was written by {stamp(0)}, completed at" in plan.kept.because[0].as_py()


def test_an_instant_that_is_no_date_has_no_end():
    bad = "20240230000000000"
    names = [base("g", 0), f"g_0-0-0_{bad}.parquet", "g_0-0-0_20240301000000000.parquet"]
    instants = [Instant(n[-25:-8], Action.COMMIT, State.COMPLETED, n[-25:-8]) for n in names]
    plan = plan_table(
        spec(query(99)), table({"a": names}, instants), datetime(2024, 3, 1, tzinfo=UTC)
    )

    assert [] == removed(plan)
    assert [
        (
            "the longest query runs 99h and may read its file slice: it was superseded by "
            f"{bad}, completed at {bad}"
        )
    ] == plan.kept.because.to_pylist()
