"""Laws of layouts, for every curve and every type that has an order."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.layout.curves.curve_keys import hilbert_keys
from reconciler.layout.curves.pseudo_random import make_tie_breakers
from reconciler.layout.curves.rank_scale import make_quantile_scale, rank_values
from reconciler.layout.curves.row_layout import (
    FitSample,
    assign_files,
    compute_keys,
    fit_layout,
    sort_by_key,
)
from reconciler.layout.curves.sorted_sample import sort_sample
from tests.selection import examples

FEW = settings(max_examples=examples(3, many=50), deadline=None)
A_TYPE = settings(max_examples=20, deadline=None)
MICROS = pa.timestamp("us", "UTC")
ZERO = datetime(1, 1, 1, tzinfo=UTC)

#: an Arrow type, its values, and what Python orders them by; of 64 bits the two greatest values
#: count as one in linear order
TYPES = {
    "boolean": (pa.bool_(), st.booleans(), int),
    "byte": (pa.int8(), st.integers(-(2**7), 2**7 - 1), int),
    "short": (pa.int16(), st.integers(-(2**15), 2**15 - 1), int),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1), int),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 2), int),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 2), int),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False), float),
    "double": (pa.float64(), st.floats(allow_nan=False), float),
    "decimal": (pa.decimal128(12, 3), st.decimals("-99999999", "99999999", places=3), Decimal),
    "decimal38": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2), Decimal),
    "decimal76": (pa.decimal256(76, 2), st.decimals(-(10**60), 10**60, places=2), Decimal),
    "string": (pa.string(), st.text("ab\0é\uffff\U0001f600", max_size=20), str.encode),
    "large string": (pa.large_string(), st.text(max_size=12), str.encode),
    "binary": (pa.binary(), st.binary(max_size=20), bytes),
    "fixed": (pa.binary(10), st.binary(min_size=10, max_size=10), bytes),
    "date": (pa.date32(), st.dates(), date.toordinal),
    "timestamp": (MICROS, st.datetimes(timezones=st.just(UTC)), lambda v: v - ZERO),
    "local": (pa.timestamp("us"), st.datetimes(), lambda v: v - ZERO.replace(tzinfo=None)),
    "time": (pa.time64("us"), st.times(), lambda v: (v.hour, v.minute, v.second, v.microsecond)),
    "duration": (pa.duration("us"), st.timedeltas(timedelta(-9999), timedelta(9999)), lambda v: v),
}
every_type = pytest.mark.parametrize("name", TYPES)


def value_order(name):
    """Return a sort key for values of a type: values, then NaN, then null."""
    key = TYPES[name][2]

    def sort_key(value):
        if value is None:
            return (2,)
        if isinstance(value, float) and math.isnan(value):
            return (1,)
        return (0, key(value))

    return sort_key


def draw_values(name, *, max_size=40):
    kind, values, _ = TYPES[name]
    odd = st.sampled_from([None, float("nan")]) if pa.types.is_floating(kind) else st.none()
    return st.lists(values | odd, min_size=1, max_size=max_size)


def strip_trailing_zeros(value):
    """Strip trailing zeros, which linear keys of text ignore."""
    match value:
        case str():
            return value.rstrip("\0")
        case bytes() if len(value) != 10:
            return value.rstrip(b"\0")
    return value


def is_rising(numbers):
    return all(a <= b for a, b in pairwise(numbers))


@every_type
@A_TYPE
@given(data=st.data())
def test_ranks_ascend_with_values_then_nan_then_null(name, data):
    sample, others = data.draw(draw_values(name)), data.draw(draw_values(name))
    kind = TYPES[name][0]
    ruler = make_quantile_scale(sort_sample(pa.array(sample, kind), name), 12)
    ordered = sorted(sample + others, key=value_order(name))

    found = rank_values(ruler, pa.array(ordered, kind)).tolist()

    assert is_rising(found)
    places = {}
    for value, rank in zip(ordered, found, strict=True):
        places.setdefault(value_order(name)(value)[0], set()).add(rank)
    assert sum(map(len, places.values())) == len(set(found)), "a place of their own"


@every_type
@A_TYPE
@given(data=st.data())
def test_linear_keys_have_the_order_of_values(name, data):
    kind = TYPES[name][0]
    sample = [strip_trailing_zeros(value) for value in data.draw(draw_values(name))]
    table = pa.table({"c": pa.array(sample, kind), "n": np.arange(len(sample))})

    layout = fit_layout(FitSample(rows=table), ["c", "n"], files=1, curve="linear")

    expected = sorted(range(len(sample)), key=[value_order(name)(v) for v in sample].__getitem__)
    assert expected == sort_by_key(compute_keys(layout, table)).tolist()


small = st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.0, 2.0, 3.0]) | st.floats(-9, 9)
rows = st.lists(
    st.tuples(small, st.integers(0, 5), st.text("ab", max_size=2)), min_size=1, max_size=60
)
curves = st.sampled_from(["linear", "z-order", "hilbert", "kd-tree"])
QUERIES = ("x between 0 and 1", "y = 3", "x > 2 and s like 'a%'")


def make_table(taken):
    x, y, s = zip(*taken, strict=True)
    columns = {"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.int32()), "s": pa.array(s)}
    return pa.table({**columns, "id": pa.array(np.arange(len(x)))})


def make_ties(table):
    return make_tie_breakers(table["id"], "id")


@FEW
@given(rows, curves, st.integers(1, 9), st.randoms(use_true_random=False))
def test_key_does_not_depend_on_other_rows(taken, curve, count, shuffled):
    table = make_table(taken)
    mixed = list(range(len(taken)))
    shuffled.shuffle(mixed)
    layout = fit_layout(
        FitSample(rows=table, ties=make_ties(table)),
        "xys",
        files=count,
        curve=curve,
        queries=QUERIES,
    )
    again = pickle.loads(pickle.dumps(layout))
    other = table.take(mixed)

    expected = compute_keys(layout, table, ties=make_ties(table))[:, mixed].tolist()

    assert expected == compute_keys(again, other, ties=make_ties(other)).tolist()
    half = [other.slice(0, len(mixed) // 2), other.slice(len(mixed) // 2)]
    parts = [compute_keys(layout, part, ties=make_ties(part)) for part in half]
    assert expected == np.concatenate(parts, axis=1).tolist()


@FEW
@given(rows, curves, st.integers(1, 9), st.randoms(use_true_random=False))
def test_layout_does_not_depend_on_the_order_of_its_sample(taken, curve, count, shuffled):
    table = make_table(taken)
    mixed = list(range(len(taken)))
    shuffled.shuffle(mixed)
    other = table.take(mixed)

    found = [
        fit_layout(
            FitSample(rows=sample, ties=make_ties(sample)),
            "xys",
            files=count,
            curve=curve,
            queries=QUERIES,
        )
        for sample in (table, other)
    ]

    first, second = (
        compute_keys(layout, table, ties=make_ties(table)).tolist() for layout in found
    )
    assert first == second


@FEW
@given(rows, rows, st.sampled_from(["linear", "z-order", "kd-tree"]), st.integers(1, 9))
def test_keys_ascend_along_each_column_while_others_are_constant(taken, others, curve, count):
    layout = fit_layout(
        FitSample(rows=make_table(taken)), "xys", files=count, curve=curve, queries=QUERIES
    )
    _, y, s = others[0]
    xs = sorted((x for x, _, _ in others), key=value_order("double"))
    table = make_table([(x, y, s) for x in xs])

    key = compute_keys(layout, table)

    found = assign_files(layout, key).tolist() if curve == "kd-tree" else key.T.tolist()
    assert is_rising(found)


@FEW
@given(rows, curves)
def test_zeros_of_both_signs_have_one_key(taken, curve):
    layout = fit_layout(FitSample(rows=make_table(taken)), "xys", files=5, curve=curve)
    _, y, s = taken[0]

    plus, minus = compute_keys(layout, make_table([(0.0, y, s), (-0.0, y, s)])).T.tolist()

    assert plus == minus


@FEW
@given(rows, curves, st.integers(1, 9))
def test_files_have_similar_sizes_whatever_the_values(taken, curve, count):
    taken = taken * (2000 // len(taken))
    table = make_table(taken)
    layout = fit_layout(
        FitSample(rows=table, ties=make_ties(table)), "xys", files=count, curve=curve
    )
    key = compute_keys(layout, table, ties=make_ties(table))

    found = np.bincount(assign_files(layout, key, ties=make_ties(table)), minlength=count)

    assert count == len(found)
    mean = len(taken) / count
    assert found.max() <= 1.15 * mean + 2
    assert found.min() >= 0.85 * mean - 2


@FEW
@given(rows, curves, st.integers(1, 9))
def test_files_are_ranges_of_keys(taken, curve, count):
    table = make_table(taken)
    layout = fit_layout(FitSample(rows=table), "xys", files=count, curve=curve, queries=QUERIES)
    key = compute_keys(layout, table)

    found = assign_files(layout, key)[sort_by_key(key)].tolist()

    assert is_rising(found)
    assert 0 <= found[0] <= found[-1] <= layout.boundaries.count < count


@pytest.mark.parametrize("sides", [(2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_each_step_of_the_hilbert_curve_goes_to_a_neighbour(sides):
    columns, bits = sides
    cube = np.indices((1 << bits,) * columns).reshape(columns, -1)

    key = hilbert_keys(list(cube), bits)[0]

    assert np.arange(cube.shape[1]).tolist() == sorted(key.tolist())
    steps = np.abs(np.diff(cube[:, np.argsort(key)], axis=1)).sum(axis=0)
    assert {1} == set(steps.tolist())
