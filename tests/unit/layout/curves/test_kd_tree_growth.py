"""The columns and the positions at which a k-d tree is cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.layout.curves.kd_tree_growth import grow_tree
from reconciler.layout.curves.query_workload import QueryBoxes
from reconciler.layout.curves.row_layout import FitSample, assign_files, compute_keys, fit_layout
from reconciler.layout.curves.sorted_sample import sort_sample


def files_of(table, count, **options):
    layout = fit_layout(FitSample(rows=table), table.column_names, files=count, **options)
    return assign_files(layout, compute_keys(layout, table))


def test_leaves_of_a_query_are_cut_off_at_once():
    x = np.arange(800)
    table = pa.table({"x": x, "y": x * 7 % 800})

    found = files_of(table, 8, queries=["x < 100"])

    assert {0} == set(found[x < 100].tolist())
    assert [100] * 8 == np.bincount(found).tolist()


def test_the_first_cut_is_where_a_query_ends():
    x = np.arange(800)
    seen = [sort_sample(pa.array(x), "x"), sort_sample(pa.array(x * 7 % 800), "y")]
    below_300 = QueryBoxes(
        low=np.array([[-1.0], [-1.0]]), high=np.array([[0.375], [2.0]]), weights=np.ones(1)
    )

    tree = grow_tree(seen, 8, ties=None, sizes=None, boxes=below_300)

    first = tree.scales[0].search.marks[(int(tree.cut[0]) >> 16) - 1]
    assert (0, 300 + 2**63) == (tree.column[0], first)


def test_nulls_do_not_widen_a_column():
    y = np.arange(1000)
    x = [n if n % 2 else None for n in range(1000)]
    table = pa.table({"x": pa.array(x).take(np.random.default_rng(1).permutation(1000)), "y": y})

    found = files_of(table, 2)

    assert (y >= 500).astype(int).tolist() == found.tolist()


def test_column_with_one_value_is_not_cut():
    table = pa.table({"one": np.zeros(100), "y": np.arange(100)})

    found = files_of(table, 2)

    assert [0] * 50 + [1] * 50 == found.tolist()


def test_correlated_columns_are_cut_where_rows_are():
    x = np.arange(1024)
    table = pa.table({"x": x, "y": x})

    found = files_of(table, 4)

    assert (x // 256).tolist() == found.tolist()


def test_uneven_cut_is_replaced_by_another_column():
    x = np.repeat([0, 1], [900, 100])
    table = pa.table({"x": x, "y": np.arange(1000) % 500})

    found = files_of(table, 2, queries=["x = 1"])

    assert [500, 500] == np.bincount(found).tolist()
