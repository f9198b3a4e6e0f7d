"""Savepoints of a table: which are made, which go, and what a clean of the same plan does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.planners.savepoints.instants import list_completed_writes
from reconciler.planners.savepoints.pinned_files import find_pinned_rows, group_by_partition
from reconciler.plans.model import CleanStep, Finding
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.spec.model import (
    Concurrency,
    DeclaredSavepoint,
    Lock,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.model import (
    CompletedClean,
    PendingClean,
    PendingCompactionGroup,
    Savepoint,
)
from reconciler.state.savepoint_comment import format_savepoint_comment
from tests.unit.planners.cow import base, commit, stamp, table, upserts

NOW = datetime(2024, 1, 2, tzinfo=UTC)


def spec(*savepoints, keep=1, **more):
    return TableSpec(
        name="t",
        path="/t",
        retention=Retention(policy=Policy.COMMITS, keep=keep),
        concurrency=Concurrency(lock=Lock(provider="filesystem")),
        **{"savepoints": savepoints, "document": {"a": 1}, **more},
    )


def at(hour, name="q", until=None):
    """A savepoint of the commit at that hour, which completes 5 milliseconds later."""
    return DeclaredSavepoint(name=name, at=f"2024-01-01T{hour:02d}:30Z", until=until)


def made(hour, declared, completed=True):
    return Savepoint(
        instant=stamp(hour),
        completed=completed,
        files=frozenset({base("g", hour)}) if completed else frozenset(),
        made_by="ann",
        made_ms=0,
        comment=format_savepoint_comment(declared),
    )


def foreign(hour, completed=True):
    files = frozenset({base("g", hour)}) if completed else frozenset()
    return Savepoint(
        instant=stamp(hour), completed=completed, files=files, made_by="bob", comment="c"
    )


def steps(plan):
    return [
        (step.change, step.name, step.instant)
        for step in plan.steps
        if isinstance(step, SavepointStep)
    ]


def removed(plan):
    found = [step.files.name.to_pylist() for step in plan.steps if isinstance(step, CleanStep)]
    return found[0] if found else []


def notes(plan):
    return [note.because for note in plan.warnings if "savepoint" in note.because]


def test_the_newest_commit_completed_by_then_is_pinned():
    plan = plan_table(spec(at(2, until="2025-01-01")), upserts(5), NOW)

    expected = SavepointStep(
        change="create",
        name="q",
        instant=stamp(2),
        until="2025-01-01",
        files=1,
        bytes=10,
        because="the newest commit completed by 2024-01-01T02:30Z",
    )
    assert expected == plan.steps[0]
    assert (Finding("savepoints", ["q"], [], "1 to make"),) == plan.drift[-1:]


def test_a_clean_of_the_same_plan_keeps_what_a_new_savepoint_pins():
    plan = plan_table(spec(at(2)), upserts(5), NOW)

    assert [SavepointStep, CleanStep] == [type(step) for step in plan.steps]
    assert [base("g", 0), base("g", 1)] == removed(plan)
    assert [base("g", 2)] == plan.kept.name.to_pylist()


def test_a_clean_of_the_same_plan_removes_what_a_removed_savepoint_pinned():
    state = upserts(5, savepoints=(made(0, at(0)),))
    plan = plan_table(spec(), state, NOW)

    assert [("remove", "q", stamp(0))] == steps(plan)
    assert base("g", 0) in removed(plan)
    assert "savepoints no longer lists q" == plan.steps[0].because
    assert (1, 10) == (plan.steps[0].files, plan.steps[0].bytes)


def test_a_savepoint_that_is_removed_keeps_its_files_until_its_removal_has_run():
    state = upserts(5, savepoints=(made(0, at(0)),))
    plan = plan_table(spec(), state, NOW, keeps_savepoints=True)

    assert [("remove", "q", stamp(0))] == steps(plan)
    assert base("g", 0) not in removed(plan)


def test_a_plan_without_the_block_leaves_every_savepoint():
    state = upserts(5, savepoints=(made(0, at(0)), foreign(1)))
    plan = plan_table(spec(savepoints=None), state, NOW)

    assert [] == steps(plan)
    assert [base("g", 0), base("g", 1)] == plan.kept.name.to_pylist()
    assert plan.other_savepoints is None


def test_an_existing_savepoint_needs_no_step():
    state = upserts(5, savepoints=(made(2, at(2)),))
    plan = plan_table(spec(at(2)), state, NOW)

    assert [] == steps(plan)
    assert () == tuple(f for f in plan.drift if f.field == "savepoints")


def test_an_existing_savepoint_stays_although_another_commit_is_found_for_its_time_by_now():
    state = upserts(5, savepoints=(made(1, at(2)),))

    assert [] == steps(plan_table(spec(at(2)), state, NOW))


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("2024-01-02T00:00Z", [("remove", "q", stamp(2))]),
        ("2024-01-01", [("remove", "q", stamp(2))]),
        ("2024-01-02T00:00:01Z", []),
        ("2024-01-02", []),
        (None, []),
    ],
)
def test_a_savepoint_goes_from_until_on(until, expected):
    declared = at(2, until=until)
    state = upserts(5, savepoints=(made(2, at(2)),))
    plan = plan_table(spec(declared), state, NOW)

    assert expected == steps(plan)
    if expected:
        assert f"its until, {until}, has passed" == plan.steps[0].because


def test_a_savepoint_whose_end_has_passed_is_not_made():
    plan = plan_table(spec(at(2, until="2024-01-01T12:00Z")), upserts(5), NOW)

    assert ([], []) == (steps(plan), notes(plan))


def test_a_savepoint_follows_another_time_in_the_spec():
    state = upserts(5, savepoints=(made(2, at(2)),))
    plan = plan_table(spec(at(3)), state, NOW)

    assert [("create", "q", stamp(3)), ("remove", "q", stamp(2))] == steps(plan)
    because = "q is declared at 2024-01-01T03:30Z, no longer at 2024-01-01T02:30Z"
    assert because == plan.steps[1].because


def test_nothing_is_pinned_before_its_time():
    early = DeclaredSavepoint(name="q", at="2024-01-02T00:00:01Z")
    plan = plan_table(spec(early), upserts(5), NOW)

    assert [] == steps(plan)
    assert ["no savepoint: q is made once 2024-01-02T00:00:01Z has passed"] == notes(plan)


def test_two_savepoints_of_one_instant_share_one_until_the_last_of_them_ends():
    first, second = at(2, "a", "2024-02-01"), at(2, "b", "2024-03-01")
    state = upserts(5)
    plan = plan_table(spec(first, second), state, NOW)
    assert [("create", "b", stamp(2))] == steps(plan)
    assert plan.steps[0].because.endswith("; it serves a too")

    state = replace(state, savepoints=(made(2, second),))
    assert [] == steps(plan_table(spec(first, second), state, NOW))
    assert [] == steps(plan_table(spec(first), state, NOW))
    later = datetime(2024, 2, 2, tzinfo=UTC)
    assert [] == steps(plan_table(spec(first, second), state, later))
    ended = datetime(2024, 3, 2, tzinfo=UTC)
    assert [("remove", "b", stamp(2))] == steps(plan_table(spec(first, second), state, ended))


def test_a_savepoint_that_never_ends_is_the_last_to_end():
    first, second = at(2, "a", "2024-02-01"), at(2, "b")

    assert [("create", "b", stamp(2))] == steps(plan_table(spec(first, second), upserts(5), NOW))


def test_a_savepoint_of_another_tool_is_reported_and_never_removed():
    state = upserts(5, savepoints=(foreign(1),))
    plan = plan_table(spec(at(1)), state, NOW)

    assert [] == steps(plan)
    assert notes(plan)[0].startswith(f"savepoint q is not made: {stamp(1)} has a savepoint by bob")
    (report,) = plan.other_savepoints
    assert ("bob", "c", 1, 10) == (report.made_by, report.comment, report.files, report.bytes)


def test_only_files_that_no_other_savepoint_keeps_count_for_one():
    both = frozenset({base("g", 1)})
    twice = (foreign(1), replace(foreign(0), files=both))
    plan = plan_table(spec(), upserts(5, savepoints=twice), NOW)

    assert [0, 0] == [report.files for report in plan.other_savepoints]


def test_a_savepoint_that_the_plan_removes_leaves_the_files_to_the_other_one():
    both = frozenset({base("g", 1)})
    twice = (foreign(1), replace(made(0, at(0)), files=both))
    plan = plan_table(spec(), upserts(5, savepoints=twice), NOW)

    assert [1] == [report.files for report in plan.other_savepoints]


@pytest.mark.parametrize("declared", [(at(2),), ()], ids=["wanted", "not wanted"])
def test_a_half_made_savepoint_of_a_dead_run_is_finished_or_undone(declared):
    state = upserts(5, savepoints=(made(2, at(2), completed=False),))
    plan = plan_table(spec(*declared), state, NOW)

    change = "create" if declared else "remove"
    assert [(change, "q", stamp(2))] == steps(plan)
    assert "; a run that died had begun to make or to remove it" in plan.steps[0].because


def test_a_half_made_savepoint_without_the_block_is_a_warning():
    state = upserts(5, savepoints=(made(2, at(2), completed=False),))
    plan = plan_table(spec(savepoints=None), state, NOW)

    assert [] == steps(plan)
    assert f"savepoint q of {stamp(2)} is half made" in notes(plan)[0]


def test_a_half_made_savepoint_of_another_tool_stays():
    state = upserts(5, savepoints=(foreign(2, completed=False),))
    plan = plan_table(spec(at(2)), state, NOW)

    assert [] == steps(plan)
    assert "another tool has begun a savepoint" in notes(plan)[0]


def lost(**more):
    return plan_table(spec(at(1)), upserts(5, **more), NOW)


def test_an_instant_before_the_last_cleans_boundary_is_lost():
    clean = CompletedClean(instant=stamp(6), is_blank=False, earliest_instant_to_retain=stamp(2))
    plan = lost(cleans=(clean,))

    assert [] == steps(plan)
    assert f"clean {stamp(6)} retains nothing before {stamp(2)}" in notes(plan)[0]


def test_an_instant_whose_files_a_clean_removed_is_lost():
    clean = CompletedClean(
        instant=stamp(6), is_blank=False, removed={"a": (base("h", 0), base("h", 1))}
    )
    names = {"a": [base("g", hour) for hour in range(5)] + [base("h", 2)]}
    state = table(names, [commit(hour) for hour in range(5)], cleans=(clean,))
    plan = plan_table(spec(at(1)), state, NOW)

    assert [] == steps(plan)
    assert "a clean has removed files that a read as of it needs" in notes(plan)[0]
    assert [("create", "q", stamp(2))] == steps(plan_table(spec(at(2)), state, NOW))


@pytest.mark.parametrize("more", [{}, {"b": (base("z", 0),)}, {"b": (), "c": (base("z", 0),)}])
def test_an_instant_whose_files_a_pending_clean_removes_is_lost(more):
    clean = PendingClean(
        instant=stamp(9), state="INFLIGHT", started_ms=0, files={"a": (base("g", 1),), **more}
    )
    plan = lost(pending_cleans=(clean,))

    assert [] == steps(plan)
    assert f"pending clean {stamp(9)} removes files of it" in notes(plan)[0]


def test_a_pending_clean_that_names_no_file_takes_no_instant():
    clean = PendingClean(instant=stamp(9), state="REQUESTED", started_ms=0, problem="it is empty")

    assert [] != steps(lost(pending_cleans=(clean,)))


def test_a_half_made_savepoint_of_a_lost_instant_goes():
    clean = CompletedClean(instant=stamp(6), is_blank=False, earliest_instant_to_retain=stamp(2))
    plan = lost(cleans=(clean,), savepoints=(made(1, at(1), completed=False),))

    assert [("remove", "q", stamp(1))] == steps(plan)


def test_no_commit_by_that_time_is_a_warning():
    plan = plan_table(spec(DeclaredSavepoint(name="q", at="2023-12-31")), table({"a": []}, []), NOW)
    assert "has no completed commit" in notes(plan)[0]

    plan = plan_table(spec(DeclaredSavepoint(name="q", at="2023-12-30")), upserts(2), NOW)
    assert f"begins with commit {stamp(0)}" in notes(plan)[0]


def test_a_date_is_the_end_of_that_day_in_the_tables_zone():
    day = DeclaredSavepoint(name="q", at="2023-12-31")
    state = upserts(5, timezone="LOCAL")
    plan = plan_table(spec(day, timezone="America/New_York"), state, NOW)
    assert "no commit completed by 2023-12-31" in notes(plan)[0]

    day = DeclaredSavepoint(name="q", at="2024-01-01")
    later = datetime(2024, 1, 2, 6, tzinfo=UTC)
    plan = plan_table(spec(day, timezone="America/New_York"), state, later)
    assert [("create", "q", stamp(4))] == steps(plan)


def test_savepoints_need_the_zone_of_the_timeline():
    plan = plan_table(spec(at(2)), upserts(5, timezone="LOCAL"), NOW)

    assert ["zone"] == [note.rule for note in plan.refusals]
    assert plan.refusals[0].because.startswith("savepoints needs the timeline's time zone")


def test_a_commit_that_was_completed_later_is_not_pinned():
    late = Instant(stamp(2), Action.COMMIT, State.COMPLETED, stamp(4))
    names = {"a": [base("g", hour) for hour in range(3)]}
    state = table(names, [commit(0), commit(1), late])

    assert [("create", "q", stamp(1))] == steps(plan_table(spec(at(2)), state, NOW))


def test_a_write_of_version_6_is_completed_when_its_file_was_written_unless_files_are_copies():
    instant = Instant(stamp(1), Action.COMMIT, State.COMPLETED)
    state = table({"a": [base("g", 1)]}, [instant], table_version=6, layout=1)
    state = replace(state, v6_completions={stamp(1): stamp(3)})

    assert ((stamp(1), stamp(3)),) == list_completed_writes(spec(), state)
    copied = spec(file_times="copied")
    assert ((stamp(1), stamp(1)),) == list_completed_writes(copied, state)


def test_a_group_that_was_replaced_by_then_is_not_pinned():
    names = {"a": [base("g", 0), base("h", 1)]}
    replaced = {("a", "g"): stamp(1)}
    state = table(names, [commit(0), commit(1), commit(2)], replaced=replaced)

    (before,) = plan_table(spec(at(0)), state, NOW).steps[:1]
    (after,) = plan_table(spec(at(1)), state, NOW).steps[:1]
    assert (stamp(0), 1, stamp(1), 1) == (before.instant, before.files, after.instant, after.files)
    assert "create" == after.change


def log(group, hour):
    return f".{group}_{stamp(hour)}.log.1_0-0-0"


def deltacommit(hour, state=State.COMPLETED):
    completed = f"{stamp(hour)[:-1]}5" if state is State.COMPLETED else None
    return Instant(stamp(hour), Action.DELTACOMMIT, state, completed)


def merge_on_read(names, instants, **more):
    return table({"a": names}, instants, table_type="MERGE_ON_READ", table_version=8, **more)


def pinned(state, hour):
    rows = find_pinned_rows(state, stamp(hour))
    return group_by_partition(state, rows)["a"]


def test_log_files_of_a_pending_write_are_not_pinned():
    names = [log("g", 1), log("g", 2), base("g", 0)]
    state = merge_on_read(names, [commit(0), deltacommit(1), deltacommit(2, State.INFLIGHT)])

    assert (log("g", 1), base("g", 0)) == pinned(state, 1)


def test_the_slice_below_a_pending_compaction_is_pinned_with_the_log_files_since():
    names = [log("g", 1), log("g", 3), base("g", 0)]
    compaction = Instant(stamp(2), Action.COMPACTION, State.REQUESTED)
    group = PendingCompactionGroup(
        instant=stamp(2),
        action=Action.COMPACTION,
        partition="a",
        file_id="g",
        base_instant=stamp(0),
    )
    instants = [commit(0), deltacommit(1), compaction, deltacommit(3)]
    state = merge_on_read(names, instants, compactions=(group,))

    assert tuple(names) == pinned(state, 3)
    assert (log("g", 1), base("g", 0)) == pinned(state, 1)
