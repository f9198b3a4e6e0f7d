"""Failed writes of other writers as literals: which have a step, with what, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.rollback import RollbackPlan, RollbackRequest
from reconciler.planners.compose import plan_table
from reconciler.planners.recovery.rollback_clustering import (
    list_abandoned,
    plan_clustering_rollbacks,
    warn_of_abandoned_clusterings,
)
from reconciler.planners.recovery.rollback_failed_write import (
    find_log_appends,
    plan_failed_writes,
    warn_of_failed_writes,
)
from reconciler.plans.model import LogAppend, RollbackStep
from reconciler.spec.model import (
    Concurrency,
    Lock,
    PendingServices,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.model import ForeignWrite, PendingClusteringSlice, PendingRollback
from tests.unit.planners.cow import base, commit, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
NOW_MS = 1_704_153_600_000
MINUTE_MS = 60_000
ANN = Owner(who="ann", host="a", pid=7, started="1", tool="tool 1", token="x")
SPEC = TableSpec(
    name="t",
    path="/t",
    retention=Retention(policy=Policy.COMMITS, keep=2, failed_writes="LAZY"),
    concurrency=Concurrency(lock=Lock(provider="filesystem"), stale_after=3600),
    document={"a": 1},
)


def make_spec(policy="LAZY", provider="filesystem"):
    retention = replace(SPEC.retention, failed_writes=policy)
    concurrency = Concurrency(lock=Lock(provider=provider), stale_after=3600)
    return replace(SPEC, retention=retention, concurrency=concurrency)


def write(hour, minutes, **more):
    """A write that was active so many minutes ago, with a heartbeat."""
    active = NOW_MS - minutes * MINUTE_MS
    found = ForeignWrite(
        instant=stamp(hour),
        action=Action.COMMIT,
        state="INFLIGHT",
        active_ms=active,
        beat_ms=active,
    )
    return replace(found, **more)


def rollback(hour, target, minutes=600, action="commit", requests=(), **more):
    found = PendingRollback(
        instant=stamp(hour),
        state="INFLIGHT",
        active_ms=NOW_MS - minutes * MINUTE_MS,
        plan=RollbackPlan(target=stamp(target), action=action, requests=requests),
    )
    return replace(found, **more)


def state_of(*writes, names=None, rollbacks=(), **more):
    """Five upserts of one file group, and pending writes at some hours."""
    there = {"a": [base("g", hour) for hour in range(5)]} | (names or {})
    instants = [commit(hour) for hour in range(5)]
    instants += [commit(int(one.instant[8:10]), State.INFLIGHT) for one in writes]
    instants += [Instant(one.instant, Action.ROLLBACK, State.INFLIGHT) for one in rollbacks]
    more = {"failed_writes": writes, "pending_rollbacks": rollbacks} | more
    return table(there, instants, observed_ms=NOW_MS, **more)


def list_named(step):
    return [*zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)]


def test_a_write_without_a_heartbeat_for_two_minutes_is_rolled_back_with_every_file_it_named():
    log = f".g_{stamp(6)}.log.1_0-0-0"
    names = {"b": [base("h", 6), log, base("h", 1)]}
    unlisted = (("c", base("z", 6), 3),)
    state = state_of(write(6, 3, unlisted=unlisted), names=names)
    (step,) = plan_failed_writes(SPEC, state)

    assert (stamp(6), "commit", "foreign") == (step.instant, step.action, step.writer)
    assert [("b", log), ("b", base("h", 6)), ("c", base("z", 6))] == list_named(step)
    assert (
        f"commit {stamp(6)} of another writer was left inflight: its last heartbeat was at "
        "2024-01-01 23:57:00 UTC, and a writer counts as dead after 2m without one; apply rolls "
        "it back and deletes 3 files that no reader has seen" == step.because
    )


@pytest.mark.parametrize(
    ("found", "is_dead"),
    [
        (write(6, 2), False),
        (write(6, 3), True),
        (write(6, 60, beat_ms=None), False),
        (write(6, 61, beat_ms=None), True),
        (write(6, 1, beat_ms=NOW_MS - 90 * MINUTE_MS), False),  # its markers are new
    ],
)
def test_a_writer_is_dead_by_its_heartbeat_else_by_stale_after(found, is_dead):
    assert is_dead == bool(plan_failed_writes(SPEC, state_of(found)))
    assert () == warn_of_failed_writes(make_spec("NEVER"), state_of(write(6, 2)), None)


def test_without_a_heartbeat_the_plan_names_stale_after():
    (step,) = plan_failed_writes(SPEC, state_of(write(6, 61, beat_ms=None, state="REQUESTED")))

    assert "was left requested: it has no heartbeat and changed nothing since" in step.because
    assert step.because.endswith("longer than concurrency.staleAfter, 1h; apply rolls it back")


def test_the_newest_write_goes_first():
    steps = plan_failed_writes(SPEC, state_of(write(6, 9), write(7, 9)))

    assert [stamp(7), stamp(6)] == [step.instant for step in steps]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (make_spec("EAGER"), "with retention.failedWrites: EAGER the next write of Hudi rolls it"),
        (make_spec("NEVER"), "retention.failedWrites: NEVER leaves it; roll it back with Hudi"),
        (make_spec(provider="none"), "without a lock it cannot be known to be left behind"),
    ],
)
def test_other_policies_and_no_lock_only_report_what_is_held_back(spec, text):
    found = write(2, 9)
    plan = plan_table(spec, state_of(found), NOW)
    (note,) = [note for note in plan.warnings if note.rule == "failedWrite"]

    assert [] == [step for step in plan.steps if isinstance(step, RollbackStep)]
    assert text in note.because
    assert f"commit {stamp(2)} of another writer was left inflight" in note.because


def test_a_planned_rollback_says_what_its_write_holds_back_until_then():
    early = write(1, 9, instant=f"{stamp(1)[:-1]}7")
    names = {"b": [base("h", hour) for hour in range(5)]}
    state = state_of(names=names, failed_writes=(early,))
    pending = TimelineFile(Instant(early.instant, Action.COMMIT, State.INFLIGHT), "x", 1, 0)
    state = replace(state, timeline=Timeline.from_files((*state.timeline.files, pending)))
    plan = plan_table(SPEC, state, NOW)
    (note,) = [note for note in plan.warnings if note.rule == "failedWrite"]

    assert [early.instant] == [s.instant for s in plan.steps if isinstance(s, RollbackStep)]
    assert (
        f"commit {early.instant} of another writer holds back the removal of 4 files in 2 "
        "partitions until it is rolled back" == note.because
    )


def test_nothing_is_said_of_failed_writes_that_the_spec_does_not_mention():
    assert () == plan_failed_writes(make_spec(None), state_of(write(6, 9)))
    assert () == warn_of_failed_writes(make_spec(None), state_of(write(6, 9)), None)


def test_a_stale_rollback_is_finished_in_place_of_a_new_one():
    state = state_of(write(6, 900), names={"b": [base("h", 6)]}, rollbacks=(rollback(8, 6),))
    (step,) = plan_failed_writes(SPEC, state)

    assert (stamp(6), stamp(8), "foreign") == (step.instant, step.rollback, step.writer)
    assert [("b", base("h", 6))] == list_named(step)
    assert f"rollback {stamp(8)} of commit {stamp(6)} by another writer was left" in step.because
    assert "apply finishes it and deletes 1 file that no reader has seen" in step.because


@pytest.mark.parametrize(
    ("pending", "is_planned"),
    [
        (rollback(8, 6, minutes=60), False),
        (rollback(8, 6, minutes=61), True),
        (rollback(8, 6, minutes=1, owner=ANN, is_running=False), True),
        (rollback(8, 6, minutes=90, owner=ANN, is_running=True), False),
        (rollback(8, 6, minutes=4, owner=ANN), False),
        (rollback(8, 6, minutes=6, owner=ANN), True),
        (rollback(8, 6, minutes=1, owner=replace(ANN, ended=True)), True),
    ],
)
def test_a_rollback_is_stale_by_its_owner_else_by_stale_after(pending, is_planned):
    steps = plan_failed_writes(SPEC, state_of(write(6, 900), rollbacks=(pending,)))

    assert is_planned == bool(steps)


@pytest.mark.parametrize(
    ("pending", "text"),
    [
        (rollback(8, 6, plan=None, problem="it is damaged"), "it is damaged; finish or remove it"),
        (rollback(8, 6, action="compaction"), "it undoes a compaction; finish it with Hudi"),
        (rollback(8, 3), "it undoes a completed write, whose rows readers see"),
    ],
)
def test_rollbacks_that_cannot_be_finished_are_reported(pending, text):
    state = state_of(rollbacks=(pending,))
    (note,) = warn_of_failed_writes(SPEC, state, None)

    assert () == plan_failed_writes(SPEC, state)
    assert text in note.because


def make_logs(*names):
    return build_files([("a", list(names), [10] * len(names))], ".parquet")


def log(group, hour, version):
    return f".{group}_{stamp(hour)}.log.{version}_0-0-{version}"


def merge_on_read(found, files):
    state = state_of(found, table_type="MERGE_ON_READ", table_version=6)
    return replace(state, files=files)


def append(group, hour, *logs):
    return LogAppend(partition="a", file_id=group, base_instant=stamp(hour), logs=logs)


def test_log_files_that_a_marker_names_get_a_command_block_in_their_slice():
    files = make_logs(base("g", 1), log("g", 1, 1), log("g", 1, 2), log("h", 6, 1))
    marked = (("a", log("g", 1, 2)), ("a", log("h", 6, 1)), ("a", log("i", 1, 1)))
    state = merge_on_read(write(6, 9, marked_logs=marked), files)
    (step,) = plan_failed_writes(SPEC, state)

    assert (append("g", 1, log("g", 1, 2)),) == step.appends
    assert [("a", log("h", 6, 1))] == list_named(step)
    assert ", and cancels its rows in the log files of 1 file slice" in step.because


def test_without_markers_every_log_file_of_the_slices_in_the_profile_counts():
    files = make_logs(base("g", 1), log("g", 1, 1), log("g", 1, 2), log("g", 0, 1), log("k", 1, 1))
    slices = frozenset({("a", "g", stamp(1)), ("a", "x", stamp(1)), ("b", "g", stamp(1))})
    found = write(6, 9, updated_slices=slices)

    expected = (append("g", 1, log("g", 1, 1), log("g", 1, 2)),)
    assert expected == find_log_appends(found, merge_on_read(found, files))
    later = replace(merge_on_read(found, files), table_version=8)
    assert () == find_log_appends(found, later)


def test_a_write_whose_log_files_are_unknown_stays_and_is_reported():
    state = merge_on_read(write(6, 9, problem="x.inflight: is damaged"), make_logs(base("g", 1)))
    (note,) = warn_of_failed_writes(SPEC, state, None)

    assert () == plan_failed_writes(SPEC, state)
    assert "it stays, because x.inflight: is damaged" in note.because


def test_a_pending_rollback_names_the_slices_that_still_have_log_files():
    requests = (
        RollbackRequest(
            partition="a", file_id="g", base_instant=stamp(1), log_blocks={log("g", 1, 2): 1}
        ),
        RollbackRequest(
            partition="a", file_id="x", base_instant=stamp(1), log_blocks={log("x", 1, 2): 1}
        ),
    )
    files = make_logs(base("g", 1), log("g", 1, 1), log("g", 1, 2))
    state = replace(
        merge_on_read(write(6, 900), files), pending_rollbacks=(rollback(8, 6, requests=requests),)
    )
    (step,) = plan_failed_writes(SPEC, state)

    assert (append("g", 1, log("g", 1, 2)),) == step.appends


# clusterings


def clustering_spec(what="rollback", after=21_600, failed_writes=None, provider="filesystem"):
    found = make_spec(failed_writes, provider)
    services = PendingServices(clustering=what, after=after)
    return replace(found, concurrency=replace(found.concurrency, pending=services))


def clustering(hour, minutes, **more):
    return write(hour, minutes, action=Action.CLUSTERING, beat_ms=None, **more)


def state_with(*clusterings, rollbacks=(), names=None):
    slices = [
        PendingClusteringSlice(
            instant=one.instant, partition="a", file_id=group, base_file=None, log_files=()
        )
        for one in clusterings
        for group in ("g", "h")
    ]
    return state_of(
        names=names,
        foreign_clusterings=clusterings,
        clusterings=tuple(slices),
        pending_rollbacks=rollbacks,
    )


def test_a_clustering_is_rolled_back_when_nothing_of_it_changed_for_long_enough():
    state = state_with(clustering(6, 361), names={"b": [base("h", 6)]})
    (step,) = plan_clustering_rollbacks(clustering_spec(), state)

    assert ("clustering", "foreign", [("b", base("h", 6))]) == (
        step.action,
        step.writer,
        list_named(step),
    )
    assert (
        f"clustering {stamp(6)} of another writer was left inflight: nothing of it changed since "
        "2024-01-01 17:59:00 UTC, longer than concurrency.pending.after, 6h; it keeps 2 file "
        "groups (1 file) of 1 partition from updates, compactions and clusterings; apply rolls it "
        "back and deletes 1 file that no reader has seen" == step.because
    )
    assert () == plan_clustering_rollbacks(clustering_spec(), state_with(clustering(6, 360)))
    assert frozenset({stamp(6)}) == list_abandoned(clustering_spec(), state)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (clustering_spec("report"), "concurrency.pending.clustering: report leaves it"),
        (clustering_spec(provider="none"), "without a lock it cannot be known to be left behind"),
    ],
)
def test_a_clustering_that_stays_is_reported(spec, text):
    state = state_with(clustering(6, 361))
    (note,) = warn_of_abandoned_clusterings(spec, state)

    assert () == plan_clustering_rollbacks(spec, state)
    assert text in note.because


@pytest.mark.parametrize(
    ("spec", "pending", "is_planned"),
    [
        (clustering_spec(), rollback(8, 6, action="clustering"), True),
        (clustering_spec(), rollback(8, 7, action="replacecommit"), True),
        (clustering_spec(failed_writes="LAZY"), rollback(8, 7, action="replacecommit"), False),
        (clustering_spec(), rollback(8, 7), False),
        (clustering_spec("report"), rollback(8, 6, action="clustering"), False),
        (clustering_spec(), rollback(8, 6, action="clustering", minutes=5), False),
    ],
)
def test_a_stale_rollback_of_a_clustering_is_finished(spec, pending, is_planned):
    steps = plan_clustering_rollbacks(spec, state_with(rollbacks=(pending,)))

    assert [stamp(8)] * is_planned == [step.rollback for step in steps]
