"""Lanes and ranks of values that the laws rarely draw."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.curves.lanes import NAN, fixed_lanes
from reconciler.layout.curves.pseudo_random import make_tie_breakers
from reconciler.layout.curves.rank_scale import make_quantile_scale, rank_values
from reconciler.layout.curves.row_layout import FitSample, assign_files, compute_keys, fit_layout
from reconciler.layout.curves.sorted_sample import sort_sample


def rank_of(sample, *values, bits=12):
    column = pa.array(sample)
    ruler = make_quantile_scale(sort_sample(column, "c"), bits)
    return rank_values(ruler, pa.array(values, column.type)).tolist()


def test_all_nans_are_equal():
    bits = np.array([0x7FF8 << 48, 0xFFF8 << 48, 0x7FF0 << 48 | 1, 0xFFFF << 48], np.uint64)

    [found] = fixed_lanes(pa.array(bits.view(np.float64)), "c")

    assert [NAN] * 4 == found.tolist()


def test_frequent_value_has_its_own_rank():
    sample = np.concatenate([np.arange(50_000.0), np.full(50_000, 100.0)])

    before, own, after = rank_of(sample, 99.0, 100.0, 101.0)

    assert before < own < after


@pytest.mark.parametrize("bits", [4, 12])
def test_single_null_has_its_own_rank(bits):
    sample = [0] * 100_000 + [1, None]

    below, top, null = rank_of(sample, 0, 1, None, bits=bits)

    assert below < top < null < 1 << bits


def test_ranks_are_shares_of_the_rows():

    assert [0, 2048, 4091] == rank_of(range(1000), 0, 500, 999)


@pytest.mark.parametrize(
    "rising",
    [
        [b"", b"\xff" * 8 + b"\0", b"\xff" * 9, None],
        [b"\xff" * 7 + b"\xfe\xff", b"\xff" * 8, b"\xff" * 17, None],
        ["a" * 50, "a" * 49 + "b", "b", None],
    ],
)
def test_linear_keys_ascend_up_to_null(rising):
    table = pa.table({"c": rising})

    layout = fit_layout(FitSample(rows=table), ["c"], files=1, curve="linear")

    found = compute_keys(layout, table).T.tolist()
    assert sorted(found) == found
    assert found[-2] < found[-1]


def test_the_greatest_long_is_below_null():
    table = pa.table({"c": pa.array([2**63 - 1, None], pa.int64())})

    layout = fit_layout(FitSample(rows=table), ["c"], files=1, curve="linear")

    first, second = compute_keys(layout, table)[0].tolist()
    assert first < second


@pytest.mark.parametrize("curve", ["linear", "z-order", "kd-tree"])
def test_decimals_of_different_scales_are_equal(curve):
    values = [Decimal(n) / 4 for n in range(9)]
    table = pa.table({"c": pa.array(values, pa.decimal128(20, 4))})
    older = pa.table({"c": pa.array(values, pa.decimal128(9, 2))})

    layout = fit_layout(FitSample(rows=table), ["c"], files=2, curve=curve)

    assert compute_keys(layout, table).tolist() == compute_keys(layout, older).tolist()


def test_tie_breakers_depend_on_every_byte():
    column = pa.array(["key-0000000000-a", "key-0000000000-b", "key-0000000000-a\0", None, None])

    found = make_tie_breakers(column, "c").tolist()

    assert 4 == len(set(found))
    assert found[3] == found[4]


def test_tie_breakers_are_spread_evenly():
    found = make_tie_breakers(pa.array(np.arange(10_000)), "c") >> np.uint64(60)

    assert abs(np.bincount(found.astype(int), minlength=16) - 625).max() < 125


def test_rows_with_the_key_of_a_boundary_stay_together():
    values = np.repeat(np.arange(10), 100)
    table = pa.table({"c": values, "id": np.arange(1000)})
    tie = make_tie_breakers(table["id"], "id")

    layout = fit_layout(FitSample(rows=table, ties=tie), ["c"], files=2, curve="z-order")

    least = np.zeros(1000, np.uint64)
    found = assign_files(layout, compute_keys(layout, table), ties=least)
    assert (values >= 5).astype(int).tolist() == found.tolist()
