"""Which slices are rewritten together, and why the others stay: literal tables."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    PartitionFilter,
    TableSpec,
)
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.measured_queries import CIRCUMSTANCES_KEY, ClusteringContext
from reconciler.state.model import PendingClusteringSlice, PendingCompactionGroup
from tests.unit.planners.cow import base, commit, stamp, table, timeline

SHARE = ClusteringTrigger(small_file_share_above=0.3, gain_above=None)
OVERLAP = ClusteringTrigger(small_file_share_above=None, overlap_above=2.0, gain_above=None)
ALWAYS = ClusteringTrigger(always=True)
BY_X = {"columns": ("x",), "curve": "linear"}


def sized(folders, instants=None, **more):
    """A table of files with sizes: ``{"a": {name: bytes}}``; committed at 0 and 1 o'clock."""
    state = table({"a": []}, instants or [commit(0), commit(1)])
    files = build_files(((p, list(f), list(f.values())) for p, f in folders.items()), ".parquet")
    return replace(state, files=files, partitions=files.partitions, **more)


def bases(*sizes, hour=0):
    width = len(str(len(sizes) - 1))
    return {base(f"g{number:0{width}d}", hour): size for number, size in enumerate(sizes)}


def log(group, hour, version=1, token="1-0-1"):
    return f".{group}_{stamp(hour)}.log.{version}_{token}"


def decide(state, *, when=SHARE, columns=(), curve=None, **more):
    given = {k: more.pop(k) for k in ("sizes", "past", "ranges") if k in more}
    files = FileSizes(target=100, small=80)
    clustering = Clustering(columns=columns, curve=curve, when=when, **more)
    return plan_clustering(
        TableSpec(name="t", path="/t", files=files, clustering=clustering),
        state,
        KnownStatistics(**given),
    )


def groups_of(decision):
    """(partition, outputs, bytes, file ids) a group."""
    groups, ids = decision.groups, decision.groups.file_id.to_pylist()
    bounds = groups.starts.tolist()
    return [
        (path, outputs, size, ids[start:end])
        for path, outputs, size, start, end in zip(
            groups.partition.to_pylist(),
            groups.outputs.tolist(),
            groups.bytes.tolist(),
            bounds[:-1],
            bounds[1:],
            strict=True,
        )
    ]


def rules_of(decision):
    return [RULES[code] for code in decision.rule.tolist()]


def ranges(*bounds, column=()):
    """Statistics of one column, or of two: pairs of least and greatest, a file each."""
    columns = [bounds, *([column] if column else [])]
    arrays = [
        (pa.array([low for low, _ in found]), pa.array([high for _, high in found]))
        for found in columns
    ]
    return ColumnRanges.build(arrays, np.full(len(bounds), 100, np.int64))


