"""Pending compactions as literals: which are finished, with what, and why others stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.hudi.table.properties import compute_checksum
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.hudi.timeline.rollback import RollbackPlan
from reconciler.planners.recovery.resume_compaction import (
    list_merged_logs,
    plan_compaction_resumes,
    warn_of_compactions,
)
from reconciler.spec.model import Concurrency, Lock, PendingServices, TableSpec
from reconciler.state.model import ForeignWrite, PendingRollback
from reconciler.state.pending_compaction import PendingCompaction
from tests.unit.planners.cow import base, commit, stamp, table

NOW_MS = 1_704_153_600_000
MINUTE_MS = 60_000
ANN = Owner(who="ann", host="a", pid=7, started="1", tool="tool 1", token="x")
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
}
PROPERTIES["hoodie.table.checksum"] = str(compute_checksum(PROPERTIES))
CDC = {"hoodie.table.cdc.enabled": "true"}
CUSTOM = {"hoodie.record.merge.mode": "CUSTOM"}


def log(group, version, cdc=""):
    return f".{group}_{stamp(1)}.log.{version}_0-0-0{cdc}"


def make_spec(compaction="finish", after=21_600, provider="filesystem"):
    services = PendingServices(compaction=compaction, after=after)
    lock = Lock(provider=provider)
    return TableSpec(
        name="t", path="/t", concurrency=Concurrency(lock=lock, pending=services), document={}
    )


def operation(group="g", **more):
    found = CompactionOperation(
        partition="a",
        file_id=group,
        base_file=base(group, 1),
        log_files=(log(group, 1),),
        base_instant=stamp(1),
    )
    return replace(found, **more)


def compaction(operations=None, **more):
    found = PendingCompaction(
        instant=stamp(6),
        action=Action.COMPACTION,
        state="REQUESTED",
        started_ms=0,
        operations=operations or (operation(),),
    )
    return replace(found, **more)


def state_of(*pending, minutes=361, properties=None, **more):
    """A table with pending compactions of which nothing changed for so many minutes."""
    foreign = tuple(
        ForeignWrite(
            instant=one.instant,
            action=one.action,
            state=one.state,
            active_ms=NOW_MS - minutes * MINUTE_MS,
        )
        for one in pending
    )
    names = {"a": [base("g", 1), log("g", 1), base("h", 1), log("h", 1)]}
    state = table(
        names,
        [commit(1)],
        observed_ms=NOW_MS,
        pending_compactions=pending,
        foreign_compactions=foreign,
        **more,
    )
    return replace(state, properties={**PROPERTIES, **(properties or {})})


def test_a_compaction_that_nobody_finishes_is_finished_as_its_plan_says():
    operations = (operation("g"), operation("h", log_files=(log("h", 1),), base_file=None))
    state = state_of(compaction(operations=operations))
    (step,) = plan_compaction_resumes(make_spec(), state)

    assert (stamp(6), "compaction", 0) == (step.instant, step.action, len(step.files))
    assert (["a", "a"], ["g", "h"], [base("g", 1), None], [1, 1]) == (
        step.groups.partition.to_pylist(),
        step.groups.file_id.to_pylist(),
        step.groups.base.to_pylist(),
        step.groups.outputs.tolist(),
    )
    assert [[log("g", 1)], [log("h", 1)]] == step.groups.logs.to_pylist()
    sizes = dict(zip(state.files.name.to_pylist(), state.files.size.tolist(), strict=True))
    read = [sizes[base("g", 1)] + sizes[log("g", 1)], sizes[log("h", 1)]]
    assert read == step.groups.bytes.tolist()
    assert (
        f"compaction {stamp(6)} of another writer was left requested: nothing of it changed since "
        "2024-01-01 17:59:00 UTC, longer than concurrency.pending.after, 6h; it keeps 2 file "
        "groups of 1 partition from cleans, clusterings and other compactions; apply finishes it"
        == step.because
    )
    assert () == warn_of_compactions(make_spec(), state)


def test_one_that_changed_within_that_time_has_neither_step_nor_warning():
    state = state_of(compaction(), minutes=360)

    assert () == plan_compaction_resumes(make_spec(), state)
    assert () == warn_of_compactions(make_spec(), state)
    assert () == warn_of_compactions(make_spec("report"), state)


def test_log_files_are_in_merge_order_without_change_logs():
    names = (log("g", 10), log("g", 2), log("g", 1, ".cdc"))

    assert (log("g", 2), log("g", 10)) == list_merged_logs(operation(log_files=names))


@pytest.mark.parametrize(
    ("state", "owner", "declared", "is_planned"),
    [
        ("REQUESTED", ANN, "report", True),
        ("REQUESTED", ANN, "finish", True),
        ("REQUESTED", None, "report", False),
        ("INFLIGHT", ANN, "report", False),
    ],
)
def test_an_attempt_of_an_apply_is_finished_without_waiting(state, owner, declared, is_planned):
    pending = compaction(state=state, owner=owner)
    steps = plan_compaction_resumes(make_spec(declared), state_of(pending))

    assert is_planned == bool(steps)
    for step in steps:
        assert f"was left {state.lower()} by an earlier apply: it keeps 1" in step.because


@pytest.mark.parametrize(
    ("minutes", "is_running", "is_planned"),
    [(361, False, True), (1, False, False), (361, True, False)],
)
def test_a_writer_that_has_begun_what_a_dead_apply_left_is_waited_for(
    minutes, is_running, is_planned
):
    pending = compaction(state="INFLIGHT", owner=ANN)
    state = state_of(pending, minutes=minutes)
    (seen,) = state.foreign_compactions
    seen = replace(seen, owner=ANN, is_running=is_running)
    steps = plan_compaction_resumes(make_spec(), replace(state, foreign_compactions=(seen,)))

    assert is_planned == bool(steps)
    for step in steps:
        assert "of another writer was left inflight: nothing of it changed since" in step.because


@pytest.mark.parametrize(
    ("spec", "pending", "more", "text"),
    [
        (make_spec("report"), compaction(), {}, "concurrency.pending.compaction: report leaves it"),
        (make_spec(provider="none"), compaction(), {}, "without a lock it cannot be known"),
        (make_spec(), compaction(), {"properties": CDC}, "the table keeps change logs"),
        (make_spec(), compaction(), {"properties": CUSTOM}, "merge mode CUSTOM is not supported"),
        (
            make_spec(),
            compaction(operations=(operation(file_id="h"),)),
            {},
            "its plan is damaged: for file group h of partition 'a' it names files of another",
        ),
        (
            make_spec(),
            compaction(operations=(operation(is_bootstrap=True),)),
            {},
            f"{base('g', 1)} is a bootstrap skeleton",
        ),
        (
            make_spec(),
            compaction(),
            {"properties": {"hoodie.table.metadata.partitions": "files,expr_index_x"}},
            "the table has the expression index x",
        ),
        (
            make_spec(),
            compaction(action=Action.LOGCOMPACTION),
            {},
            "only Hudi executes log compactions",
        ),
        (
            make_spec(),
            compaction(),
            {
                "pending_rollbacks": (
                    PendingRollback(
                        instant=stamp(8),
                        state="INFLIGHT",
                        active_ms=0,
                        plan=RollbackPlan(target=stamp(6), action="compaction", requests=()),
                    ),
                )
            },
            f"rollback {stamp(8)} of it is pending",
        ),
    ],
)
def test_one_that_stays_is_named_with_the_reason(spec, pending, more, text):
    state = state_of(pending, **more)
    notes = warn_of_compactions(spec, state)

    assert () == plan_compaction_resumes(spec, state)
    assert ["pendingCompaction"] == [note.rule for note in notes]
    assert text in notes[0].because
    assert f"{stamp(6)} of another writer was left requested" in notes[0].because
