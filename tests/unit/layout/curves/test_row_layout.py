"""Layouts of small tables, checked file by file."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.layout.curves.pseudo_random import make_tie_breakers
from reconciler.layout.curves.row_layout import (
    MAX_FILES,
    DirectMapping,
    FitSample,
    assign_files,
    compute_keys,
    fit_layout,
    needed_sample_rows,
    row_group_starts,
    sort_by_key,
)


def grid(side=16):
    x, y = np.indices((side, side)).reshape(2, -1)
    return pa.table({"x": x, "y": y, "id": np.arange(side * side)})


def by_file(table, layout, *names, **more):
    """Return the distinct rows of each file."""
    found = assign_files(layout, compute_keys(layout, table, **more), **more)
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    return [
        {rows[i] for i in np.flatnonzero(found == f)} for f in range(layout.boundaries.count + 1)
    ]


def test_widest_column_is_halved_first():
    table = grid()

    layout = fit_layout(FitSample(rows=table), ["x", "y"], files=4)

    quarters = [
        {(x, y) for x in range(a, a + 8) for y in range(b, b + 8)} for a in (0, 8) for b in (0, 8)
    ]
    assert quarters == by_file(table, layout, "x", "y")


def test_queries_decide_which_column_is_cut():
    table = grid()

    layout = fit_layout(
        FitSample(rows=table), ["x", "y"], files=4, queries=["y = 3", "y between 8 and 9"]
    )

    assert [4 * 16] * 4 == [len(rows) for rows in by_file(table, layout, "x", "y")]
    assert [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}] == [
        {y for (y,) in rows} for rows in by_file(table, layout, "y")
    ]


def test_cut_may_separate_one_leaf_that_queries_read():
    x = np.concatenate([np.zeros(100), np.arange(1, 301)])
    table = pa.table({"x": x, "y": np.arange(400) * 7 % 400})

    layout = fit_layout(FitSample(rows=table), ["x", "y"], files=4, queries=["x = 0"])

    assert {0.0} == {x for (x,) in by_file(table, layout, "x")[0]}


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_rows_with_equal_values_are_separated_only_by_ties(curve):
    table = pa.table({"x": np.zeros(1000), "id": np.arange(1000)})
    tie = make_tie_breakers(table["id"], "id")

    together = fit_layout(FitSample(rows=table), ["x"], files=4, curve=curve)
    parted = fit_layout(FitSample(rows=table, ties=tie), ["x"], files=4, curve=curve)

    assert 0 == together.boundaries.count
    assert (False, True) == (together.needs_ties, parted.needs_ties)
    found = np.bincount(
        assign_files(parted, compute_keys(parted, table, ties=tie), ties=tie)
    ).tolist()
    assert [250] * 4 == found


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_files_have_equal_bytes_when_row_sizes_differ(curve):
    table = pa.table({"x": np.arange(100.0)})
    sizes = np.where(np.arange(100) < 50, 3.0, 1.0)

    layout = fit_layout(FitSample(rows=table, sizes=sizes), ["x"], files=2, curve=curve)

    rows = [len(rows) for rows in by_file(table, layout, "x")]
    assert rows in ([33, 67], [34, 66])


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_layout_fitted_to_no_rows_accepts_any_row(curve):
    table = pa.table({"x": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    others = pa.table({"x": [1, None], "s": ["a", None]})

    layout = fit_layout(FitSample(rows=table), ["x", "s"], files=3, curve=curve, queries=["x = 1"])

    assert [0, 0] == assign_files(layout, compute_keys(layout, others)).tolist()


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_values_missing_from_the_sample_get_a_file(curve):
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "s": ["b", "c", "d", "e"]})
    others = pa.table({"x": [-9.0, None, float("nan"), 9.0], "s": ["a", None, "zz" * 99, ""]})

    layout = fit_layout(FitSample(rows=table), ["x", "s"], files=2, curve=curve)

    found = assign_files(layout, compute_keys(layout, others))
    assert (0, True) == (found[0], bool((found <= 1).all()))


def test_texts_with_a_common_prefix_are_distinguished():
    names = [f"https://example.org/customers/by-number/{n:09}/orders" for n in range(4000)]
    table = pa.table({"s": names})

    layout = fit_layout(FitSample(rows=table), ["s"], files=4)

    assert [1000] * 4 == [len(rows) for rows in by_file(table, layout, "s")]
    assert max(by_file(table, layout, "s")[0]) < min(by_file(table, layout, "s")[1])


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_column_of_an_older_type_is_cast_to_the_type_of_the_sample(curve):
    table = pa.table({"x": pa.array([1, 2, 3, 2**40], pa.int64())})
    older = pa.table({"x": pa.array([1, 2, 3], pa.int32())})

    layout = fit_layout(FitSample(rows=table), ["x"], files=2, curve=curve)

    assert compute_keys(layout, table)[:, :3].tolist() == compute_keys(layout, older).tolist()


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
@pytest.mark.parametrize("columns", [9, 30])
def test_many_columns_are_supported(curve, columns):
    table = pa.table({f"c{i}": np.arange(64) >> (i % 6) & 1 for i in range(columns)})

    layout = fit_layout(FitSample(rows=table), table.column_names, files=4, curve=curve)

    assert [16] * 4 == np.bincount(assign_files(layout, compute_keys(layout, table))).tolist()


def test_dictionaries_and_chunks_are_decoded():
    plain = pa.array(["b", "a", None, "c"])
    chunked = pa.chunked_array([plain[:1], plain[1:]]).dictionary_encode()
    layout = fit_layout(FitSample(rows=pa.table({"s": plain})), ["s"], files=2, curve="z-order")

    expected = compute_keys(layout, pa.table({"s": plain})).tolist()

    assert expected == compute_keys(layout, pa.table({"s": chunked})).tolist()


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
@pytest.mark.parametrize("kind", [pa.struct([("a", pa.int32())]), pa.list_(pa.int32())])
def test_column_without_an_order_is_refused_by_name(curve, kind):
    table = pa.table({"odd": pa.array([None], kind)})

    with pytest.raises(UnsupportedError, match="cannot be clustered by column odd, which is"):
        fit_layout(FitSample(rows=table), ["odd"], files=2, curve=curve)


def test_unsupported_combinations_are_refused():
    table = grid()

    with pytest.raises(UnsupportedError, match="a kd-tree has no direct mapping: use"):
        fit_layout(FitSample(rows=table), ["x", "y"], files=2, direct=DirectMapping())
    with pytest.raises(UnsupportedError, match="at most 65536 files, not 65537"):
        fit_layout(FitSample(rows=table), ["x", "y"], files=MAX_FILES + 1)
    with pytest.raises(UnsupportedError, match="Hudi's Hilbert keys hold 8 columns, not 9"):
        fit_layout(
            FitSample(rows=table),
            ["x", "y", "id"] * 3,
            files=2,
            curve="hilbert",
            direct=DirectMapping(),
        )


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert", "kd-tree"])
def test_pickled_layout_is_small(curve):
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.random(50_000), "s": rng.integers(0, 10**9, 50_000).astype(str)})

    layout = fit_layout(FitSample(rows=table), ["x", "s"], files=200, curve=curve)

    assert len(pickle.dumps(layout)) < 1_000_000


@pytest.mark.parametrize(("files", "expected"), [(1, 100_000), (71, 142_000)])
def test_sample_size_grows_with_the_files(files, expected):

    assert expected == needed_sample_rows(files)


def test_row_groups_start_at_parts_of_a_leaf():
    table = grid(32)
    layout = fit_layout(FitSample(rows=table), ["x", "y"], files=1)
    key = compute_keys(layout, table)
    rows = sort_by_key(key)

    starts = row_group_starts(layout, key[:, rows], 4)

    assert [0, 256, 512, 768, 1024] == starts.tolist()
    ordered = [table.column(name).to_numpy()[rows] for name in ("x", "y")]
    sides = [
        tuple(int(np.ptp(values[start:end])) + 1 for values in ordered)
        for start, end in pairwise(starts)
    ]
    assert [(16, 16)] * 4 == sides


def test_row_group_starts_at_a_part_only_if_one_is_near():
    table = pa.table({"x": np.repeat([0, 1, 2], [270, 270, 460])})
    layout = fit_layout(FitSample(rows=table), ["x"], files=1)

    starts = row_group_starts(layout, compute_keys(layout, table), 4)

    assert [0, 270, 500, 750, 1000] == starts.tolist()


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert"])
def test_row_groups_of_a_curve_are_even(curve):
    table = pa.table({"x": np.arange(10)})
    layout = fit_layout(FitSample(rows=table), ["x"], files=1, curve=curve)

    assert [0, 3, 6, 10] == row_group_starts(layout, compute_keys(layout, table), 3).tolist()


def test_columns_without_query_limits_are_not_halved_inside_a_leaf():
    table = grid()
    layout = fit_layout(FitSample(rows=table), ["x", "y"], files=2, queries=["y between 3 and 4"])
    key = compute_keys(layout, table)
    rows = sort_by_key(key)[:64]

    assert {0, 1, 2, 3} == set(table["y"].to_numpy()[rows].tolist())
    assert 16 == len(set(table["x"].to_numpy()[rows].tolist()))