class TestPacking:
    def test_small_files_become_fewer(self):
        decision = decide(sized({"a": bases(30, 90, 20, 40)}))

        assert [("a", 1, 90, ["g3", "g0", "g2"])] == groups_of(decision)
        assert ["group", "large", "group", "group"] == rules_of(decision)
        assert decision.groups.because.to_pylist() == [
            (
                "3 file slices of 90 B become 1 file: 3 of 4 base files are below files.small 80B "
                "(above smallFileShareAbove 0.3)"
            )
        ]
        assert ClusteringLayout() == decision.layout

    def test_what_would_make_no_fewer_files_stays(self):
        decision = decide(sized({"a": bases(60, 60)}))

        assert [] == groups_of(decision)
        assert ["noGain", "noGain"] == rules_of(decision)
        assert [("nothingToDo", "no clustering: 2 file slices would not make fewer files")] == [
            (note.rule, note.because) for note in decision.warnings
        ]

    def test_the_fixed_cost_of_files_counts_once_an_output(self):
        size = RecordSize(fixed=20, per_row=1.0, because="")
        decision = decide(sized({"a": bases(50, 50, 50, 50)}), sizes=size)

        assert [("a", 2, 200, ["g0", "g1", "g2", "g3"])] == groups_of(decision)

    def test_a_partition_of_few_small_files_is_left_alone(self):
        decision = decide(sized({"a": bases(10, 10, 90, 90, 90, 90, 90)}))

        assert ["when"] * 7 == rules_of(decision)
        assert decision.because.to_pylist()[0] == (
            "2 of 7 base files are below files.small 80B (within smallFileShareAbove 0.3)"
        )

    def test_groups_that_gain_most_for_their_bytes_come_first(self):
        state = sized({"a": bases(40, 40), "b": bases(5, 5, 5), "c": bases(30, 30)})
        decision = decide(state, budget=ClusteringBudget(groups=2))

        assert [("b", 1, 15, ["g0", "g1", "g2"]), ("c", 1, 60, ["g0", "g1"])] == groups_of(decision)
        assert ["budget", "budget"] == rules_of(decision)[:2]
        assert decision.because.to_pylist()[0] == (
            "a run rewrites at most 2 groups (clustering.budget)"
        )
        assert "budget" in [note.rule for note in decision.warnings]

    def test_a_run_rewrites_no_more_bytes_than_its_budget(self):
        state = sized({"a": bases(40, 40), "b": bases(5, 5, 5), "c": bases(30, 30)})
        decision = decide(state, budget=ClusteringBudget(rewrite=70))

        assert [("b", 1, 15, ["g0", "g1", "g2"])] == groups_of(decision)

    def test_groups_are_cut_to_fit_the_budget(self):
        decision = decide(sized({"a": bases(20, 20, 20, 20)}), budget=ClusteringBudget(rewrite=50))

        assert [("a", 1, 40, ["g0", "g1"])] == groups_of(decision)

    def test_what_is_left_over_forms_groups_again(self):
        """One pass would leave 60 and 25 apart, and the run after would pack them."""
        budget = ClusteringBudget(per_group=90)
        decision = decide(sized({"a": bases(60, 45, 44, 25)}), budget=budget)

        assert [("a", 1, 85, ["g0", "g3"]), ("a", 1, 89, ["g1", "g2"])] == groups_of(decision)

    def test_slices_of_logs_alone_wait_for_a_compaction(self):
        names = {**bases(10, 10), log("g7", 1): 5}
        state = sized({"a": names}, table_type="MERGE_ON_READ")
        decision = decide(state)

        assert [("a", 1, 20, ["g0", "g1"])] == groups_of(decision)
        assert ["logs"] == [rule for rule in rules_of(decision) if rule != "group"]

    def test_log_files_count_and_are_named_in_merge_order(self):
        done = [commit(0), commit(1), *(instant(hour) for hour in (2, 3))]
        logs = [log("g0", 3), log("g0", 2, 2), log("g0", 2, 1, "10-0-1"), log("g0", 2, 1, "9-0-1")]
        state = sized({"a": bases(10, 10) | dict.fromkeys(logs, 5)}, done)
        decision = decide(state)

        assert [("a", 1, 40, ["g0", "g1"])] == groups_of(decision)
        assert [[logs[3], logs[2], logs[1], logs[0]], []] == decision.groups.logs.to_pylist()
        assert [base("g0", 0), base("g1", 0)] == decision.groups.base.to_pylist()

    def test_log_files_of_a_pending_write_are_no_part_of_a_slice(self):
        names = bases(10, 10) | {log("g0", 2): 5, log("g0", 3): 7}
        pending = Instant(stamp(3), Action.DELTACOMMIT, State.INFLIGHT)
        state = sized({"a": names}, [commit(0), instant(2), pending])
        decision = decide(state, when=ALWAYS)

        assert [("a", 1, 25, ["g0", "g1"])] == groups_of(decision)
        assert [[log("g0", 2)], []] == decision.groups.logs.to_pylist()


def instant(hour, action=Action.DELTACOMMIT):
    return Instant(stamp(hour), action, State.COMPLETED, f"{stamp(hour)[:-1]}5")


