"""Dead writes of ours as literals: which have a step, with what, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.planners.compose import plan_table
from reconciler.planners.recovery.rollback_write import plan_rollbacks
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import CleanStep, ResumeStep, RollbackStep
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import Concurrency, Lock, Policy, Retention, TableSpec
from reconciler.state.model import PendingClean, PendingWrite
from tests.unit.planners.cow import base, commit, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
BEAT_MS = 1_704_090_000_000
ANN = Owner(who="ann", host="a", pid=7, started="1", tool="tool 1", token="x")
SPEC = TableSpec(
    name="t",
    path="/t",
    retention=Retention(policy=Policy.COMMITS, keep=2),
    concurrency=Concurrency(lock=Lock(provider="filesystem")),
    document={"a": 1},
)


#: a log file in the slice that another write began
LOG = f".h_{stamp(1)}.log.2_0-0-0"


def write(hour, **more):
    found = PendingWrite(
        instant=stamp(hour),
        action=Action.COMMIT,
        state="INFLIGHT",
        owner=ANN,
        beat_ms=BEAT_MS,
        is_running=False,
    )
    return replace(found, **more)


def state_of(*writes, names=None, **more):
    """Four upserts of one file group, and pending writes at some hours."""
    there = {"a": [base("g", hour) for hour in range(4)]} | (names or {})
    instants = [commit(hour) for hour in range(4)]
    instants += [commit(int(one.instant[8:10]), State.INFLIGHT) for one in writes]
    return table(there, instants, pending_writes=writes, **more)


def named(step):
    pairs = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return list(pairs)


def test_a_dead_write_is_taken_back_with_its_files_in_order():
    names = {"b": [base("h", 5), base("g", 5), base("h", 1)], "c": ["stray_5", base("i", 6)]}
    unlisted = (("0", base("z", 5), 3), ("c/d", base("a", 5), 4))
    (step,) = plan_rollbacks(state_of(write(5, unlisted=unlisted), names=names))

    assert (stamp(5), "commit") == (step.instant, step.action)
    assert [
        ("0", base("z", 5)),
        ("b", base("g", 5)),
        ("b", base("h", 5)),
        ("c/d", base("a", 5)),
    ] == named(step)
    assert (
        f"commit {stamp(5)} of ann on a, process 7 (tool 1) was left inflight: its process is "
        "dead; apply rolls it back and deletes 4 files that no reader has seen" == step.because
    )


@pytest.mark.parametrize("logs", [(), (("b", LOG), ("b", "gone"))])
def test_log_files_that_a_write_has_announced_go_with_it_before_version_8(logs):
    names = {"b": [base("h", 5), f".h_{stamp(5)}.log.1_0-0-0", LOG]}
    state = state_of(write(5, logs=logs), names=names, table_version=6)
    (step,) = plan_rollbacks(state)

    assert [*logs[:1], ("b", base("h", 5))] == named(step)


def test_log_files_are_named_by_their_write_from_version_8_on():
    own = f".h_{stamp(5)}.log.1_0-0-0"
    names = {"b": [base("h", 5), own, f"{own}.cdc", LOG]}
    (step,) = plan_rollbacks(state_of(write(5), names=names, table_version=9))

    assert [("b", own), ("b", base("h", 5))] == named(step)


def test_a_write_that_has_made_no_file_is_taken_back_too():
    (step,) = plan_rollbacks(state_of(write(5, state="REQUESTED")))

    assert [] == named(step)
    assert step.because.endswith("was left requested: its process is dead; apply rolls it back")


def test_every_dead_write_has_a_step_the_oldest_first():
    steps = plan_rollbacks(state_of(write(5), write(6), write(7, is_running=True), write(8)))

    assert [stamp(5), stamp(6), stamp(8)] == [step.instant for step in steps]


@pytest.mark.parametrize(
    ("more", "seconds", "says"),
    [
        ({"is_running": True}, 9999, None),
        ({"is_running": None}, 300, None),
        ({"is_running": None}, 301, "its last heartbeat was at 2024-01-01 06:20:00 UTC"),
        ({"is_running": False}, 0, "its process is dead"),
        (
            {"owner": replace(ANN, ended=True), "is_running": True},
            0,
            "its process ended before it was complete",
        ),
    ],
)
def test_dead_is_who_is_gone_or_ended_or_was_not_heard_of_for_five_minutes(more, seconds, says):
    state = state_of(write(5, **more), observed_ms=BEAT_MS + seconds * 1000)
    steps = plan_rollbacks(state)

    assert ([] if says is None else [True]) == [says in step.because for step in steps]


def test_what_another_writer_is_rolling_back_has_no_step_and_stops_no_other():
    state = state_of(write(1, is_rolled_back=True))
    plan = plan_table(SPEC, state, NOW)

    assert ["clean"] == [step.kind for step in plan.steps]
    (note,) = (one for one in plan.warnings if one.rule == "pendingRollback")
    assert (
        f"commit {stamp(1)} of ann on a, process 7 (tool 1) was left inflight: its process is "
        "dead; another writer's rollback of it is pending and must be finished" == note.because
    )


def test_it_stands_after_what_is_resumed_and_before_the_clean():
    clean = PendingClean(instant=stamp(4), state="REQUESTED", started_ms=0, problem="empty")
    instants = Instant(stamp(4), Action.CLEAN, State.REQUESTED)
    state = state_of(write(5), pending_cleans=(clean,))
    assert instants.action is Action.CLEAN

    plan = plan_table(SPEC, state, NOW)

    assert [ResumeStep, RollbackStep, CleanStep] == [type(step) for step in plan.steps]


def test_the_other_steps_are_those_beside_a_pending_write():
    dead, living = state_of(write(1)), state_of(write(1, is_running=True))
    (rollback, *others) = plan_table(SPEC, dead, NOW).steps
    beside = plan_table(SPEC, living, NOW)

    assert "rollback" == rollback.kind
    assert [step.files.name.to_pylist() for step in beside.steps] == [
        step.files.name.to_pylist() for step in others
    ]


def test_its_files_are_in_no_figure_and_no_guardrail_weighs_them():
    state = state_of(write(5), names={"b": [base("h", 5)]})
    spec = replace(SPEC, retention=Retention(policy=Policy.COMMITS, keep=9))
    plan = plan_table(spec, state, NOW)
    none = GuardPolicy(name="p", max_files_removed=0, max_bytes_removed=0)

    assert ["rollback"] == [step.kind for step in plan.steps]
    assert (0, 0) == (plan.impact.files_removed, plan.impact.bytes_removed)
    assert () == evaluate_policies(plan, replace(spec, guarded_by=(none,)), NOW).refusals


def test_a_table_that_is_suspended_shows_the_step_and_refuses_it():
    plan = plan_table(replace(SPEC, suspend=True), state_of(write(5)), NOW)

    assert "rollback" in [step.kind for step in plan.steps]
    assert ["suspend"] == [note.rule for note in plan.refusals]


def test_nothing_is_planned_where_no_reading_of_the_table_is_right():
    late = datetime(2023, 1, 1, tzinfo=UTC)
    plan = plan_table(SPEC, state_of(write(5)), late)

    assert (["clock"], ()) == ([note.rule for note in plan.refusals], plan.steps)
