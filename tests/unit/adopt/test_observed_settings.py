"""What a table shows of its clustering, its file sizes and its writers' zone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.adopt.observed_settings import (
    ObservedClustering,
    ObservedSizes,
    observe_clustering,
    observe_sizes,
)
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.state.clustering_layout import LAYOUT_KEY, ClusteringLayout
from tests.unit.planners import cow

SORT = "hoodie.clustering.plan.strategy.sort.columns"
CURVE = "hoodie.layout.optimize.strategy"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def plan(**strategy):
    return RequestedReplace(
        operation="CLUSTER", is_clustering=True, slices=(), strategy=dict(strategy)
    )


def test_the_newest_clustering_tells_the_columns_and_not_the_curve():
    plans = [
        ("3", plan(**{SORT: "b, a"})),
        ("1", plan(**{SORT: "a"})),
        ("2", plan(**{SORT: "b,a"})),
    ]

    assert observe_clustering(plans) == ObservedClustering(
        instant="3", columns=("b", "a"), curve=None, equal_plans=2, plans=3
    )


def test_a_curve_is_told_where_a_plan_says_it():
    found = observe_clustering([("1", plan(**{SORT: "a", CURVE: "ZORDER"}))])

    assert found is not None
    assert found.curve == "z-order"


def test_a_clustering_of_reconciler_records_its_whole_layout():
    layout = ClusteringLayout(columns=("b", "a"), curve="kd-tree", mapping="rank")
    ours = replace(plan(**{SORT: "b,a"}), extra={LAYOUT_KEY: layout.text})
    found = observe_clustering([("1", plan(**{SORT: "a"})), ("2", ours)])

    assert found is not None
    assert (found.columns, found.curve, found.mapping) == (("b", "a"), "kd-tree", "rank")


def test_a_clustering_may_name_no_columns():
    assert observe_clustering([("1", plan())]) == ObservedClustering(
        instant="1", columns=(), curve=None, equal_plans=1, plans=1
    )


def test_an_overwrite_is_no_clustering():
    overwrite = RequestedReplace(operation="INSERT_OVERWRITE", is_clustering=False, slices=())

    assert observe_clustering([("1", overwrite)]) is None
    assert observe_clustering([]) is None


def test_sizes_are_those_of_the_newest_slices():
    names = [cow.base(f"g{n}", 1) for n in range(20)] + [cow.base("g0", 0)]
    state = cow.table({"a": names}, [cow.commit(0), cow.commit(1)])
    sizes = [10 * (1 + n) for n in range(21)]
    for row, size in enumerate(sizes):
        state.files.size[row] = size
    is_old = state.files.name.to_pylist().index(cow.base("g0", 0))

    found = observe_sizes(state.view)

    left = sorted(size for row, size in enumerate(sizes) if row != is_old)
    assert found == ObservedSizes(files=20, common_size=left[18], largest=left[19])


def test_few_files_say_nothing_about_sizes():
    assert observe_sizes(cow.upserts(3).view) is None
