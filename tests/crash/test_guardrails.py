"""An apply asks today's policies once more, and keeps what readers need today."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import reconciler
from reconciler.executor.freshness import take_files
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import CleanStep, Impact
from reconciler.plans.plan import Plan
from reconciler.spec.guard_policy import GuardPolicy, Waiver
from tests.crash.drill import (
    CASES,
    NOW,
    Drill,
    Killed,
    list_data_files,
    list_traces,
    make_drill,
    read_cleans,
)
from tests.storage_wrappers import FaultyStorage, StorageFault

KINDS = ["cow_basic__0.15.0", "cow_basic__1.2.0"]
READERS = "commits: 2}\n  readers: {incrementalConsumers: [{name: fraud, maxLag: 1h}]"


@pytest.fixture(params=KINDS)
def it(request, tmp_path) -> Drill:
    """A table with two partitions and history to remove."""
    return make_drill(CASES / request.param / "table.zip", tmp_path / "t", retention="commits: 2")


def under(it: Drill, *policies: GuardPolicy):
    """Today's specs, with policies over them."""
    return [replace(it.spec, guarded_by=policies)]


def limit(files, *waivers):
    return GuardPolicy(name="gold", max_files_removed=files, waivers=waivers)


def waiver(until):
    return Waiver(rule="maxFilesRemoved", table="t", until=until, reason="backfill")


def planned(plan: Plan) -> set[str]:
    (step,) = (s for s in plan.tables[0].steps if isinstance(s, CleanStep))
    rows = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return {f"{partition}/{name}" for partition, name in rows}


def moment(instant: str) -> datetime:
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def first_of(plan: Plan, count: int) -> Plan:
    """The same plan, reviewed down to its first files."""
    (table,) = plan.tables
    (step,) = table.steps
    fewer = replace(step, files=take_files(step.files, np.arange(len(step.files)) < count))
    impact = replace(table.impact, files_removed=count)
    return replace(plan, tables=(replace(table, steps=(fewer,), impact=impact),))


def test_a_policy_of_today_refuses_what_was_reviewed(it):
    plan, before = it.plan(), list_data_files(it.table)
    many = len(planned(plan))
    [result] = it.apply(plan, specs=under(it, limit(many - 1))).tables

    assert (3, ["maxFilesRemoved"]) == (result.code, [note.rule for note in result.refusals])
    assert before == list_data_files(it.table)
    assert [] == list_traces(it.table)
    assert 0 == it.apply(plan, specs=under(it, limit(many))).exit_code


def test_a_waiver_that_ended_since_the_review_waives_nothing(it):
    then = NOW - timedelta(hours=1)
    waived = limit(0, waiver("2026-11-30"))
    plan, before = it.plan(), list_data_files(it.table)
    result = it.apply(plan, specs=under(it, waived), now=then)

    assert (3, before) == (result.exit_code, list_data_files(it.table))
    assert "ended on 2026-11-30 (backfill)" in result.tables[0].refusals[0].because


def test_a_waiver_in_force_is_named_in_the_result(it):
    result = it.apply(it.plan(), specs=under(it, limit(0, waiver("2026-12-01"))))

    assert 0 == result.exit_code
    assert ["maxFilesRemoved"] == [note.rule for note in result.tables[0].warnings]
    assert result.tables[0].warnings[0].because.startswith("waived until 2026-12-01 (backfill)")


def test_what_the_plan_refuses_stays_refused_under_a_wider_policy(it):
    plan = it.plan()
    made = replace(it.spec, guarded_by=(limit(0),))
    (table,) = plan.tables
    refusals = evaluate_policies(table, made, NOW).refusals
    blocked = replace(plan, tables=(replace(table, refusals=refusals),))

    assert 3 == it.apply(blocked, specs=under(it, limit(99))).exit_code


def test_a_clean_that_was_begun_counts_once(it):
    plan = it.plan()
    policy = limit(len(planned(plan)))
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    result = it.apply(plan, specs=under(it, policy))

    assert 0 == result.exit_code
    assert not planned(plan) & list_data_files(it.table)


