"""A clustering in the plan of a table: its step, what it changes and what is in its way."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.hudi.timeline.plans import (
    ClusteringPlan,
    ClusteringPlanGroup,
    InputSlice,
)
from reconciler.planners.compose import plan_table
from reconciler.plans.layout_change import Untouched
from reconciler.plans.model import CleanStep, ClusterStep, Note
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import (
    Clustering,
    ClusteringTrigger,
    Concurrency,
    FileSizes,
    Lock,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts, ReadWarning
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.model import PendingClustering, PendingClusteringSlice
from tests.unit.planners.cow import base, commit, stamp, table, timeline

NOW = datetime(2024, 1, 2, tzinfo=UTC)
SMALL = ClusteringTrigger(small_file_share_above=0.3, gain_above=None)
WIDE = ClusteringTrigger(small_file_share_above=None, overlap_above=2.0, gain_above=None)
PACKING = {"columns": (), "when": SMALL}
BY_XY = {"columns": ("x", "y"), "curve": "kd-tree", "when": SMALL}


def spec(lock="filesystem", retention=None, guarded_by=(), **clustering):
    return TableSpec(
        name="t",
        path="/t",
        files=FileSizes(target=100, small=80),
        clustering=Clustering(**clustering) if clustering else None,
        concurrency=Concurrency(lock=Lock(provider=lock)),
        retention=retention,
        guarded_by=guarded_by,
        document={"a": 1},
    )


def sized(*sizes, instants=(), **more):
    """One partition of base files of so many bytes, all of 0 o'clock."""
    state = table({"a": []}, [commit(0), commit(1), *instants])
    names = [base(f"g{number:02d}", 0) for number in range(len(sizes))]
    files = build_files([("a", names, list(sizes))], ".parquet")
    return replace(state, files=files, partitions=("a",), **more)


def evidence(files, **more):
    known = {"written": (), "clusterings": (), "footers": None, "bounds": None}
    return ClusteringFacts(**{**known, "rows": np.full(files, 10, np.int64), **more})


def cluster_of(plan):
    return next((step for step in plan.steps if isinstance(step, ClusterStep)), None)


def rules(notes):
    return [note.rule for note in notes]


def drift_of(plan):
    return [(found.field, found.desired, found.actual) for found in plan.drift]


def test_without_the_block_there_is_no_step():
    plan = plan_table(spec(), sized(10, 10, 10), NOW)

    assert () == plan.steps
    assert plan.layout is None


def test_small_files_make_a_step_and_its_impact():
    plan = plan_table(spec(**PACKING), sized(30, 20, 40, 90), NOW)

    step = cluster_of(plan)
    assert ((), None, None) == (step.columns, step.curve, step.mapping)
    assert (["a"], [1], [90]) == (
        step.groups.partition.to_pylist(),
        step.groups.outputs.tolist(),
        step.groups.bytes.tolist(),
    )
    assert 90 == plan.impact.bytes_rewritten
    assert 0 == plan.impact.files_removed
    assert [("files.target", 100, 30)] == drift_of(plan)
    assert "3 of 4 base files in 1 partition are below files.small, 80B" == plan.drift[0].because
    assert () == plan.warnings


def test_the_plan_says_what_the_step_makes_of_the_table():
    plan = plan_table(spec(**PACKING), sized(30, 20, 40, 90), NOW)

    layout = plan.layout
    assert (5, 20, 80, 100, 200) == layout.below
    assert (4, 3, 180, None) == (
        layout.before.files,
        layout.before.small,
        layout.before.bytes,
        layout.before.overlap,
    )
    assert (2, 0) == (layout.after.files, layout.after.small)
    assert ((0, 0, 3, 1, 0, 0), (0, 0, 0, 2, 0, 0)) == (layout.before.sizes, layout.after.sizes)
    (left,) = layout.untouched
    assert ("large", 1) == (left.rule, left.slices)


def test_what_stays_is_counted_by_rule_with_its_commonest_reason():
    state = sized(30, 20, 40, 90, 95)
    instant = "20240101003000000"
    busy = PendingClusteringSlice(
        instant=instant, partition="a", file_id="g00", base_file=None, log_files=()
    )
    plan = plan_table(spec(**PACKING), replace(state, clusterings=(busy,)), NOW)

    assert (
        Untouched("large", 2, "its base file is not below files.small (80B)"),
        Untouched(
            "pendingClustering", 1, f"clustering {instant} is going to rewrite its file group"
        ),
    ) == plan.layout.untouched
    assert ["pendingClustering"] == rules(plan.warnings)
    assert "will rewrite 1 file group;" in plan.warnings[0].because