class TestMemory:
    def past(self, **layout):
        return (PastClustering(instant=stamp(1), layout=ClusteringLayout(**layout)),)

    def clustered(self, *sizes):
        return {base(f"c{number}", 1): size for number, size in enumerate(sizes)}

    def table(self, *more):
        return sized(
            {"a": self.clustered(30, 30) | dict(more)},
            [commit(0), instant(1, Action.REPLACECOMMIT), commit(2)],
        )

    def test_what_is_laid_out_as_declared_stays(self):
        past = self.past(columns=("x",), curve="linear", mapping="rank")
        decision = decide(self.table(), past=past, **BY_X)

        assert ["clustered", "clustered"] == rules_of(decision)
        assert {f"clustering {stamp(1)} ordered it as declared"} == set(
            decision.because.to_pylist()
        )

    @pytest.mark.parametrize(
        "layout",
        [
            {},
            {"columns": ("y",), "curve": "linear", "mapping": "rank"},
            {"columns": ("x",), "curve": "z-order", "mapping": "rank"},
            {"columns": ("x",), "curve": "linear", "mapping": "direct"},
            {"columns": ("x",)},
        ],
    )
    def test_what_is_laid_out_otherwise_does_not(self, layout):
        decision = decide(self.table(), past=self.past(**layout), **BY_X)

        assert [("a", 1, 60, ["c0", "c1"])] == groups_of(decision)

    def test_for_packing_any_clustering_counts(self):
        decision = decide(self.table(), past=self.past(columns=("y",), curve="linear"))

        assert ["clustered", "clustered"] == rules_of(decision)

    def test_a_later_base_file_is_new_again(self):
        state = self.table((base("c0", 2), 30))
        past = self.past(columns=("x",), curve="linear", mapping="rank")
        decision = decide(state, past=past, **BY_X)

        assert [("a", 1, 60, ["c0", "c1"])] == groups_of(decision)

    def test_log_files_that_say_much_make_a_slice_new_again(self):
        past = self.past(columns=("x",), curve="linear", mapping="rank")
        done = [commit(0), instant(1, Action.REPLACECOMMIT), instant(2)]
        for size, rule in ((40, "clustered"), (50, "group")):
            state = sized({"a": self.clustered(30) | {log("c0", 2): size}}, done)
            assert [rule] == rules_of(decide(state, past=past, **BY_X))

    def test_small_ones_join_new_files_that_are_as_big(self):
        """As a merge tree does it: a row is rewritten a few times, not with every new file."""
        past = self.past()
        decision = decide(self.table((base("n0", 2), 20), (base("n1", 2), 15)), past=past)

        assert [("a", 1, 95, ["n0", "n1", "c0", "c1"])] == groups_of(decision)

        decision = decide(self.table((base("n0", 2), 9), (base("n1", 2), 9)), past=past)

        assert [("a", 1, 18, ["n0", "n1"])] == groups_of(decision)
        assert ["clustered", "clustered", "group", "group"] == rules_of(decision)

    def test_they_join_groups_of_their_own_partition_alone(self):
        """Groups that form late, of what others left, come after those of later partitions."""
        new = {"n0": 60, "n1": 45, "n2": 44, "n3": 25}
        state = sized(
            {
                "a": {base(name, 2): size for name, size in new.items()} | {base("c0", 1): 3},
                "b": {base(name, 2): 20 for name in ("n0", "n1")} | {base("c1", 1): 2},
            },
            [commit(0), instant(1, Action.REPLACECOMMIT), commit(2)],
        )
        decision = decide(state, past=self.past(), budget=ClusteringBudget(per_group=90))

        assert [
            ("a", 1, 88, ["n0", "n3", "c0"]),
            ("a", 1, 89, ["n1", "n2"]),
            ("b", 1, 42, ["n0", "n1", "c1"]),
        ] == sorted(groups_of(decision))

    def test_small_ones_do_not_join_where_another_file_would_come_of_it(self):
        decision = decide(self.table((base("n0", 2), 45), (base("n1", 2), 45)), past=self.past())

        assert [("a", 1, 90, ["n0", "n1"])] == groups_of(decision)


