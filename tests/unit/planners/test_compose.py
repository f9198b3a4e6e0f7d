"""The plan of one table: order, reasons, refusals and warnings."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.model import KEEP_RULES, CleanStep, Note, ResumeStep, RollbackStep
from reconciler.plans.refusals import refuse_apply
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.spec.active_timeline import ActiveTimeline
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import (
    Concurrency,
    FileSizes,
    Lock,
    Policy,
    Query,
    Retention,
    TableSpec,
)
from reconciler.state.archival_facts import ArchivalFacts
from reconciler.state.model import (
    CompletedClean,
    ForeignWrite,
    PendingClean,
    PendingClusteringSlice,
    Savepoint,
)
from tests.unit.planners.cow import base, commit, stamp, table, upserts

NOW = datetime(2024, 1, 2, tzinfo=UTC)
LOCKED = Concurrency(lock=Lock(provider="filesystem"))


def spec(retention, **more):
    return TableSpec(
        name="t", path="/t", retention=retention, concurrency=LOCKED, document={"a": 1}, **more
    )


def commits(keep, **more):
    return Retention(policy=Policy.COMMITS, keep=keep, **more)


def names(step):
    return step.files.name.to_pylist()


def clean_of(plan):
    return next((step for step in plan.steps if isinstance(step, CleanStep)), None)


def pending(hour=9, *, files=(), **more):
    return PendingClean(
        instant=stamp(hour),
        state="REQUESTED",
        started_ms=more.pop("started_ms", 0),
        files={"a": tuple(files)},
        **more,
    )


def clean(hour, removed=(), **more):
    return CompletedClean(
        instant=stamp(hour),
        is_blank=False,
        policy=more.pop("policy", None),
        earliest_instant_to_retain=more.pop("earliest", ""),
        last_completed_commit=more.pop("last", stamp(hour)),
        savepointed=(),
        removed={"a": tuple(removed)},
        extra=more.pop("extra", {}),
    )


def test_what_is_beyond_the_retention_goes_and_says_why():
    plan = plan_table(spec(commits(2)), upserts(5), NOW)
    step = clean_of(plan)

    assert stamp(3) == step.earliest_instant_to_retain
    assert [base("g", 0), base("g", 1)] == names(step)
    assert (
        f"superseded by {stamp(1)}, which is itself older than the earliest instant to retain "
        f"{stamp(3)} (2 commits)" == step.files.because[0].as_py()
    )
    assert (2, 20) == (plan.impact.files_removed, plan.impact.bytes_removed)
    assert (stamp(0), stamp(2)) == (
        plan.impact.earliest_readable_before,
        plan.impact.earliest_readable_after,
    )
    assert [("retention.commits", 2, 5)] == [(d.field, d.desired, d.actual) for d in plan.drift]
    assert () == plan.warnings


def test_the_state_is_written_down():
    state = upserts(3, savepoints=(Savepoint(instant=stamp(1), completed=True, files=frozenset()),))
    observed = plan_table(spec(commits(9)), state, NOW).observed

    assert (9, "COPY_ON_WRITE", stamp(2)) == (
        observed.table_version,
        observed.table_type,
        observed.last_completed,
    )
    assert ((stamp(1),), 3, 30, 1) == (
        observed.savepoints,
        observed.files,
        observed.bytes,
        observed.small_files,
    )


def test_few_commits_are_a_reason_to_do_nothing():
    plan = plan_table(spec(commits(10)), upserts(7), NOW)

    assert () == plan.steps
    assert () == plan.drift
    assert [
        Note(
            "nothingToDo",
            "nothing to do: the active timeline has 7 completed commits, retention keeps 10",
        )
    ] == list(plan.warnings)


def test_a_savepoint_that_pins_everything_is_the_reason():
    files = frozenset(base("g", hour) for hour in (0, 1))
    state = upserts(4, savepoints=(Savepoint(instant=stamp(1), completed=True, files=files),))
    plan = plan_table(spec(commits(1)), state, NOW)

    assert () == plan.steps
    assert [f"nothing to do: savepoint {stamp(1)} pins 2 slices"] == [
        note.because for note in plan.warnings
    ]
    assert ["savepoint"] * 2 == [KEEP_RULES[code] for code in plan.kept.rule]


def test_a_half_made_savepoint_protects_what_it_would_pin():
    state = upserts(
        5, savepoints=(Savepoint(instant=stamp(1), completed=False, files=frozenset()),)
    )
    plan = plan_table(spec(commits(1)), state, NOW)

    assert [base("g", 0), base("g", 2)] == names(clean_of(plan))
    assert [base("g", 1)] == plan.kept.name.to_pylist()


def test_a_pending_write_holds_back_and_is_named():
    instants = [*(commit(hour) for hour in (0, 1, 3, 4, 5)), commit(2, State.INFLIGHT)]
    state = table({"a": [base("g", hour) for hour in (0, 1, 3, 4, 5)]}, instants)
    plan = plan_table(spec(commits(1)), state, NOW)

    assert () == plan.steps
    assert Note(
        "pendingWrite",
        f"pending commit {stamp(2)} limits the earliest instant to retain to {stamp(1)} instead of "
        f"{stamp(5)}: roll it back or let its writer finish",
    ) in list(plan.warnings)
    assert {"pendingWrite"} == {KEEP_RULES[code] for code in plan.kept.rule}
    assert [base("g", hour) for hour in (0, 1, 3)] == plan.kept.name.to_pylist()


def test_a_pending_write_that_the_plan_rolls_back_holds_back_once_more():
    instants = [*(commit(hour) for hour in (0, 1, 3, 4, 5)), commit(2, State.INFLIGHT)]
    state = table({"a": [base("g", hour) for hour in (0, 1, 3, 4, 5)]}, instants)
    dead = ForeignWrite(instant=stamp(2), action=Action.COMMIT, state="INFLIGHT", active_ms=0)
    lazy = commits(1, failed_writes="LAZY")
    plan = plan_table(spec(lazy), replace(state, failed_writes=(dead,), observed_ms=10**13), NOW)

    assert [stamp(2)] == [step.instant for step in plan.steps if isinstance(step, RollbackStep)]
    (note,) = [note.because for note in plan.warnings if note.rule == "pendingWrite"]
    assert note.endswith(": a step of this plan ends it, and the next plan cleans further")


@pytest.mark.parametrize("capped", [None, 3])
def test_an_archival_leaves_what_the_clean_before_it_retains(capped):
    state = upserts(20, archival=ArchivalFacts())
    retained = commits(2, max_commits_per_run=capped)
    plan = plan_table(spec(retained, timeline=ActiveTimeline(keep="4..5")), state, NOW)
    earliest = clean_of(plan).earliest_instant_to_retain
    (archival,) = (step for step in plan.steps if isinstance(step, ArchiveStep))

    assert stamp(18 if capped is None else 3) == earliest
    assert earliest > max(one.instant for one in archival.instants)
    assert (capped is not None) == (archival.bound is not None)
    assert capped is None or archival.bound.because == (
        f"the clean of this plan retains the files from {earliest} on, until a newer clean"
    )


def test_pending_writes_hold_the_hours_boundary_back_too():
    instants = [*(commit(hour) for hour in (0, 1, 3, 4, 5)), commit(2, State.INFLIGHT)]
    state = table({"a": [base("g", hour) for hour in (0, 1, 3, 4, 5)]}, instants)
    hours = Retention(policy=Policy.HOURS, keep=19)
    plan = plan_table(spec(hours), state, NOW)

    assert () == plan.steps
    assert "pendingWrite" in {note.rule for note in plan.warnings}


def test_an_input_of_a_pending_clustering_stays():
    given = PendingClusteringSlice(
        instant=stamp(3), partition="a", file_id="g", base_file=base("g", 1), log_files=()
    )
    state = upserts(5, clusterings=(given,))
    plan = plan_table(spec(Retention(policy=Policy.FILE_VERSIONS, keep=1)), state, NOW)

    assert [base("g", hour) for hour in (0, 2, 3)] == names(clean_of(plan))
    assert [("pendingClustering", base("g", 1))] == [
        (KEEP_RULES[rule], name)
        for rule, name in zip(plan.kept.rule, plan.kept.name.to_pylist(), strict=True)
    ]


def test_file_versions_have_no_boundary_and_count_versions():
    plan = plan_table(spec(Retention(policy=Policy.FILE_VERSIONS, keep=2)), upserts(5), NOW)
    step = clean_of(plan)

    assert step.earliest_instant_to_retain is None
    assert [base("g", hour) for hour in (0, 1, 2)] == names(step)
    assert [("retention.fileVersions", 2, 5)] == [
        (d.field, d.desired, d.actual) for d in plan.drift
    ]


def test_the_cap_holds_from_the_first_clean_on():
    plan = plan_table(spec(commits(2, max_commits_per_run=3)), upserts(9), NOW)
    step = clean_of(plan)

    assert stamp(3) == step.earliest_instant_to_retain
    assert [base("g", 0), base("g", 1)] == names(step)
    assert {"cap"} == {KEEP_RULES[code] for code in plan.kept.rule}
    assert 4 == len(plan.kept)


def test_the_smallest_cap_still_gets_somewhere():
    plan = plan_table(spec(commits(2, max_commits_per_run=1)), upserts(9), NOW)

    assert [base("g", 0)] == names(clean_of(plan))


def test_a_capped_incremental_run_goes_as_far_as_a_partition_with_something_to_remove():
    writes = {0, 1, 5}
    state = table(
        {"a": [base("g", hour) for hour in sorted(writes)]},
        [commit(hour) for hour in range(8)],
        cleans=(clean(2, last=stamp(2), earliest=stamp(2)),),
        touched_partitions={
            stamp(hour): frozenset("a" if hour in writes else "") for hour in range(8)
        },
    )
    plan = plan_table(spec(commits(1, scan="incremental", max_commits_per_run=1)), state, NOW)
    step = clean_of(plan)

    assert stamp(6) == step.earliest_instant_to_retain
    assert [base("g", 0), base("g", 1)] == names(step)


def test_the_trigger_waits_for_enough_commits():
    state = upserts(6, cleans=(clean(4, last=stamp(4)),))
    plan = plan_table(spec(commits(1, after_commits=2)), state, NOW)

    assert () == plan.steps
    assert (
        f"nothing to do: 1 completed commit since clean {stamp(4)} (retention.afterCommits: 2)"
        == plan.warnings[0].because
    )
    assert plan_table(spec(commits(1, after_commits=1)), state, NOW).steps


def test_an_idle_table_under_hours_keeps_its_files_with_a_warning():
    plan = plan_table(spec(Retention(policy=Policy.HOURS, keep=2)), upserts(4), NOW)

    assert () == plan.steps
    assert ["idle"] == [note.rule for note in plan.warnings]


def test_hours_are_counted_in_the_zone_of_the_timeline():
    local = replace(upserts(5), timezone="LOCAL")
    hours = Retention(policy=Policy.HOURS, keep=1)
    berlin = plan_table(
        spec(hours, timezone="Europe/Berlin"), local, datetime(2024, 1, 1, 3, 30, tzinfo=UTC)
    )
    in_utc = plan_table(spec(hours, timezone="UTC"), local, datetime(2024, 1, 1, 4, tzinfo=UTC))

    assert stamp(4) == clean_of(berlin).earliest_instant_to_retain  # 04:30 in Berlin, less an hour
    assert stamp(3) == clean_of(in_utc).earliest_instant_to_retain


def test_hours_without_a_zone_are_refused_and_show_no_step():
    local = replace(upserts(5), timezone="LOCAL")
    plan = plan_table(spec(Retention(policy=Policy.HOURS, keep=1)), local, NOW)

    assert () == plan.steps
    assert ["zone"] == [note.rule for note in plan.refusals]
    assert () == plan.warnings


def test_a_clock_that_lies_is_refused():
    state = upserts(5)
    ahead = datetime(2024, 1, 1, 4, tzinfo=UTC) - timedelta(minutes=6)

    assert ["clock"] == [n.rule for n in plan_table(spec(commits(1)), state, ahead).refusals]
    assert () == plan_table(spec(commits(1)), state, ahead).steps
    assert () == plan_table(spec(commits(1)), state, ahead + timedelta(minutes=2)).refusals


def test_a_pending_restore_is_refused():
    restore = Instant(stamp(6), Action.RESTORE, State.INFLIGHT)
    state = table({"a": [base("g", h) for h in (0, 1)]}, [commit(0), commit(1), restore])
    plan = plan_table(spec(commits(1)), state, NOW)

    assert () == plan.steps
    assert ["pendingRestore"] == [note.rule for note in plan.refusals]


def test_a_suspended_table_is_refused_and_its_steps_are_shown():
    plan = plan_table(spec(commits(1), suspend=True), upserts(5), NOW)

    assert [Note("suspend", "the spec has suspend: true; remove it to continue")] == list(
        plan.refusals
    )
    assert clean_of(plan) is not None


def test_policies_are_asked_about_every_plan():
    policies = (
        GuardPolicy(name="gold", max_files_removed=2, protected=("t",), severity="warn"),
        GuardPolicy(name="all", min_retention={"hours": 24}, max_bytes_removed=29),
    )
    plan = plan_table(spec(commits(1), guarded_by=policies), upserts(5), NOW)
    idle = plan_table(spec(commits(1), guarded_by=policies), upserts(2), NOW)

    assert 3 == len(clean_of(plan).files)  # it is shown, because a reviewer may grant a waiver
    assert () == list_applied_steps(plan)
    assert 0 == plan.impact.files_removed
    assert plan.impact.earliest_readable_before == plan.impact.earliest_readable_after
    assert plan.drift
    assert ["minRetention", "maxBytesRemoved"] == [note.rule for note in plan.refusals]
    assert ["protected", "maxFilesRemoved"] == [note.rule for note in plan.warnings]
    assert ["minRetention"] == [note.rule for note in idle.refusals]


def test_a_policy_is_asked_where_the_table_itself_is_refused():
    policies = (GuardPolicy(name="all", min_retention={"hours": 24}),)
    state = replace(upserts(5), timezone="LOCAL")
    hours = Retention(policy=Policy.HOURS, keep=1)
    plan = plan_table(spec(hours, guarded_by=policies), state, NOW)

    assert ["zone", "minRetention"] == [note.rule for note in plan.refusals]


def test_file_sizes_for_new_rows_alone_make_no_step():
    asked = (Query(name="q", where="a = 1"),)
    plan = plan_table(spec(commits(2), files=FileSizes(), queries=asked), upserts(5), NOW)

    assert (["clean"], ()) == ([step.kind for step in plan.steps], plan.warnings)


def test_what_only_apply_needs_is_a_warning_in_a_plan_and_a_refusal_in_an_apply():
    bare = TableSpec(name="t", path="/t", retention=commits(1))
    local = replace(upserts(5), timezone="LOCAL")

    assert ["lock", "zone"] == [n.rule for n in plan_table(bare, local, NOW).warnings]
    assert () == plan_table(bare, local, NOW).refusals
    assert ["lock", "zone"] == [n.rule for n in refuse_apply(bare, local, NOW)]
    assert () == refuse_apply(spec(commits(1)), upserts(5), NOW)


def test_a_file_lock_on_an_object_store_blocks_an_apply_unless_only_reconciler_writes():
    def refuse(**fields):
        lock = Lock(provider="filesystem", **fields)
        placed = replace(spec(commits(1)), path="gs://b/t", concurrency=Concurrency(lock=lock))
        return [note.rule for note in refuse_apply(placed, upserts(5), NOW)]

    assert ["lock"] == refuse()
    assert [] == refuse(single_writer=True)


def test_no_retention_means_no_step_not_even_a_resume():
    state = upserts(5, pending_cleans=(pending(files=[base("g", 0)]),))
    plan = plan_table(spec(None), state, NOW)

    assert () == plan.steps
    assert ["pendingClean"] == [note.rule for note in plan.warnings]


def test_a_resume_comes_first_and_its_files_are_not_repeated():
    state = upserts(5, pending_cleans=(pending(files=[base("g", 0)]),))
    resume, step = plan_table(spec(commits(1)), state, NOW).steps

    assert isinstance(resume, ResumeStep)
    assert [base("g", 0)] == names(resume)
    assert [base("g", hour) for hour in (1, 2)] == names(step)


def test_a_young_clean_of_another_writer_stops_the_clean():
    young = pending(files=[base("g", 0)], started_ms=int(NOW.timestamp() * 1000) - 1000)
    plan = plan_table(spec(commits(1)), upserts(5, pending_cleans=(young,)), NOW)

    assert () == plan.steps
    assert ["pendingClean"] == [note.rule for note in plan.warnings]
    assert 0 == plan.impact.files_removed


def test_a_clean_of_ours_is_resumed_however_young():
    ours = pending(
        files=[base("g", 0)],
        started_ms=int(NOW.timestamp() * 1000),
        extra={"reconciler.plan.digest": "sha256:0"},
    )
    plan = plan_table(spec(commits(1)), upserts(5, pending_cleans=(ours,)), NOW)

    assert ["resume", "clean"] == [step.kind for step in plan.steps]


def test_without_a_lock_another_writers_clean_is_left_alone():
    alone = replace(spec(commits(1)), concurrency=Concurrency(lock=Lock(provider="none")))
    state = upserts(5, pending_cleans=(pending(files=[base("g", 0)]),))
    plan = plan_table(alone, state, NOW)

    assert () == plan.steps
    assert ["pendingClean"] == [note.rule for note in plan.warnings]


def test_another_retention_among_the_writers_is_drift():
    writers = clean(4, policy="KEEP_LATEST_FILE_VERSIONS")
    plan = plan_table(spec(commits(9)), upserts(5, cleans=(writers,)), NOW)

    assert [("retention.policy", "KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS")] == [
        (d.field, d.desired, d.actual) for d in plan.drift
    ]


def test_a_partition_whose_groups_are_all_replaced_goes_whole():
    swap = Instant(stamp(2), Action.REPLACECOMMIT, State.COMPLETED, f"{stamp(2)[:-1]}5")
    state = table(
        {"a": [base("g", 0)], "b": [base("h", hour) for hour in (1, 3, 4)]},
        [commit(0), commit(1), swap, commit(3), commit(4)],
        replaced={("a", "g"): stamp(2)},
    )
    step = clean_of(plan_table(spec(commits(1)), state, NOW))

    assert ("a",) == step.delete_partitions
    assert [0, 1] == step.files.rule.tolist()[::-1]  # a's file was replaced, b's superseded
    assert (
        f"its file group was replaced at {stamp(2)}, before the earliest instant to retain "
        f"{stamp(4)} (1 commit)" == step.files.because[0].as_py()
    )


def test_a_partition_that_holds_savepointed_files_stays():
    swap = Instant(stamp(2), Action.REPLACECOMMIT, State.COMPLETED, f"{stamp(2)[:-1]}5")
    saved = Savepoint(instant=stamp(0), completed=True, files=frozenset({base("g", 0)}))
    state = table(
        {"a": [base("g", 0)], "b": [base("h", hour) for hour in (1, 3, 4)]},
        [commit(0), commit(1), swap, commit(3), commit(4)],
        replaced={("a", "g"): stamp(2)},
        savepoints=(saved,),
    )

    assert () == clean_of(plan_table(spec(commits(1)), state, NOW)).delete_partitions


def test_a_partition_stays_while_a_write_is_pending():
    instants = [commit(0), commit(1), commit(2, State.INFLIGHT)]
    state = table({"a": [base("g", 0), base("g", 1)], "b": []}, instants)
    plan = plan_table(spec(commits(1)), state, NOW)

    assert () == plan.steps
    assert (
        "1 empty partition folder (such as b) can be deleted only while no write is pending; "
        "commit "
        f"{stamp(2)} is pending" in [note.because for note in plan.warnings]
    )


def test_a_moment_needs_a_zone():
    with pytest.raises(ValueError, match="zone"):
        plan_table(spec(commits(1)), upserts(2), datetime(2024, 1, 2))  # noqa: DTZ001


def test_an_empty_partition_makes_a_clean_by_itself():
    state = table({"a": [base("g", 0), base("g", 1)], "b": []}, [commit(0), commit(1)])
    step = clean_of(plan_table(spec(commits(1)), state, NOW))

    assert ("b",) == step.delete_partitions
    assert [] == names(step)