def test_columns_that_no_clustering_has_laid_out_are_drift():
    plan = plan_table(spec(**BY_XY), sized(30, 20, 40), NOW)

    step = cluster_of(plan)
    assert (("x", "y"), "kd-tree", "rank") == (step.columns, step.curve, step.mapping)
    assert [("clustering.columns", ["x", "y"], None), ("files.target", 100, 30)] == drift_of(plan)


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        (ClusteringLayout(), ("clustering.columns", ["x", "y"], [])),
        (
            ClusteringLayout(columns=("x", "y"), curve="linear"),
            ("clustering.curve", "kd-tree", "linear"),
        ),
        (None, ("clustering.columns", ["x", "y"], None)),
    ],
    ids=["packed", "another curve", "unknown"],
)
def test_another_layout_is_drift(past, expected):
    known = evidence(3, clusterings=(PastClustering(instant=stamp(0), layout=past),))
    plan = plan_table(spec(**BY_XY), sized(30, 20, 40, clustering_facts=known), NOW)

    assert expected == drift_of(plan)[0]
    assert stamp(0) in plan.drift[0].because


def test_overlap_is_drift_and_shrinks():
    wide = (pa.array([0] * 6), pa.array([9] * 6))
    state = sized(*[90] * 6, clustering_facts=evidence(6, bounds=(wide, wide)))
    plan = plan_table(spec(**{**BY_XY, "when": WIDE}), state, NOW)

    assert ("clustering.when.overlapAbove", 2.0, 6.0) == drift_of(plan)[-1]
    assert (6.0, 1.0) == (plan.layout.before.overlap, plan.layout.after.overlap)


def test_a_table_laid_out_as_declared_has_no_step():
    declared = ClusteringLayout(columns=("x", "y"), curve="kd-tree", mapping="rank")
    known = evidence(3, clusterings=(PastClustering(instant=stamp(0), layout=declared),))
    plan = plan_table(spec(**BY_XY), sized(30, 20, 40, clustering_facts=known), NOW)

    assert () == plan.steps
    assert [] == drift_of(plan)
    assert ["nothingToDo"] == rules(plan.warnings)


def test_what_could_not_be_found_out_is_said_once():
    doubt = ReadWarning(rule="overlap", because="the footers cannot be read")
    state = sized(30, 20, 40, clustering_facts=evidence(3, warnings=(doubt,)))
    asked = {**BY_XY, "when": ClusteringTrigger(overlap_above=8.0, gain_above=None)}
    plan = plan_table(spec(**asked), state, NOW)

    assert [("overlap", "the footers cannot be read")] == [
        (note.rule, note.because) for note in plan.warnings
    ]


class TestOrder:
    def test_the_clustering_comes_before_the_clean_which_is_as_without_it(self):
        state = sized(30, 20, 40)
        names = [*state.files.name.to_pylist(), base("g00", 1), base("g00", 2)]
        files = build_files([("a", names, [30, 20, 40, 30, 30])], ".parquet")
        state = replace(state, timeline=timeline(commit(0), commit(1), commit(2)), files=files)
        kept = Retention(policy=Policy.FILE_VERSIONS, keep=1)
        both = plan_table(spec(retention=kept, **PACKING), state, NOW)
        alone = plan_table(spec(retention=kept), state, NOW)

        assert ["cluster", "clean"] == [step.kind for step in both.steps]
        cluster, clean = both.steps
        assert isinstance(cluster, ClusterStep)
        assert isinstance(clean, CleanStep)
        assert [base("g00", 0), base("g00", 1)] == clean.files.name.to_pylist()
        assert base("g00", 2) in cluster.groups.base.to_pylist()
        assert alone.steps[0].files.name.equals(clean.files.name)
        assert alone.impact.files_removed == both.impact.files_removed == 2

    def test_what_an_earlier_apply_left_behind_is_finished_first_and_counts(self):
        state = sized(30, 20, 40, 90)
        held = InputSlice(partition="a", file_id="g03", base_file=base("g03", 0), log_files=())
        ours = ClusteringPlan(
            groups=(ClusteringPlanGroup(slices=(held,), output_count=1),),
            extra={"reconciler.plan.digest": "sha256:0"},
        )
        instant = "20240101003000000"
        left = PendingClustering(instant=instant, state="INFLIGHT", started_ms=0, plan=ours)
        busy = PendingClusteringSlice(
            instant=instant, partition="a", file_id="g03", base_file=base("g03", 0), log_files=()
        )
        state = replace(state, pending_clusterings=(left,), clusterings=(busy,))
        plan = plan_table(spec(**PACKING), state, NOW)

        assert ["resume", "cluster"] == [step.kind for step in plan.steps]
        assert ["g03"] == plan.steps[0].groups.file_id.to_pylist()
        assert 90 + 90 == plan.impact.bytes_rewritten