class TestOverlap:
    def test_files_that_cover_the_same_rows_are_rewritten_however_big(self):
        state = sized({"a": bases(100, 100, 100)})
        found = ranges((0, 9), (0, 9), (0, 9))
        decision = decide(state, when=OVERLAP, ranges=found, **BY_X)

        assert [("a", 3, 300, ["g0", "g1", "g2"])] == groups_of(decision)
        assert decision.groups.because.to_pylist() == [
            (
                "3 file slices of 300 B become 3 files: 3.0 files overlap per row (above "
                "overlapAbove 2)"
            )
        ]
        assert [3.0] == decision.triggers.overlap.tolist()

    def test_files_side_by_side_stay(self):
        state = sized({"a": bases(100, 100, 100, 100)})
        found = ranges((0, 1), (2, 3), (4, 5), (6, 7))
        decision = decide(state, when=OVERLAP, ranges=found, **BY_X)

        assert ["when"] * 4 == rules_of(decision)
        assert [1.0] == decision.triggers.overlap.tolist()

    def test_of_many_files_only_the_wide_ones_are_rewritten(self):
        """Twelve files side by side and three across them all: rewriting the three is enough."""
        sides = [(10 * n, 10 * n + 9) for n in range(12)]
        state = sized({"a": bases(*[100] * 15)})
        found = ranges(*sides, (0, 119), (0, 119), (0, 119))
        when = ClusteringTrigger(small_file_share_above=None, overlap_above=3.0, gain_above=None)
        decision = decide(state, when=when, ranges=found, **BY_X)

        assert [("a", 3, 300, ["g12", "g13", "g14"])] == groups_of(decision)
        assert {"large": 12, "group": 3} == {
            rule: rules_of(decision).count(rule) for rule in ("large", "group")
        }
        assert decision.because.to_pylist()[0] == (
            "its base file is not below files.small (80B) and few files overlap with it"
        )

    def test_a_lone_wide_file_stays_unless_it_is_split(self):
        found = ranges((0, 9), (0, 9), (0, 9))
        for size, expected in ((100, []), (130, [("a", 2, 130, ["g2"])])):
            state = sized({"a": bases(100, 100, size)}, clusterings=(held("g0"), held("g1")))
            decision = decide(
                replace(state, timeline=timeline(commit(0), commit(7))),
                when=OVERLAP,
                ranges=found,
                **BY_X,
            )

            assert expected == groups_of(decision)

    def test_files_near_each_other_are_rewritten_together(self):
        state = sized({"a": bases(100, 100, 100, 100, 100, 100)})
        found = ranges((0, 9), (20, 29), (0, 9), (20, 29), (0, 9), (20, 29))
        budget = ClusteringBudget(per_group=300)
        decision = decide(state, when=OVERLAP, ranges=found, budget=budget, **BY_X)

        assert [
            ("a", 3, 300, ["g0", "g2", "g4"]),
            ("a", 3, 300, ["g1", "g3", "g5"]),
        ] == groups_of(decision)

    def test_a_file_without_statistics_may_hold_anything(self):
        state = sized({"a": bases(100, 100, 100)})
        found = ranges((0, 5), (5, 9), (None, None))
        decision = decide(
            state, when=ClusteringTrigger(overlap_above=1.5, gain_above=None), ranges=found, **BY_X
        )

        assert [2.0] == decision.triggers.overlap.tolist()

    def test_a_second_column_tells_files_apart(self):
        state = sized({"a": bases(100, 100, 100)})
        found = ranges((0, 9), (0, 9), (0, 9), column=[("a", "b"), ("c", "d"), ("e", "f")])
        decision = decide(state, when=OVERLAP, ranges=found, columns=("x", "y"), curve="kd-tree")

        assert [1.0] == decision.triggers.overlap.tolist()

    @pytest.mark.parametrize(
        ("when", "measure"),
        [(OVERLAP, "overlap"), (replace(OVERLAP, overlap_above=None, gain_above=0.2), "gain")],
    )
    def test_without_statistics_nobody_knows(self, when, measure):
        decision = decide(sized({"a": bases(100, 100, 100), "b": bases(100)}), when=when, **BY_X)

        assert ["unmeasured"] * 3 + ["when"] == rules_of(decision)
        assert [
            (
                f"clustering.when.{measure}Above is not checked in 1 partition: the base files "
                "have no known statistics on x; name columns with statistics in "
                "clustering.columns, or declare clustering.when: always, which needs none"
            ),
            (
                "no clustering: 3 file slices have no known statistics on clustering.columns, so "
                "their gain is unknown; 1 file slice is in a partition below the thresholds "
                "of clustering.when"
            ),
        ] == [note.because for note in decision.warnings]

    def test_a_partition_without_statistics_beside_a_known_one_is_not_judged(self):
        state = sized({"a": bases(100, 100), "b": bases(100, 100)})
        found = ranges((0, 4), (5, 9), (None, None), (None, None))
        gain = replace(OVERLAP, overlap_above=None, gain_above=0.2)
        decision = decide(state, when=gain, ranges=found, **BY_X)

        assert ["when"] * 2 + ["unmeasured"] * 2 == rules_of(decision)
        assert decision.warnings[0].because.startswith(
            "clustering.when.gainAbove is not checked in 1 partition: "
        )

    def test_of_files_laid_out_as_declared_nothing_need_be_known(self):
        layout = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")
        state = sized(
            {"a": {base(f"c{n}", 1): 100 for n in range(3)}},
            [commit(0), instant(1, Action.REPLACECOMMIT), commit(2)],
        )
        past = (PastClustering(instant=stamp(1), layout=layout),)
        decision = decide(state, when=OVERLAP, past=past, **BY_X)

        assert ["nothingToDo"] == [note.rule for note in decision.warnings]

    def test_so_few_files_cannot_overlap_too_much_so_nothing_need_be_known(self):
        decision = decide(sized({"a": bases(100, 100), "b": bases(100)}), when=OVERLAP, **BY_X)

        assert ["nothingToDo"] == [note.rule for note in decision.warnings]

    @pytest.mark.parametrize(("most", "rule"), [(300, "group"), (100, "clustered")])
    def test_what_was_laid_out_is_rewritten_for_a_gain_alone(self, most, rule):
        """Files of three clusterings over each other: together they gain, one by one nothing."""
        names = {base(f"c{n}", n): 100 for n in range(3)}
        layout = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")
        past = tuple(PastClustering(instant=stamp(hour), layout=layout) for hour in range(3))
        done = [*(instant(hour, Action.REPLACECOMMIT) for hour in range(3)), commit(4)]
        decision = decide(
            sized({"a": names}, done),
            when=OVERLAP,
            past=past,
            ranges=ranges((0, 9), (0, 9), (0, 9)),
            budget=ClusteringBudget(per_group=most),
            **BY_X,
        )

        assert [rule] * 3 == rules_of(decision)


