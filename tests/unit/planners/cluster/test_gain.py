"""Which partitions are rewritten because queries read fewer files: literal tables."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from reconciler.planners.cluster.clustering_input import SimulatedGains
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.cluster.read_model import BlockReads
from reconciler.planners.cluster.slice_verdicts import RULES
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    Query,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from tests.unit.planners.cluster.test_planner import bases, groups_of, rules_of, sized
from tests.unit.planners.cow import base, commit, stamp

GAIN = ClusteringTrigger(small_file_share_above=None, gain_above=0.2)
DECLARED = ClusteringLayout(columns=("x",), curve="kd-tree", mapping="rank")
SIZE = 95


def bounds_of(*columns):
    """Return what facts have of columns, each given as pairs of least and greatest by file."""
    return tuple(
        (pa.array([low for low, _ in pairs]), pa.array([high for _, high in pairs]))
        for pairs in columns
    )


def decide(state, *columns, queries=(), past=(), clustering=None, small=80, simulated=None):
    """Decide about files with these ranges on the columns x, y, …"""
    bounds = bounds_of(*columns)
    rows = np.full(len(columns[0]), 100, np.int64)
    facts = ClusteringFacts(written=(), clusterings=past, footers=None, bounds=bounds, rows=rows)
    asked = Clustering(columns=("x", "y", "z")[: len(columns)], curve="kd-tree", when=GAIN)
    spec = TableSpec(
        name="t",
        path="/t",
        files=FileSizes(target=100, small=small),
        clustering=replace(asked, **(clustering or {})),
        queries=tuple(Query(name=where, where=where) for where in queries),
    )
    ranges = ColumnRanges.build(bounds, rows)
    known = KnownStatistics(past=past, ranges=ranges, facts=facts)
    return plan_clustering(spec, state, known, simulated=simulated)


def files(count):
    return sized({"a": bases(*[SIZE] * count)})


class TestFiring:
    def test_a_scale_on_which_nothing_is_read_decides_nothing(self):
        """A date does not compare with numbers: where its 1 % lies depends on the scale."""
        ranges = [(0, 1000), *[(404, 405)] * 4]
        others = [(20, 30), *[(0, 10)] * 4]
        days = [f"(x = date '2024-01-0{day}' and y = 5)" for day in (1, 2)]
        decision = decide(files(5), ranges, others, queries=[" or ".join(days)])

        assert [4.0] == decision.gains.reads.files_now.tolist()

    def test_ranges_may_be_nearly_a_point_beside_others_that_are_huge(self):
        ranges = [(0.0, 5e-324), (0.0, 1e300), (1e300, 1e301), (1e299, 1e301)]
        decision = decide(files(4), ranges)

        assert np.isfinite(decision.gains.share).all()

    def test_four_files_in_any_order_are_rewritten_with_the_gain_and_its_cost(self):
        decision = decide(files(4), [(0, 100)] * 4)

        assert [("a", 4, 380, ["g0", "g1", "g2", "g3"])] == groups_of(decision)
        assert decision.groups.because.to_pylist() == [
            (
                "4 file slices of 380 B become 4 files: a box of 1 % of the rows reads 4.0 files "
                "now and 1.0 after, 74 % fewer (above gainAbove 0.2); rewriting 380 B is paid back "
                "by 1 read"
            )
        ]
        assert [True] == decision.gains.fires.tolist()
        assert decision.gains.share[0] == pytest.approx(0.743, abs=0.002)

    @pytest.mark.parametrize(
        ("ranges", "figures"),
        [
            ([(0, 100)], "1.0 files now and 1.0 after, 0 % fewer"),
            ([(7, 7)] * 4, "4.0 files now and 4.0 after, 0 % fewer"),
            ([(0, 24), (25, 49), (50, 74), (75, 99)], "1.0 files now and 1.0 after, 0 % fewer"),
        ],
        ids=["one file", "files of one value", "files in order"],
    )
    def test_what_gains_nothing_stays_and_its_reason_has_the_figures(self, ranges, figures):
        decision = decide(files(len(ranges)), ranges)
        because = f"a box of 1 % of the rows reads {figures} (within gainAbove 0.2)"

        assert {"when"} == set(rules_of(decision))
        assert [because] == decision.because.unique().to_pylist()
        assert decision.warnings[-1].because.endswith(because)

    def test_the_limit_counts(self):
        ranges = [(0, 60), (40, 100)]
        low = decide(files(2), ranges, clustering={"when": replace(GAIN, gain_above=0.1)})
        high = decide(files(2), ranges, clustering={"when": replace(GAIN, gain_above=0.5)})

        assert (1, 0) == (len(low.groups), len(high.groups))

    def test_boxes_of_two_columns_hold_a_tenth_of_each(self):
        everywhere = [(0, 100)] * 16
        decision = decide(files(16), everywhere, everywhere)
        reads = decision.gains.reads

        assert reads.files_now[0] == 16
        assert reads.files_then[0] == pytest.approx((1 + 3 * 0.1) ** 2, abs=0.05)

    def test_columns_that_rise_together_are_no_plane(self):
        """Files in the order of x are in the order of y too: a new order saves nothing."""
        ranges = [(10 * n, 10 * n + 10) for n in range(40)]

        assert 0 == len(decide(files(40), ranges, ranges).groups)

    def test_partitions_differ(self):
        state = sized({"a": bases(*[SIZE] * 4), "b": bases(*[SIZE] * 3)})
        decision = decide(state, [(0, 9)] * 4 + [(0, 2), (3, 5), (6, 9)])

        assert ["a"] == [path for path, *_ in groups_of(decision)]
        assert [True, False] == decision.gains.fires.tolist()

    def test_a_partition_without_statistics_is_not_judged(self):
        state = sized({"a": bases(*[SIZE] * 4), "b": bases(*[SIZE] * 2)})
        decision = decide(state, [(0, 9)] * 4 + [(None, None)] * 2)

        assert [False, True] == np.isnan(decision.gains.reads.files_now).tolist()
        assert {RULES.index("unmeasured")} == set(decision.rule[4:].tolist())
        assert ["gain"] == [note.rule for note in decision.warnings]

    def test_where_new_files_are_small_anyway_nothing_is_predicted(self):
        both = {"when": ClusteringTrigger()}
        decision = decide(sized({"a": bases(10, 10, 10)}), [(0, 9)] * 3, clustering=both)

        assert 1 == len(decision.groups)
        assert not decision.gains.fires.any()
        assert "smallFileShareAbove" in decision.groups.because[0].as_py()
        assert "gainAbove" not in decision.groups.because[0].as_py()

    def test_groups_that_are_read_no_less_stay(self):
        ranges = [(0, 100)] * 4 + [(1000 + 10 * n, 1009 + 10 * n) for n in range(4)]
        budget = {"budget": ClusteringBudget(per_group=4 * SIZE)}
        decision = decide(files(8), ranges, clustering=budget)

        assert [["g0", "g1", "g2", "g3"]] == [ids for *_, ids in groups_of(decision)]
        assert {"noGain"} == {rule for rule in rules_of(decision) if rule != "group"}


class TestQueries:
    def test_declared_queries_count_instead_of_boxes(self):
        decision = decide(files(4), [(0, 100)] * 4, queries=["x between 20 and 24", "x = 70"])

        assert (
            decision.groups.because[0]
            .as_py()
            .startswith(
                "4 file slices of 380 B become 4 files: a declared query reads 4.0 files now and 1."
            )
        )

    def test_queries_of_everything_gain_nothing(self):
        decision = decide(files(4), [(0, 100)] * 4, queries=["x >= 0", "x < 1000"])

        assert 0 == len(decision.groups)

    def test_a_tree_cuts_the_column_that_queries_limit(self):
        everywhere = [(0, 100)] * 16
        decision = decide(files(16), everywhere, everywhere, queries=["y = 5"])

        assert 1.0 == decision.gains.reads.files_then[0]

    def test_alternatives_of_a_query_read_a_file_once(self):
        decision = decide(files(4), [(0, 100)] * 4, queries=["x = 5 or x = 6 or x = 7"])

        assert 4.0 == decision.gains.reads.files_now[0]

    def test_a_query_beyond_all_files_reads_none(self):
        decision = decide(files(4), [(0, 100)] * 4, queries=["x = 500", "x = 5"])

        assert 2.0 == decision.gains.reads.files_now[0]

    def test_a_literal_that_does_not_compare_is_a_range_of_1_percent(self):
        decision = decide(files(4), [(0, 100)] * 4, queries=["x = '2026-01-01'"])

        assert decision.gains.is_declared
        assert 4.0 == decision.gains.reads.files_now[0]
        assert decision.gains.reads.files_then[0] == pytest.approx(1.03, abs=0.02)

    def test_text_compares_by_its_bytes(self):
        pairs = [(b"a", b"z")] * 4
        decision = decide(files(4), pairs, queries=["x like 'm%'"])

        assert decision.gains.reads.files_then[0] < 1.5


class TestSimulations:
    """What sampled rows show counts more than the ranges of files."""

    WIDE: ClassVar = {"queries": ["x between 0 and 95"]}

    def simulated(self, now, then):
        one = [np.array([figure]) for figure in (now, then, now * SIZE, then * SIZE)]
        return SimulatedGains(
            BlockReads(files_now=one[0], files_then=one[1], bytes_now=one[2], bytes_then=one[3])
        )

    def test_a_gain_that_ranges_do_not_show_is_found(self):
        state, ranges = files(4), [(0, 100)] * 4
        trial = decide(state, ranges, simulated=SimulatedGains(), **self.WIDE)
        found = decide(state, ranges, simulated=self.simulated(4.0, 1.5), **self.WIDE)

        assert 0 == len(decide(state, ranges, **self.WIDE).groups)
        assert groups_of(trial) == groups_of(found) != []
        assert "reads 4.0 files now and 1.5 after, 62 % fewer" in found.groups.because[0].as_py()

    def test_a_gain_that_only_ranges_show_is_none(self):
        lost = self.simulated(1.0, 2.0)
        decision = decide(files(4), [(0, 100)] * 4, queries=["x = 5"], simulated=lost)

        assert 0 == len(decision.groups)
        assert "reads 1.0 files now and 2.0 after, 0 % fewer" in decision.because[0].as_py()

    def test_what_was_not_sampled_is_left_to_the_ranges(self):
        unknown = self.simulated(np.nan, np.nan)

        assert 1 == len(
            decide(files(4), [(0, 100)] * 4, queries=["x = 5"], simulated=unknown).groups
        )
        assert 0 == len(decide(files(4), [(0, 100)] * 4, simulated=unknown, **self.WIDE).groups)

    def test_boxes_are_not_simulated(self):
        decision = decide(files(4), [(0, 100)] * 4, simulated=self.simulated(1.0, 2.0))

        assert 1 == len(decision.groups)


class TestMemory:
    PAST = (PastClustering(instant=stamp(1), layout=DECLARED),)

    def clustered(self, count, hour=1):
        return {base(f"c{hour}{number}", hour): SIZE for number in range(count)}

    def test_files_of_one_clustering_stay_whatever_they_cover(self):
        state = sized({"a": self.clustered(6)}, [commit(0), commit(1), commit(3)])
        decision = decide(state, [(0, 9)] * 6, past=self.PAST)

        assert 0 == len(decision.groups)
        assert np.isnan(decision.gains.reads.files_now[0])

    def test_groups_of_one_clustering_that_meet_are_combined(self):
        """Eight files are more than a group may have, so they were rewritten in two."""
        state = sized({"a": self.clustered(8)}, [commit(0), commit(1), commit(3)])
        budget = {"budget": ClusteringBudget(per_group=4 * SIZE)}
        quarters = [(0, 24), (25, 49), (50, 74), (75, 99)]
        eighths = [(12 * n, 12 * n + 11) for n in range(8)]

        apart = decide(state, quarters * 2, past=self.PAST, clustering=budget)
        joint = decide(state, eighths, past=self.PAST, clustering=budget)

        assert [["c10", "c11", "c14", "c15"], ["c12", "c13", "c16", "c17"]] == sorted(
            sorted(ids) for *_, ids in groups_of(apart)
        )
        assert 0 == len(joint.groups)
        assert {"when"} == set(rules_of(joint))

    def test_few_new_files_beside_much_that_is_in_order_are_left(self):
        """One more file is read of 12: the others need no rewrite for that."""
        state = sized(
            {"a": self.clustered(40) | {base("g0", 3): SIZE}}, [commit(0), commit(1), commit(3)]
        )
        ordered = [(10 * n, 10 * n + 9) for n in range(40)]
        wide = {"queries": ["x between 0 and 119"]}
        decision = decide(state, [*ordered, (0, 400)], past=self.PAST, **wide)

        assert 0 == len(decision.groups)

    def test_new_files_are_rewritten_alone_where_that_is_enough(self):
        names = self.clustered(8) | {base(f"g{n}", 3): SIZE for n in range(4)}
        state = sized({"a": names}, [commit(0), commit(1), commit(3)])
        ordered = [(10 * n, 10 * n + 9) for n in range(8)]
        decision = decide(state, [*ordered, *[(100, 200)] * 4], past=self.PAST)

        assert [["g0", "g1", "g2", "g3"]] == [ids for *_, ids in groups_of(decision)]

    def test_files_in_order_are_rewritten_with_new_ones_that_they_meet(self):
        names = self.clustered(2) | {base(f"g{n}", 3): SIZE for n in range(2)}
        state = sized({"a": names}, [commit(0), commit(1), commit(3)])
        decision = decide(state, [(0, 49), (50, 99), (0, 99), (0, 99)], past=self.PAST)

        assert [4] == [len(ids) for *_, ids in groups_of(decision)]

    def test_files_of_two_clusterings_that_meet_are_combined_once(self):
        names = self.clustered(3) | self.clustered(3, hour=2)
        past = (*self.PAST, PastClustering(instant=stamp(2), layout=DECLARED))
        state = sized({"a": names}, [commit(0), commit(1), commit(2), commit(3)])
        thirds = [(0, 30), (31, 60), (61, 99)]
        decision = decide(state, [*thirds, *thirds], past=past)

        assert [6] == [len(ids) for *_, ids in groups_of(decision)]
        assert 0 == len(
            decide(state, [*thirds, (100, 130), (131, 160), (161, 199)], past=past).groups
        )

    def test_groups_of_one_clustering_each_stay(self):
        """The files of either overlap each other, but not those of the other."""
        names = self.clustered(4) | self.clustered(4, hour=2)
        past = (*self.PAST, PastClustering(instant=stamp(2), layout=DECLARED))
        state = sized({"a": names}, [commit(0), commit(1), commit(2), commit(3)])
        budget = {"budget": ClusteringBudget(per_group=4 * SIZE)}
        ranges = [(0, 99)] * 4 + [(1000, 1099)] * 4

        assert 0 == len(decide(state, ranges, past=past, clustering=budget).groups)