class TestInTheWay:
    def test_a_policy_on_bytes_rewritten_refuses_the_step_alone(self):
        small = GuardPolicy(name="small", max_rewrite=50)
        plan = plan_table(spec(guarded_by=(small,), **PACKING), sized(30, 20, 40), NOW)

        assert [("maxRewrite", "cluster")] == [(note.rule, note.step) for note in plan.refusals]
        assert not plan.is_blocked
        assert cluster_of(plan) is not None  # it is shown, because a reviewer may grant a waiver
        assert plan.layout is not None
        assert () == list_applied_steps(plan)
        assert 0 == plan.impact.bytes_rewritten
        assert plan.drift

    # a secondary index is of no use without a record index, which locates the keys
    @pytest.mark.parametrize("index", ["secondary_index_by_x", "expr_index_by_day"])
    def test_an_index_that_would_lose_rows_refuses_the_step(self, index):
        state = sized(30, 20, 40, metadata_partitions=("files", index))
        plan = plan_table(spec(**PACKING), state, NOW)

        assert [("metadata", "cluster")] == [(note.rule, note.step) for note in plan.refusals]
        assert cluster_of(plan) is None
        assert plan.layout is None

    def test_a_secondary_index_needs_no_refusal_beside_a_record_index(self):
        live = ("files", "record_index", "secondary_index_by_x")
        plan = plan_table(spec(**PACKING), sized(30, 20, 40, metadata_partitions=live), NOW)

        assert () == plan.refusals
        assert cluster_of(plan) is not None

    def test_such_an_index_is_no_matter_where_nothing_is_rewritten(self):
        state = sized(90, 90, metadata_partitions=("files", "secondary_index_by_x"))
        plan = plan_table(spec(**PACKING), state, NOW)

        assert () == plan.refusals

    @pytest.mark.parametrize(
        ("columns", "expected"),
        [
            (("x", "nope"), "the table has no column 'nope'; its columns are x, Id, st, day"),
            (("ID",), "the table has no column 'ID'; did you mean 'Id'?"),
            (("st.a",), "the table has no column 'st.a'; its columns are x, Id, st, day"),
            (("st",), "st is a struct, which has no order; remove it"),
        ],
    )
    def test_columns_that_rows_cannot_be_ordered_by_refuse_the_step(self, columns, expected):
        known = {"x": "", "Id": "", "st": "struct", "day": ""}
        asked = {**BY_XY, "columns": columns}
        state = sized(30, 20, 40, clustering_facts=evidence(3, columns=known))
        plan = plan_table(spec(**asked), state, NOW)

        problem = f"clustering.columns: {expected}"
        assert (Note("columns", problem, step="cluster"),) == plan.refusals
        assert cluster_of(plan) is None

        settled = replace(sized(90, 90), clustering_facts=evidence(2, columns=known))
        plan = plan_table(spec(**asked), settled, NOW)

        assert () == plan.refusals
        assert Note("columns", problem) in plan.warnings
        assert [("clustering.columns", list(columns), expected)] == [
            (found.field, found.desired, found.because) for found in plan.drift
        ]

    def test_columns_of_a_table_without_rows_are_no_drift(self):
        state = sized(clustering_facts=evidence(0, columns={"x": ""}))
        plan = plan_table(spec(**{**BY_XY, "columns": ("nope",)}), state, NOW)

        assert (["columns", "nothingToDo"], ()) == (rules(plan.warnings), plan.drift)

    def test_columns_are_not_judged_where_no_write_says_them(self):
        state = sized(30, 20, 40, clustering_facts=evidence(3, columns=None))
        plan = plan_table(spec(**BY_XY), state, NOW)

        assert () == plan.refusals
        assert cluster_of(plan) is not None

    @pytest.mark.parametrize("column", ["_hoodie_record_key", "x"])
    def test_columns_of_the_table_refuse_nothing(self, column):
        state = sized(30, 20, 40, clustering_facts=evidence(3, columns={"x": ""}))

        assert () == plan_table(spec(**{**BY_XY, "columns": (column,)}), state, NOW).refusals

    def test_an_index_that_is_dropped_is_warned_of(self):
        rows = np.full(3, 10_000_000, np.int64)
        state = sized(
            *(30, 20, 40),
            metadata_partitions=("files", "record_index"),
            clustering_facts=evidence(3, rows=rows),
        )
        plan = plan_table(spec(**PACKING), state, NOW)

        assert ["metadata"] == rules(plan.warnings)
        assert "drops record_index of the metadata table" in plan.warnings[0].because
        assert cluster_of(plan) is not None

    def test_an_index_that_is_being_built_is_warned_of(self):
        state = sized(
            *(30, 20, 40),
            metadata_partitions=("files",),
            properties={"hoodie.table.metadata.partitions.inflight": "column_stats"},
        )
        plan = plan_table(spec(**PACKING), state, NOW)

        assert ["metadata"] == rules(plan.warnings)
        assert "column_stats are being built" in plan.warnings[0].because

    def test_a_pending_write_without_a_lock_is_warned_of(self):
        pending = Instant(stamp(7), Action.COMMIT, State.INFLIGHT, None)
        state = sized(30, 20, 40, instants=[pending])
        plan = plan_table(spec(lock="none", **PACKING), state, NOW)

        assert ["lock"] == rules(plan.warnings)
        assert f"commit {stamp(7)} is pending" in plan.warnings[0].because
        assert () == plan_table(spec(**PACKING), state, NOW).warnings

    def test_small_buckets_are_not_merged_and_not_drift(self):
        """A simple bucket index was refused once; its file groups are rewritten one by one."""
        state = sized(30, 20)
        names = [base(f"0000000{number}-aaaa", 0) for number in range(2)]
        files = build_files([("a", names, [10, 10])], ".parquet")
        plan = plan_table(spec(**PACKING), replace(state, files=files), NOW)

        assert () == plan.refusals
        assert () == plan.steps
        assert () == plan.drift
        assert ["nothingToDo"] == rules(plan.warnings)

        ordered = plan_table(spec(**BY_XY), replace(state, files=files), NOW)

        assert [1, 1] == cluster_of(ordered).groups.outputs.tolist()
        assert ["clustering.columns"] == [found.field for found in ordered.drift]

    def test_buckets_of_a_consistent_hashing_refuse_the_step_alone(self):
        state = sized(30, 20, 40, clustering_facts=evidence(3, is_consistently_hashed=True))
        keep = Retention(policy=Policy.FILE_VERSIONS, keep=1)
        plan = plan_table(spec(retention=keep, **PACKING), state, NOW)

        assert [("bucketIndex", "cluster")] == [(note.rule, note.step) for note in plan.refusals]
        assert "consistent-hashing" in plan.refusals[0].because
        assert cluster_of(plan) is None
        assert not plan.is_blocked

    def test_such_buckets_are_a_warning_where_nothing_is_to_be_rewritten(self):
        state = sized(90, 90, clustering_facts=evidence(2, is_consistently_hashed=True))
        plan = plan_table(spec(**PACKING), state, NOW)

        assert ((), ()) == (plan.refusals, plan.drift)
        assert [("bucketIndex", None), ("nothingToDo", None)] == [
            (note.rule, note.step) for note in plan.warnings
        ]

    def test_a_pending_restore_leaves_nothing_to_plan(self):
        restore = Instant(stamp(7), Action.RESTORE, State.INFLIGHT, None)
        plan = plan_table(spec(**PACKING), sized(30, 20, 40, instants=[restore]), NOW)

        assert () == plan.steps
        assert plan.layout is None