class TestHeld:
    def test_groups_of_pending_services_stay(self):
        state = sized(
            {"a": bases(10, 10, 10, 10, 10)},
            compactions=(
                operation("g0", Action.COMPACTION),
                operation("g1", Action.LOGCOMPACTION),
            ),
            clusterings=(held("g2"),),
        )
        state = replace(state, timeline=timeline(commit(0), commit(7)))
        for when in (SHARE, ALWAYS):
            decision = decide(state, when=when)

            assert [("a", 1, 20, ["g3", "g4"])] == groups_of(decision)
            assert [
                f"compaction {stamp(5)} is going to rewrite its file group",
                f"log compaction {stamp(5)} is going to rewrite its log files",
                f"clustering {stamp(6)} is going to rewrite its file group",
            ] == decision.because.to_pylist()[:3]

    def test_groups_that_a_pending_write_has_written_to_stay(self):
        names = bases(10, 10, 10) | {base("g0", 3): 12}
        state = sized({"a": names}, [commit(0), commit(1), commit(3, State.REQUESTED)])
        decision = decide(state)

        assert [("a", 1, 20, ["g1", "g2"])] == groups_of(decision)
        assert decision.because.to_pylist()[0] == (
            f"{stamp(3)} has written to its file group and is still pending"
        )

    def test_hudi_itself_takes_them_all_the_same(self):
        names = bases(10, 10, 10) | {base("g0", 3): 12}
        state = sized({"a": names}, [commit(0), commit(1), commit(3, State.REQUESTED)])

        decision = decide(state, when=ALWAYS)

        assert [("a", 1, 30, ["g0", "g1", "g2"])] == groups_of(decision)
        assert [
            (
                "pendingWrite",
                (
                    f"{stamp(3)} is pending and has written to 1 group of the plan; apply "
                    "skips it until the write is completed or rolled back"
                ),
            )
        ] == [(note.rule, note.because) for note in decision.warnings]

    @pytest.mark.parametrize(
        ("slices", "expected"),
        [
            (1, "1 file slice waits for a pending compaction"),
            (2, "2 file slices wait for a pending compaction"),
        ],
    )
    def test_why_nothing_is_rewritten_is_said_of_one_and_of_several(self, slices, expected):
        names = [f"g{number}" for number in range(slices)]
        state = sized(
            {"a": bases(*(10 for _ in names))},
            compactions=tuple(operation(name, Action.COMPACTION) for name in names),
        )

        assert [f"no clustering: {expected}"] == [note.because for note in decide(state).warnings]


