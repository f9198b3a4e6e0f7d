"""How often file slices were laid out as declared, and what is often enough: literal tables."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.planners.cluster.passes import build_pass_metadata, digest_declaration
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    Query,
    TableSpec,
)
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import (
    PASSES_KEY,
    ClusteringLayout,
    PastClustering,
    RecordedPasses,
)
from tests.unit.planners.cluster.test_planner import (
    BY_X,
    OVERLAP,
    decide,
    groups_of,
    instant,
    log,
    ranges,
    rules_of,
    sized,
)
from tests.unit.planners.cow import base, commit, stamp

DECLARED = ClusteringLayout(columns=("x",), curve="linear", mapping="rank")
BUDGET = ClusteringBudget(per_group=450)
SPEC = TableSpec(
    name="t",
    path="/t",
    files=FileSizes(target=100, small=80),
    clustering=Clustering(when=OVERLAP, budget=BUDGET, **BY_X),
)
ASKED = digest_declaration(SPEC, SPEC.clustering)
#: of three files in one group of three
ENOUGH = 3


def past(hour, nth=1, *, asked=ASKED, partition="a"):
    """A clustering of that hour, which was the so manieth pass over a partition."""
    extra = (
        {PASSES_KEY: RecordedPasses(declaration_digest=asked, partitions={partition: nth}).text}
        if nth > 1
        else {}
    )
    return PastClustering(instant=stamp(hour), layout=DECLARED, extra=extra)


def over_each_other(*more, hours=(0, 1, 2)):
    """Three files of as many clusterings, all over each other, and what has come since."""
    names = {base(f"c{n}", hour): 100 for n, hour in enumerate(hours)} | dict(more)
    done = [instant(hour, Action.REPLACECOMMIT) for hour in sorted(set(hours))]
    return sized({"a": names}, [*done, commit(4)])


def again(state, *clusterings, **more):
    given = {"when": OVERLAP, "budget": BUDGET, **BY_X, **more}
    found = ranges(*[(0, 9)] * len(state.files))
    return decide(state, past=clusterings, ranges=found, **given)


def written(state, *clusterings, spec=SPEC):
    """What an instant says that rewrites what is planned."""
    rows = np.zeros(len(state.files), np.int64)
    known = ClusteringFacts(
        written=(), clusterings=clusterings, footers=None, bounds=None, rows=rows
    )
    groups = again(state, *clusterings).groups
    assert len(groups)
    return build_pass_metadata(spec, replace(state, clustering_facts=known), groups)


class TestEnough:
    def test_what_has_made_passes_enough_stays(self):
        done = [past(hour, ENOUGH) for hour in range(3)]
        decision = again(over_each_other(), *done)

        assert ["clustered"] * 3 == rules_of(decision)
        assert [
            f"clustering {stamp(hour)} ordered it as declared, and its partition was clustered 3 "
            "times; only new rows cause another rewrite"
            for hour in range(3)
        ] == decision.because.to_pylist()

    def test_it_is_rewritten_with_what_has_made_one_less(self):
        done = [past(0, ENOUGH), past(1, ENOUGH), past(2, ENOUGH - 1)]
        decision = again(over_each_other(), *done)

        assert [("a", 3, 300, ["c0", "c1", "c2"])] == groups_of(decision)

    def test_new_rows_are_always_worked_in(self):
        done = [past(hour, ENOUGH) for hour in range(3)]
        decision = again(over_each_other((base("n0", 4), 100)), *done)

        assert [("a", 4, 400, ["c0", "c1", "c2", "n0"])] == groups_of(decision)

    def test_a_small_new_file_takes_those_along_that_are_small(self):
        sizes = {base("c0", 0): 30, base("n0", 4): 30}
        state = sized({"a": sizes}, [instant(0, Action.REPLACECOMMIT), commit(4)])
        share = ClusteringTrigger(small_file_share_above=0.3, gain_above=None)
        decision = again(state, past(0, 99), when=share)

        assert [("a", 1, 60, ["n0", "c0"])] == groups_of(decision)

    def test_it_takes_more_passes_where_a_group_holds_less_of_a_partition(self):
        """Two files a group: what three hold has met in two rounds of them."""
        for nth, rule in ((ENOUGH, "group"), (ENOUGH + 1, "clustered")):
            budget = ClusteringBudget(per_group=200)
            spec = replace(SPEC, clustering=replace(SPEC.clustering, budget=budget))
            asked = digest_declaration(spec, spec.clustering)
            done = [past(hour, nth, asked=asked) for hour in range(3)]
            decision = again(over_each_other(), *done, budget=budget)

            assert rule == rules_of(decision)[0]

    @pytest.mark.parametrize(
        "other",
        [
            {"files": FileSizes(target=99, small=80)},
            {"queries": (Query(name="q", where="x = 1", max_scan=0.1),)},
            {"clustering": replace(SPEC.clustering, budget=ClusteringBudget(per_group=400))},
            {"clustering": replace(SPEC.clustering, when=ClusteringTrigger(overlap_above=1.0))},
        ],
    )
    def test_under_another_declaration_they_count_anew(self, other):
        spec = replace(SPEC, **other)
        done = [
            past(hour, ENOUGH, asked=digest_declaration(spec, spec.clustering)) for hour in range(3)
        ]

        assert ["group"] * 3 == rules_of(again(over_each_other(), *done))

    def test_how_many_groups_a_run_has_is_no_other_declaration(self):
        budget = replace(BUDGET, groups=1)
        spec = replace(SPEC, clustering=replace(SPEC.clustering, budget=budget))

        assert ASKED == digest_declaration(spec, spec.clustering)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"asked":1,"partitions":{"a":"x"}}'])
    def test_what_cannot_be_read_is_the_first_pass(self, text):
        one = PastClustering(instant=stamp(0), layout=DECLARED, extra={PASSES_KEY: text})
        done = [one, past(1, ENOUGH), past(2, ENOUGH)]

        assert ["group"] * 3 == rules_of(again(over_each_other(), *done))


class TestWritten:
    def test_the_first_pass_says_nothing(self):
        state = sized({"a": {base(f"n{n}", 0): 100 for n in range(3)}}, [commit(0)])

        assert {} == written(state)

    def test_a_group_makes_the_pass_after_the_least_of_its_own(self):
        extra = written(over_each_other(), past(0, ENOUGH), past(1, 2), past(2, ENOUGH))

        assert RecordedPasses(declaration_digest=ASKED, partitions={"a": 3}) == RecordedPasses.read(
            extra
        )

    def test_what_is_new_in_it_makes_it_the_first(self):
        state = over_each_other((log("c1", 4), 150), hours=(0, 1, 1))
        found = written(state, past(0, 2), past(1, 2))

        assert {} == found

    def test_of_a_partition_the_greatest_counts(self):
        """Two groups of one partition, the third and the second pass; and one elsewhere."""
        files = {base(f"c{n}", n % 3): 100 for n in range(6)}
        done = [instant(hour, Action.REPLACECOMMIT) for hour in range(3)]
        state = sized({"a": files, "b": {base("n0", 3): 100}}, [*done, commit(3)])
        groups = SimpleNamespace(
            partition=SimpleNamespace(to_pylist=lambda: ["a", "a", "b"]),
            starts=np.array([0, 2, 4, 5]),
            file_id=SimpleNamespace(to_pylist=lambda: ["c2", "c5", "c0", "c1", "n0"]),
        )
        rows = np.zeros(len(state.files), np.int64)
        clusterings = (past(0, 1), past(1, 2), past(2, 2))
        known = ClusteringFacts(
            written=(), clusterings=clusterings, footers=None, bounds=None, rows=rows
        )
        extra = build_pass_metadata(SPEC, replace(state, clustering_facts=known), groups)

        assert RecordedPasses(declaration_digest=ASKED, partitions={"a": 3}) == RecordedPasses.read(
            extra
        )

    @pytest.mark.parametrize(
        "clustering",
        [
            None,
            Clustering(columns=()),
            Clustering(when=ClusteringTrigger(always=True), **BY_X),
        ],
    )
    def test_where_none_are_counted_none_are_written(self, clustering):
        spec = replace(SPEC, clustering=clustering)

        assert {} == written(over_each_other(), *(past(n, 2) for n in range(3)), spec=spec)

    def test_no_groups_make_no_pass(self):
        state = over_each_other()
        none = again(state, *(past(n, ENOUGH) for n in range(3))).groups

        assert {} == build_pass_metadata(SPEC, state, none)
