"""The drawing of files over the clustering columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.plans.columns import encode_dictionary
from reconciler.plans.model import ClusterStep, TablePlan
from reconciler.plans.rewrites import Rewrites
from reconciler.render.html.layout_chart import draw_layouts
from reconciler.spec.model import Clustering
from reconciler.state.clustering_facts import ClusteringFacts
from tests.unit.planners.cow import base, commit, table

FILES = [base(f"g{n}", 0) for n in range(4)]


def observed(lower, upper, kind=None):
    bounds = ((pa.array(lower, kind or pa.int64()), pa.array(upper, kind or pa.int64())),)
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=bounds, rows=np.full(4, 100)
    )
    return table({"a": FILES}, [commit(0)], clustering_facts=facts)


def clustered(outputs, columns=("x",), curve="linear"):
    groups = Rewrites(
        partition=encode_dictionary(["a"]),
        outputs=np.array([outputs]),
        bytes=np.array([40]),
        because=encode_dictionary(["small"]),
        starts=np.array([0, 4]),
        file_id=pa.array([f"g{n}" for n in range(4)]),
        base=pa.array(FILES),
        logs=pa.array([[]] * 4, pa.list_(pa.string())),
    )
    step = ClusterStep(columns=columns, curve=curve, mapping="rank", groups=groups)
    return TablePlan(name="t", path="/t", spec={}, spec_digest="", steps=(step,))


def draw(state, plan, columns=("x",), curve="linear"):
    return draw_layouts(state, plan, Clustering(columns=columns, curve=curve))


def places(drawing, paint):
    return [
        (round(r.x, 1), round(r.x + r.width, 1), r.y) for r in drawing.rects if r.paint == paint
    ]


def test_files_that_share_a_value_lie_below_each_other():
    nothing = TablePlan(name="t", path="/t", spec={}, spec_digest="")
    [drawing] = draw(observed([0, 0, 50, 60], [40, 60, 100, 80]), nothing)
    found = places(drawing, "before")

    assert [(0.0, 40.0), (0.0, 60.0), (50.0, 100.0), (60.0, 80.0)] == [f[:2] for f in found]
    assert found[0][2] == found[2][2], "the first and the third share no value"
    assert found[1][2] == found[3][2], "the second ends where the fourth begins"
    assert drawing.description == "today: 4 files, up to 2 share a value."
    assert "after" not in {r.paint for r in drawing.rects}


def test_a_clustering_divides_the_values_into_parts_with_equally_many_rows():
    state = observed([0, 0, 0, 0], [100, 100, 100, 100])
    [drawing] = draw(state, clustered(4))

    assert [(0.0, 25.0), (25.0, 50.0), (50.0, 75.0), (75.0, 100.0)] == [
        place[:2] for place in places(drawing, "after")
    ]
    assert drawing.description == (
        "today: 4 files, all share a value; after, estimated: 4 files without overlap."
    )


def test_a_curve_over_two_columns_divides_each_less():
    state = observed([0, 0, 0, 0], [100, 100, 100, 100])
    [drawing] = draw(state, clustered(4, ("x", "y"), "kd-tree"), ("x", "y"), "kd-tree")

    assert {(0.0, 50.0), (50.0, 100.0)} == {place[:2] for place in places(drawing, "after")}
    assert drawing.description.endswith("after, estimated: 4 files, up to 2 share a value.")


def test_files_without_statistics_are_not_drawn():
    state = observed([0, None, 50, 60], [40, None, 100, 80])
    [drawing] = draw(state, TablePlan(name="t", path="/t", spec={}, spec_digest=""))

    assert 3 == len(drawing.rects)


def test_a_drawing_of_very_many_files_says_how_many_it_has():
    names = [f"g{n:03d}" for n in range(300)]
    bounds = ((pa.array([0] * 300), pa.array([9] * 300)),)
    facts = ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=bounds, rows=np.full(300, 100)
    )
    state = table({"a": [base(name, 0) for name in names]}, [commit(0)], clustering_facts=facts)
    [drawing] = draw(state, TablePlan(name="t", path="/t", spec={}, spec_digest=""))

    assert drawing.description == "today: 300 files, 240 of them drawn, all share a value."
    assert 240 == sum(rect.is_thin for rect in drawing.rects)


def test_one_file_overlaps_nothing():
    [drawing] = draw(observed([0, 0, 0, 0], [100, 100, 100, 100]), clustered(1))

    assert drawing.description == "today: 4 files, all share a value; after, estimated: 1 file."


def test_ends_of_fractions_have_six_digits():
    state = observed([0.01883280208, 1.0, 2.0, 3.0], [1.5, 2.5, 999.997049, 3.5], pa.float64())
    [drawing] = draw(state, TablePlan(name="t", path="/t", spec={}, spec_digest=""))

    assert ["0.0188328", "999.997"] == [label.text for label in drawing.labels[1:]]


def test_texts_have_their_order():
    state = observed(["a", "b", "c", "d"], ["b", "c", "d", "e"], pa.string())
    [drawing] = draw(state, TablePlan(name="t", path="/t", spec={}, spec_digest=""))

    assert [("a", "start"), ("e", "end")] == [
        (label.text, label.anchor) for label in drawing.labels[1:]
    ]