class TestWaiting:
    """Another writer has just clustered: nothing is planned before the next commit."""

    FOREIGN = PastClustering(instant=stamp(2), layout=None)

    def plan(self, *sizes, **clustering):
        names = [base(f"g{number:02d}", 0) for number in range(len(sizes))]
        done = [commit(0), commit(1), Instant(stamp(2), Action.REPLACECOMMIT, State.COMPLETED)]
        files = build_files([("a", names, list(sizes))], ".parquet")
        facts = evidence(len(sizes), clusterings=(self.FOREIGN,))
        state = replace(
            table({"a": []}, done), files=files, partitions=("a",), clustering_facts=facts
        )
        return plan_table(spec(after_commits=2, **{**BY_XY, **clustering}), state, NOW)

    def test_what_waits_is_drift_without_a_step(self):
        plan = self.plan(10, 10, 10)

        assert () == plan.steps
        assert ["clustering.columns", "files.target"] == [field for field, *_ in drift_of(plan)]
        assert ["nothingToDo"] == rules(plan.warnings)

    def test_nothing_differs_if_nothing_waits_for_commits(self):
        assert () == self.plan(90, 90, 90).drift

    def test_what_nobody_can_measure_is_not_taken_for_declared(self):
        gain = ClusteringTrigger(small_file_share_above=None, gain_above=0.2)

        assert ["nothingToDo", "gain"] == rules(self.plan(90, 90, 90, when=gain).warnings)

    def test_under_always_commits_alone_decide(self):
        assert () == self.plan(10, 10, 10, when=ClusteringTrigger(always=True)).drift