def operation(group, action):
    return PendingCompactionGroup(
        instant=stamp(5), action=action, partition="a", file_id=group, base_instant=stamp(0)
    )


def held(group):
    return PendingClusteringSlice(
        instant=stamp(6), partition="a", file_id=group, base_file=base(group, 0), log_files=()
    )


class TestGate:
    def test_too_few_commits_since_the_last_clustering(self):
        past = (PastClustering(instant=stamp(0), layout=None),)
        decision = decide(sized({"a": bases(10, 10)}), past=past, after_commits=2)
        says = f"1 commit since clustering {stamp(0)} (clustering.afterCommits: 2)"

        assert ["afterCommits", "afterCommits"] == rules_of(decision)
        assert {says} == set(decision.because.to_pylist())
        assert [f"no clustering: {says}"] == [note.because for note in decision.warnings]

    def test_enough_commits_open_it(self):
        past = (PastClustering(instant=stamp(0), layout=None),)
        decision = decide(sized({"a": bases(10, 10, hour=1)}, [commit(1), commit(2)]), past=past)

        assert 1 == len(decision.groups)

    def test_a_table_that_was_never_clustered_counts_all_commits(self):
        decision = decide(sized({"a": bases(10, 10)}), after_commits=3)

        assert "2 commits (clustering.afterCommits: 3)" == decision.because.to_pylist()[0]

    OURS: ClassVar = {PLAN_DIGEST: "sha256:1"}
    X: ClassVar = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")

    @pytest.mark.parametrize(
        ("extra", "layout", "is_open"),
        [
            (OURS, ClusteringLayout(), False),
            (
                OURS | {CIRCUMSTANCES_KEY: ClusteringContext(target=1, remaining_slices=0).text},
                ClusteringLayout(),
                False,
            ),
            (
                OURS | {CIRCUMSTANCES_KEY: ClusteringContext(target=1, remaining_slices=2).text},
                ClusteringLayout(),
                True,
            ),
            (OURS, X, True),
            ({CIRCUMSTANCES_KEY: ClusteringContext(target=1, remaining_slices=2).text}, X, False),
            ({}, None, False),
        ],
        ids=["all done", "nothing waits", "some wait", "other columns", "not ours", "Hudi's"],
    )
    def test_one_of_ours_that_left_work_does_not_count(self, extra, layout, is_open):
        past = (PastClustering(instant=stamp(2), layout=layout, extra=extra),)
        state = sized({"a": bases(10, 10)})
        decision, as_hudi = decide(state, past=past), decide(state, past=past, when=ALWAYS)

        assert [["afterCommits"] * 2, ["group"] * 2][is_open] == rules_of(decision)
        assert ["afterCommits"] * 2 == rules_of(as_hudi)

    def test_a_pending_clustering_counts_as_the_last(self):
        state = sized({"a": bases(10, 10, 10)}, clusterings=(held("g2"),))
        decision = decide(state)

        assert ["afterCommits", "afterCommits", "pendingClustering"] == rules_of(decision)


