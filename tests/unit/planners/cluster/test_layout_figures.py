"""What a clustering changes, in figures: literal tables, and random rows along real curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reconciler.hudi.files.table_files import build_files
from reconciler.layout.curves.row_layout import FitSample, compute_keys, fit_layout
from reconciler.layout.curves.row_layout import assign_files as files_of
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.planners.cluster.layout_figures import (
    measure_layout,
    predict_layout,
    sum_by_partition,
)
from reconciler.planners.cluster.overlap import estimate_curve_overlap
from reconciler.planners.cluster.planner import plan_clustering
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.planners.known_statistics import KnownStatistics
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    TableSpec,
)
from tests.unit.planners.cow import base, commit, table

SIZES = FileSizes(target=100, small=80)
PLAIN = RecordSize(fixed=0, per_row=1.0, because="")


def sized(folders):
    """A table of base files of so many bytes: ``{"a": [30, 90]}``."""
    state = table({"a": []}, [commit(0), commit(1)])
    named = (
        (p, [base(f"g{n:04d}", 0) for n in range(len(sizes))], sizes)
        for p, sizes in folders.items()
    )
    files = build_files(named, ".parquet")
    return replace(state, files=files, partitions=files.partitions)


def ranges(*columns, rows=100):
    """Statistics: per column a pair of least and greatest a file."""
    arrays = [
        (pa.array([low for low, _ in pairs]), pa.array([high for _, high in pairs]))
        for pairs in columns
    ]
    return ColumnRanges.build(arrays, np.full(len(columns[0]), rows, np.int64))


def decided(state, known=None, columns=(), curve=None, **when):
    given = {"small_file_share_above": 0.3, "gain_above": None} | when
    asked = Clustering(
        columns=columns,
        curve=curve,
        when=ClusteringTrigger(**given),
        budget=ClusteringBudget(per_group=10**6, groups=100),
    )
    spec = TableSpec(name="t", path="/t", files=SIZES, clustering=asked)
    return plan_clustering(spec, state, KnownStatistics(sizes=PLAIN, ranges=known))


class TestFiles:
    def test_small_ones_become_fewer_and_bigger(self):
        found = predict_layout(decided(sized({"a": [30, 90, 20, 40], "b": [95]})), SIZES, PLAIN)

        assert ["a", "b"] == found.before.partition.to_pylist()
        assert ([4, 1], [2, 1]) == (found.before.files.tolist(), found.after.files.tolist())
        assert ([3, 0], [0, 0]) == (found.before.small.tolist(), found.after.small.tolist())
        assert [5, 20, 80, 100, 200] == found.before.sizes.upper_bounds.tolist()
        assert [0, 0, 3, 2, 0, 0] == found.before.sizes.files.tolist()
        assert [0, 0, 90, 185, 0, 0] == found.before.sizes.bytes.tolist()
        assert [0, 0, 0, 3, 0, 0] == found.after.sizes.files.tolist()
        assert [0, 0, 0, 275, 0, 0] == found.after.sizes.bytes.tolist()

    def test_the_fixed_cost_is_paid_once_a_file(self):
        cost = RecordSize(fixed=10, per_row=1.0, because="")
        found = predict_layout(decided(sized({"a": [30, 30, 30]})), SIZES, cost)

        assert 90 == found.before.bytes.sum()
        assert 70 == found.after.bytes.sum()

    def test_a_step_alone_tells_its_sums_by_partition(self):
        decision = decided(sized({"a": [30, 20], "b": [95], "c": [10, 20, 10]}))
        found = sum_by_partition(decision.groups)

        assert ["a", "c"] == found.partition.to_pylist()
        assert [1, 1] == found.groups.tolist()
        assert [2, 3] == found.slices.tolist()
        assert [1, 1] == found.outputs.tolist()
        assert [50, 40] == found.bytes.tolist()

    def test_nothing_to_rewrite_changes_nothing(self):
        found = predict_layout(decided(sized({"a": [95, 95]})), SIZES, PLAIN)

        assert found.before.files.tolist() == found.after.files.tolist()
        assert found.before.sizes.bytes.tolist() == found.after.sizes.bytes.tolist()
        assert [] == sum_by_partition(decided(sized({"a": [95]})).groups).bytes.tolist()

    def test_an_empty_table_has_no_figures(self):
        found = predict_layout(decided(sized({"a": []})), SIZES, PLAIN)

        assert [] == found.before.files.tolist() == found.after.files.tolist()
        assert 0 == found.after.sizes.files.sum()


class TestOverlap:
    def test_it_is_not_known_without_statistics(self):
        found = predict_layout(decided(sized({"a": [30, 20]})), SIZES, PLAIN)

        assert np.isnan(found.before.overlap).all()
        assert np.isnan(found.after.table_overlap)

    def test_files_of_one_group_overlap_no_more(self):
        known = ranges([(0, 9)] * 4)
        decision = decided(sized({"a": [90] * 4}), known, ("x",), "linear", overlap_above=2.0)
        found = predict_layout(decision, SIZES, PLAIN, known)

        assert [4.0] == found.before.overlap.tolist()
        assert [1.0] == found.after.overlap.tolist()
        assert 400 == found.before.rows[0]

    def test_what_stays_covers_what_it_covered(self):
        known = ranges([(0, 9)] * 5)
        decision = decided(sized({"a": [30, 30, 95, 95, 95]}), known, ("x",), "linear")
        found = predict_layout(decision, SIZES, PLAIN, known)

        assert [[0, 1]] == [np.flatnonzero(decision.group_of == 0).tolist()]
        assert ([5.0], [4.0]) == (found.before.overlap.tolist(), found.after.overlap.tolist())

    def test_partitions_that_are_not_rewritten_keep_theirs(self):
        known = ranges([(0, 9)] * 3 + [(0, 4), (5, 9)])
        decision = decided(
            sized({"a": [95] * 3, "b": [95] * 2}), known, ("x",), "linear", overlap_above=2.0
        )
        found = predict_layout(decision, SIZES, PLAIN, known)

        assert ([3.0, 1.0], [1.0, 1.0]) == (
            found.before.overlap.tolist(),
            found.after.overlap.tolist(),
        )
        assert (3 * 3 + 2 * 1) / 5 == pytest.approx(found.before.table_overlap)

    def test_a_partition_of_which_nothing_is_known_is_not_judged(self):
        known = ranges([(None, None)] * 4 + [(0, 9)] * 3 + [(None, None)])
        decision = decided(
            sized({"a": [90] * 4, "b": [90] * 4}), known, ("x",), "linear", overlap_above=2.0
        )
        found = predict_layout(decision, SIZES, PLAIN, known)

        assert ["b"] == decision.groups.partition.to_pylist()
        assert [True, False] == np.isnan(decision.triggers.overlap).tolist()
        assert [True, False] == np.isnan(found.before.overlap).tolist()
        assert [True, False] == np.isnan(found.after.overlap).tolist()
        assert 4.0 == found.before.table_overlap

    def test_what_is_known_already_is_not_measured_again(self):
        decision = decided(sized({"a": [90] * 4}))
        known = measure_layout(
            decision.candidates, SIZES, ranges([(0, 9)] * 4), known=np.array([7.0])
        )

        assert [7.0] == known.overlap.tolist()


def boxes_of(columns, file):
    """Per column a pair of least and greatest of each file."""
    count = int(file.max()) + 1
    found = []
    for values in columns:
        least, most = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(least, file, values)
        np.maximum.at(most, file, values)
        found.append(list(zip(least.tolist(), most.tolist(), strict=True)))
    return found


def laid_out(columns, curve, files):
    """The file of each row."""
    rows = pa.table({f"c{nth}": values for nth, values in enumerate(columns)})
    ties = np.arange(len(rows), dtype=np.uint64)
    layout = fit_layout(
        FitSample(rows=rows, ties=ties), rows.column_names, files=files, curve=curve
    )
    return files_of(layout, compute_keys(layout, rows, ties=ties), ties=ties)


def covering(columns, file):
    """The mean number of files that cover a row, of the rows themselves."""
    is_in = np.ones((500, int(file.max()) + 1), np.bool_)
    for values, pairs in zip(columns, boxes_of(columns, file), strict=True):
        some, (least, most) = values[:500, None], np.array(pairs).T
        is_in &= (least <= some) & (some <= most)
    return float(is_in.sum(axis=1).mean())


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(
    ("curve", "slack"), [("linear", 0.02), ("kd-tree", 0.02), ("hilbert", 0.5), ("z-order", 0.65)]
)
def test_files_along_a_curve_cover_a_row_as_often_as_predicted(curve, slack, width):
    columns = np.random.default_rng(width).random((width, 20_000))
    for files in (1, 2, 5, 12, 30):
        real = covering(columns, laid_out(columns, curve, files))
        said = estimate_curve_overlap(curve, width, files)

        assert real == pytest.approx(said, rel=slack), (files, said)


@pytest.mark.parametrize("curve", ["kd-tree", "hilbert", "z-order", "linear"])
def test_what_is_predicted_of_bounds_comes_true_of_rows(curve):
    columns = np.random.default_rng(7).lognormal(0, 1, (2, 20_000))
    scattered = np.arange(20_000) % 24
    bounds = boxes_of(columns, scattered)
    known = ranges(*bounds, rows=20_000 // 24)
    decision = decided(sized({"a": [90] * 24}), known, ("x", "y"), curve, overlap_above=4.0)
    found = predict_layout(decision, SIZES, PLAIN, known)
    (outputs,) = decision.groups.outputs.tolist()
    real = covering(columns, laid_out(columns, curve, outputs))

    assert covering(columns, scattered) == pytest.approx(found.before.overlap[0], rel=0.15)
    assert real == pytest.approx(found.after.overlap[0], rel=0.3)


ROWS = 20_000
SPREADS = {
    "even": lambda chance: chance.random(ROWS),
    "normal": lambda chance: chance.normal(size=ROWS),
    "a few far greater": lambda chance: chance.lognormal(0, 1.5, ROWS),
    "most alike": lambda chance: chance.zipf(1.6, ROWS).clip(0, 10**9).astype(np.float64),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("width", [1, 2])
def test_files_that_hold_rows_of_all_kinds_are_seen_to_overlap(width, spread):
    chance = np.random.default_rng(width)
    columns = [SPREADS[spread](chance) for _ in range(width)]
    scattered = np.arange(ROWS) % 40
    known = ranges(*boxes_of(columns, scattered))
    found = measure_layout(decided(sized({"a": [90] * 40})).candidates, SIZES, known)

    assert 40 == pytest.approx(covering(columns, scattered), abs=1)
    assert 33 < found.overlap[0] <= 40.5


@pytest.mark.parametrize("hours", [1, 3, 10])
def test_files_of_sliding_times_overlap_by_as_many_as_slide(hours):
    file = np.arange(ROWS) // (ROWS // 40)
    chance = np.random.default_rng(hours)
    columns = [file + chance.random(ROWS) * hours, chance.random(ROWS)]
    known = ranges(*boxes_of(columns, file))
    found = measure_layout(decided(sized({"a": [90] * 40})).candidates, SIZES, known)

    assert found.overlap[0] == pytest.approx(
        np.mean([min(n + 1, hours, 40) for n in range(40)]), rel=0.12
    )


def test_texts_that_begin_alike_are_told_apart_by_what_follows():
    keys = np.array(
        [f"customer-{n:06d}" for n in np.random.default_rng(1).integers(0, 10**6, 2000)]
    )
    of_files = [keys[np.arange(2000) % 20 == n] for n in range(20)]
    scattered = ranges([(min(found), max(found)) for found in of_files])
    ordered = ranges([(f"customer-{n}0", f"customer-{n}9") for n in range(10, 30)])
    state = decided(sized({"a": [90] * 20})).candidates

    assert 19.5 < measure_layout(state, SIZES, scattered).overlap[0] <= 20
    assert 1.0 == measure_layout(state, SIZES, ordered).overlap[0]
