"""Clusterings of other writers as literals: which are finished, how, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.owner import Owner
from reconciler.hudi.timeline.plans import (
    SORT_COLUMNS,
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
)
from reconciler.hudi.timeline.rollback import RollbackPlan
from reconciler.planners.compose import plan_table
from reconciler.planners.newest_slices import find_candidates
from reconciler.planners.recovery.finish_clustering import (
    find_plan_split,
    plan_clustering_finishes,
    read_plan_layout,
    warn_of_unfinished_clusterings,
)
from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.planners.recovery.resume_clustering import build_resumed_rewrites
from reconciler.planners.recovery.rollback_clustering import plan_clustering_rollbacks
from reconciler.spec.model import Concurrency, Lock, PendingServices, Policy, Retention, TableSpec
from reconciler.state.model import (
    ForeignWrite,
    PendingClustering,
    PendingClusteringSlice,
    PendingRollback,
)
from tests.unit.planners.cow import base, commit, stamp, table

NOW_MS = 1_704_153_600_000
MINUTE_MS = 60_000
ANN = Owner(who="ann", host="a", pid=7, started="1", tool="tool 1", token="x")
LAYOUT = "hoodie.layout.optimize.strategy"
BUILD = "hoodie.layout.optimize.curve.build.method"


def spec_of(what="finish", provider="filesystem", **more):
    concurrency = Concurrency(
        lock=Lock(provider=provider), pending=PendingServices(clustering=what, after=21_600)
    )
    return TableSpec(name="t", path="/t", concurrency=concurrency, document={}, **more)


def slice_of(file_id, partition="a"):
    return InputSlice(
        partition=partition, file_id=file_id, base_file=base(file_id, 0), log_files=()
    )


def plan_of(*groups, outputs=1, **more):
    found = tuple(
        ClusteringPlanGroup(slices=tuple(map(slice_of, group)), output_count=outputs)
        for group in groups
    )
    return ClusteringPlan(groups=found, **more)


def state_of(plan, *, minutes=361, state="REQUESTED", names=(), **more):
    """A table with a pending clustering that was last changed so many minutes ago."""
    instant = stamp(9)
    foreign = ForeignWrite(
        instant=instant,
        action=Action.CLUSTERING,
        state=state,
        active_ms=NOW_MS - minutes * MINUTE_MS,
    )
    beats = {key: more.pop(key) for key in ("owner", "is_running", "beat_ms") if key in more}
    pending = PendingClustering(instant=instant, state=state, started_ms=0, plan=plan)
    slices = tuple(
        PendingClusteringSlice(
            instant=instant,
            partition=one.partition,
            file_id=one.file_id,
            base_file=one.base_file,
            log_files=(),
        )
        for group in plan.groups
        for one in group.slices
    )
    found = table(
        {"a": [base("f", 0), base("g", 0), *names]},
        [commit(0)],
        pending_clusterings=(pending,),
        foreign_clusterings=(replace(foreign, **beats),),
        clusterings=slices,
        **more,
    )
    return replace(found, observed_ms=NOW_MS)


def test_a_clustering_is_finished_when_nothing_of_it_changed_for_long_enough():
    plan = plan_of("fg", outputs=2, strategy={SORT_COLUMNS: "x, y"})
    (step,) = plan_clustering_finishes(spec_of(), state_of(plan))

    assert (stamp(9), "clustering", "foreign", None) == (
        step.instant,
        step.action,
        step.writer,
        step.attempt,
    )
    assert ([2], ["f", "g"]) == (step.groups.outputs.tolist(), step.groups.file_id.to_pylist())
    assert (
        f"clustering {stamp(9)} of another writer was left requested: nothing of it changed since "
        "2024-01-01 17:59:00 UTC, longer than concurrency.pending.after, 6h; it keeps 2 file "
        "groups (2 files) of 1 partition from updates, compactions and clusterings; apply executes "
        "its plan, with rows sorted by x, y, for the file slices that have not changed"
    ) == step.because
    assert () == plan_clustering_finishes(spec_of(), state_of(plan, minutes=360))
    assert () == plan_clustering_finishes(spec_of("report"), state_of(plan))
    assert () == plan_clustering_finishes(spec_of("rollback"), state_of(plan))
    assert () == plan_clustering_finishes(spec_of(provider="none"), state_of(plan))


def test_files_of_an_earlier_attempt_are_named_and_deleted_first():
    (step,) = plan_clustering_finishes(
        spec_of(), state_of(plan_of("fg"), state="INFLIGHT", names=[base("new", 9)])
    )

    assert [base("new", 9)] == step.attempt.name.to_pylist()
    assert ", after 1 file of an earlier attempt that no reader has seen is deleted" in step.because


@pytest.mark.parametrize(
    ("seen", "is_planned"),
    [
        ({"is_running": False}, True),
        ({"is_running": True}, False),
        ({"is_running": None, "beat_ms": NOW_MS - 4 * MINUTE_MS}, False),
        ({"is_running": None, "beat_ms": NOW_MS - 6 * MINUTE_MS}, True),
        ({"is_running": False, "state": "INFLIGHT", "minutes": 5}, False),
        ({"is_running": False, "state": "INFLIGHT", "minutes": 361}, True),
    ],
)
def test_one_that_a_dead_apply_began_is_finished_at_once(seen, is_planned):
    said = {"minutes": 5, "beat_ms": NOW_MS - 7 * MINUTE_MS, **seen}
    steps = plan_clustering_finishes(spec_of(), state_of(plan_of("fg"), owner=ANN, **said))

    assert is_planned == bool(steps)
    assert all("an apply by ann" in step.because for step in steps)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (plan_of("fg", executor_class="a.B"), "its plan wants to be executed by a.B"),
        (plan_of("fg", keeps_commit_times=False), "its plan wants new commit times"),
        (plan_of("fg", ""), "its plan has a group that is not of one partition"),
        (
            plan_of("fg", strategy={SORT_COLUMNS: "x", LAYOUT: "SPIRAL"}),
            "its plan wants the layout SPIRAL",
        ),
        (
            ClusteringPlan(
                groups=(
                    ClusteringPlanGroup(
                        slices=(slice_of("00000001-aaaa"), slice_of("00000002-bbbb")),
                        output_count=1,
                    ),
                )
            ),
            "its plan merges or splits buckets of partition 'a'",
        ),
    ],
)
def test_a_plan_that_is_not_executed_here_is_reported_with_what_to_do(plan, text):
    state = state_of(plan)
    (note,) = warn_of_unfinished_clusterings(spec_of(), state)

    assert () == plan_clustering_finishes(spec_of(), state)
    assert text in note.because
    assert note.because.endswith(
        "let Hudi finish it, or declare concurrency.pending.clustering: rollback"
    )


def rollback(minutes, **more):
    return PendingRollback(
        instant=stamp(11),
        state="INFLIGHT",
        active_ms=NOW_MS - minutes * MINUTE_MS,
        plan=RollbackPlan(target=stamp(9), action="clustering", requests=()),
        **more,
    )


def test_a_rollback_of_its_attempt_is_finished_with_it_once_it_is_left():
    dead, alive = (state_of(plan_of("fg"), pending_rollbacks=(rollback(m),)) for m in (61, 5))
    (step,) = plan_clustering_finishes(spec_of(), dead)
    (note,) = warn_of_unfinished_clusterings(spec_of(), alive)

    assert stamp(11) == step.rollback
    assert () == plan_clustering_rollbacks(spec_of(), dead)
    assert () == plan_clustering_finishes(spec_of(), alive)
    assert "and may still be at work" in note.because


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({}, ((), None, None)),
        ({SORT_COLUMNS: "x,y"}, (("x", "y"), "linear", "rank")),
        ({SORT_COLUMNS: "x,y", LAYOUT: "zorder"}, (("x", "y"), "z-order", "direct")),
        ({SORT_COLUMNS: "x", LAYOUT: "HILBERT", BUILD: "DIRECT"}, (("x",), "hilbert", "direct")),
    ],
)
def test_rows_are_ordered_as_the_plan_says(strategy, expected):
    layout = read_plan_layout(plan_of("f", strategy=strategy))

    assert expected == (layout.columns, layout.curve, layout.mapping)


def test_a_curve_that_is_built_from_a_sample_is_not_made():
    with pytest.raises(UnsupportedError, match="built by SAMPLE"):
        read_plan_layout(
            plan_of("f", strategy={SORT_COLUMNS: "x", LAYOUT: "ZORDER", BUILD: "SAMPLE"})
        )


@pytest.mark.parametrize(
    ("strategy", "target"),
    [
        ({}, 1 << 30),
        ({"hoodie.clustering.plan.strategy.target.file.max.bytes": "5000"}, 5000),
        ({"hoodie.clustering.plan.strategy.target.file.max.bytes": "4"}, 10),
        ({"hoodie.clustering.plan.strategy.target.file.max.bytes": "x"}, 1 << 30),
    ],
)
def test_new_files_are_as_large_as_their_planner_meant(strategy, target):
    plan = plan_of("fg", outputs=2, strategy=strategy)
    groups = build_resumed_rewrites(plan, state_of(plan), "")

    assert target == find_plan_split(plan, groups).target


# what is held back


def test_file_groups_that_are_held_back_are_those_that_the_planner_leaves_out():
    state = state_of(plan_of("f"), names=[base("h", 0)])
    candidates = find_candidates(state)
    left = candidates.group[candidates.holder >= 0]
    held = measure_held_back(stamp(9), state, None)

    assert (1, 1, 1) == (held.groups, held.files, held.partitions) == (len(left), 1, 1)
    assert "updates, compactions and clusterings" == held.services
    assert "" == measure_held_back(stamp(8), state, None).text


def test_files_that_a_pending_clustering_keeps_from_a_clean_are_counted():
    spec = replace(
        spec_of(), retention=Retention(policy=Policy.FILE_VERSIONS, keep=1), timezone="UTC"
    )
    state = state_of(plan_of("f"), names=[base("f", 1), base("f", 2)])
    state = replace(state, timeline=table({}, [commit(n) for n in range(3)]).timeline)
    plan = plan_table(spec, state, datetime.fromtimestamp(NOW_MS / 1000, UTC))
    held = measure_held_back(stamp(9), state, plan.kept)
    kept = [
        because for because in plan.kept.because.to_pylist() if f"clustering {stamp(9)}" in because
    ]
    notes = [note.because for note in plan.warnings if note.rule == "pendingClustering"]

    assert (1, 1, "1 file in 1 partition") == (len(kept), held.kept, held.kept_text)
    (note,) = notes
    assert (
        f"clustering {stamp(9)} of another writer holds back the removal of 1 file in 1 partition "
        "until it is finished"
    ) == note