class TestAlways:
    """Hudi's own rule; more of it in the cases that real Hudi planned."""

    def test_lone_files_are_rewritten_unless_the_spec_says_no(self):
        state = sized({"a": bases(10), "b": bases(90), "c": bases(20, 20)})

        assert [["g0"], ["g0", "g1"]] == [g[3] for g in groups_of(decide(state, when=ALWAYS))]
        decision = decide(state, when=ALWAYS, single_file=False)
        assert [("c", 1, 40, ["g0", "g1"])] == groups_of(decision)
        assert ["singleFile", "large", "group", "group"] == rules_of(decision)

    def test_log_files_do_not_count_for_outputs(self):
        state = sized({"a": bases(60, 40) | {log("g0", 1): 500}})

        assert [("a", 1, 600, ["g0", "g1"])] == groups_of(decide(state, when=ALWAYS))

    def test_the_number_of_groups_is_cut_before_lone_files_go(self):
        """As Hudi does it: of two groups allowed the first two are lone files, and both go."""
        budget = ClusteringBudget(per_group=70, groups=2)
        state = sized({"a": bases(70, 60, 20, 20)})
        decision = decide(state, when=ALWAYS, single_file=False, budget=budget)

        assert [] == groups_of(decision)
        assert ["singleFile", "singleFile", "budget", "budget"] == rules_of(decision)


class TestColumns:
    def test_a_lone_small_file_is_ordered_too_unless_the_spec_says_no(self):
        state = sized({"a": bases(10)})

        assert [("a", 1, 10, ["g0"])] == groups_of(decide(state, **BY_X))
        assert ["singleFile"] == rules_of(decide(state, single_file=False, **BY_X))

    def test_the_layout_is_in_the_decision(self):
        decision = decide(sized({"a": bases(10)}), **BY_X)

        assert ClusteringLayout(columns=("x",), curve="linear", mapping="rank") == decision.layout


class TestPartitions:
    def test_partitions_that_are_left_out_say_why(self):
        state = sized({"a": bases(10, 10), "b": bases(10, 10), "c": bases(10, 10)})
        filters = PartitionFilter(exclude=("b",), skip_latest=1)
        decision = decide(state, partitions=filters)

        assert [("a", 1, 20, ["g0", "g1"])] == groups_of(decision)
        assert [
            "clustering.partitions.exclude has its partition, by b",
            "its partition is among the 1 latest (clustering.partitions.skipLatest)",
        ] == decision.because.to_pylist()[2::2]

    def test_a_folder_that_is_no_partition_is_left_alone(self):
        state = replace(sized({"a": bases(10, 10), "b": bases(10, 10)}), partitions=("a",))

        assert ["its folder is not a partition of the table"] * 2 == (
            decide(state).because.to_pylist()[2:]
        )


def test_a_table_without_files_has_nothing_to_do():
    decision = decide(sized({}))

    assert [] == groups_of(decision)
    assert ["no clustering: the table has no file slice"] == [
        note.because for note in decision.warnings
    ]


def test_a_spec_without_the_block_is_no_business_of_this_planner():
    with pytest.raises(ValueError, match="neither a clustering nor file sizes"):
        plan_clustering(TableSpec(name="t", path="/t"), sized({}), KnownStatistics())
