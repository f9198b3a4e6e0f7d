"""What a plan says of pending clusterings."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.hudi.timeline.plans import (
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
)
from reconciler.planners.recovery.resume_clustering import (
    build_resumed_rewrites,
    plan_clustering_resumes,
)
from reconciler.plans.groups import rewrites_from_json
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import PendingClustering
from tests.unit.planners.cow import base, commit, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
LOGS = (f".g_{stamp(2)}.log.1_0-0-0", f".g_{stamp(1)}.log.1_0-0-0")


def given(file_id, *, partition="a", logs=()):
    return InputSlice(
        partition=partition, file_id=file_id, base_file=base(file_id, 0), log_files=logs
    )


def pending(extra, *groups, state="INFLIGHT"):
    return PendingClustering(
        instant=stamp(9),
        state=state,
        started_ms=int(NOW.timestamp() * 1000) - 7_300_000,
        plan=ClusteringPlan(groups=groups, extra=extra),
    )


def state(*found):
    return table({"a": [base("f", 0), base("g", 0), *LOGS]}, [commit(0)], pending_clusterings=found)


GROUP = ClusteringPlanGroup(slices=(given("f"), given("g", logs=LOGS)), output_count=2)
OURS = {PLAN_DIGEST: "sha256:0"}


def test_one_of_ours_is_finished_by_the_next_apply():
    found = plan_clustering_resumes(state(pending(OURS, GROUP)), NOW)
    (step,) = found.steps

    assert ((), "clustering", stamp(9)) == (found.warnings, step.action, step.instant)
    assert (["a"], [2], [40]) == (
        step.groups.partition.to_pylist(),
        step.groups.outputs.tolist(),
        step.groups.bytes.tolist(),
    )
    assert f"clustering {stamp(9)} of an earlier apply was left inflight" in step.because


def test_logs_come_in_the_order_in_which_they_are_merged():
    found = build_resumed_rewrites(pending(OURS, GROUP).plan, state(), "because")
    expected = rewrites_from_json(
        [
            {
                "partition": "a",
                "outputs": 2,
                "bytes": 40,
                "because": "because",
                "slices": [
                    {"fileId": "f", "base": base("f", 0), "logs": []},
                    {"fileId": "g", "base": base("g", 0), "logs": [*reversed(LOGS)]},
                ],
            }
        ]
    )

    assert expected.base == found.base
    assert expected.logs == found.logs
    assert expected.file_id == found.file_id
    assert expected.starts.tolist() == found.starts.tolist()


def test_files_that_are_gone_weigh_nothing():
    group = ClusteringPlanGroup(slices=(given("f"), given("gone")), output_count=1)

    assert [10] == build_resumed_rewrites(pending(OURS, group).plan, state(), "").bytes.tolist()


def test_another_writers_is_told_of_and_left_alone():
    other = ClusteringPlanGroup(slices=(given("h", partition="b"),), output_count=1)
    found = plan_clustering_resumes(state(pending({}, GROUP, other, state="REQUESTED")), NOW)
    (note,) = found.warnings

    assert () == found.steps
    assert note.rule == "pendingClustering"
    assert note.because == (
        f"clustering {stamp(9)} of another writer has been requested for 2 hours and will rewrite "
        "3 file groups of 'a', 'b': nothing else compacts or clusters them, and updates to them "
        "fail; let its writer finish it (run_clustering with op => 'execute'), or let "
        "concurrency.pending.clustering finish it or roll it back"
    )