def test_a_clean_that_was_begun_counts_though_the_plan_does_not_name_it(it):
    whole = it.plan()
    with pytest.raises(Killed):
        it.apply(whole, around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    before = list_data_files(it.table)
    result = it.apply(first_of(whole, 1), specs=under(it, limit(1)))

    assert ["maxFilesRemoved"] == [note.rule for note in result.tables[0].refusals]
    assert before == list_data_files(it.table)
    assert 0 == it.apply(first_of(whole, 1), specs=under(it, limit(99))).exit_code


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_reader_needs_at_the_time_of_the_apply_stays(kind, tmp_path):
    it = make_drill(CASES / kind / "table.zip", tmp_path / "t", retention=READERS)
    plan, before = it.plan(), list_data_files(it.table)
    written = moment(it.state().timeline.commits[-1].requested)
    result = it.apply(plan, now=written + timedelta(minutes=1))

    assert planned(plan)
    assert before == list_data_files(it.table)
    assert 4 == result.exit_code
    because = result.tables[0].outcomes[0].left_out.because.to_pylist()
    assert all(why.startswith("consumer fraud lags 1h and may read") for why in because)


@pytest.mark.parametrize("kind", KINDS)
def test_the_boundary_of_a_clean_is_no_later_than_what_readers_keep(kind, tmp_path):
    it = make_drill(CASES / kind / "table.zip", tmp_path / "t", retention=READERS)
    state = it.state()
    times = sorted(i.requested for i in state.timeline.commits)
    now = moment(times[len(times) // 2]) + timedelta(hours=1)
    plan = reconciler.plan([it.spec], now=now)
    (step,) = plan.tables[0].steps
    readers = plan.tables[0].kept.name.to_pylist()
    result = it.apply(plan, now=now)
    [(earliest, _)] = read_cleans(it.table)

    assert 0 == result.exit_code
    assert readers
    assert min(name.rpartition("_")[2].partition(".")[0] for name in readers) == earliest
    assert earliest < step.earliest_instant_to_retain


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_that_was_begun_leaves_what_readers_need_by_now(kind, tmp_path):
    it = make_drill(CASES / kind / "table.zip", tmp_path / "t", retention=READERS)
    needed = moment(it.state().timeline.commits[-1].requested) + timedelta(hours=1)
    it.clock.ms = int((needed + timedelta(minutes=2)).timestamp() * 1000)
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    before = list_data_files(it.table)
    result = it.apply(plan, now=needed - timedelta(minutes=2))

    assert planned(plan) & before
    assert before == list_data_files(it.table)
    assert "undone" == result.tables[0].outcomes[0].how
    assert [] == list_traces(it.table)


@pytest.mark.parametrize(
    ("rule", "limits"),
    [("maxFilesRemoved", {"max_files_removed": 0}), ("maxBytesRemoved", {"max_bytes_removed": 1})],
)
def test_a_plan_that_belittles_what_it_removes_is_weighed_by_what_is_there(it, rule, limits):
    plan, before = it.plan(), list_data_files(it.table)
    (table,) = plan.tables
    (step,) = table.steps
    files = replace(step.files, bytes=np.zeros_like(step.files.bytes))
    edited = replace(table, steps=(replace(step, files=files),), impact=Impact())
    [result] = it.apply(
        replace(plan, tables=(edited,)), specs=under(it, GuardPolicy(name="gold", **limits))
    ).tables

    assert (3, [rule]) == (result.code, [note.rule for note in result.refusals])
    assert before == list_data_files(it.table)


def test_a_result_tells_the_bytes_that_went_whatever_the_plan_says(it):
    plan = it.plan()
    (table,) = plan.tables
    (step,) = table.steps
    files = replace(step.files, bytes=np.zeros_like(step.files.bytes))
    edited = replace(table, steps=(replace(step, files=files),))
    [result] = it.apply(replace(plan, tables=(edited,))).tables

    assert table.impact.bytes_removed == result.outcomes[0].bytes > 0
