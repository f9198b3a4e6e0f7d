"""A rewrite neither loses nor repeats rows, whatever its inputs, options and parts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.rewrite.local import MemoryLimits
from reconciler.rewrite.model import RowOrdering
from tests.selection import examples
from tests.unit.rewrite.tables import (
    FORM,
    base_file,
    contents,
    counted,
    group,
    rewritten,
    storage,
    work,
)

VALUES = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
ROWS = st.lists(st.tuples(st.sampled_from("abcdé"), VALUES, VALUES), max_size=30)
ORDERINGS = st.one_of(
    st.just(RowOrdering()),
    st.builds(
        RowOrdering,
        columns=st.sampled_from([("x",), ("y", "x"), ("id", "y")]),
        curve=st.sampled_from(["kd-tree", "linear", "z-order", "hilbert"]),
        mapping=st.just("rank"),
    ),
)
SIZES = st.sampled_from([1, 500, 1 << 26])
PIECES = st.sampled_from([2000, 1 << 26])
BOUNDS = st.builds(MemoryLimits, part_bytes=PIECES, run_bytes=SIZES, sort_bytes=SIZES)


def columns(rows):
    ids, xs, ys = zip(*rows, strict=True) if rows else ((), (), ())
    return {
        "id": pa.array(ids, pa.string()),
        "x": pa.array(xs, pa.int64()),
        "y": pa.array(ys, pa.int64()),
    }


@given(
    slices=st.lists(st.tuples(ROWS, st.integers(1, 10)), min_size=1, max_size=3),
    ordering=ORDERINGS,
    bounds=BOUNDS,
    outputs=st.integers(1, 5),
    target=st.sampled_from([3000, 1 << 30]),
    group_rows=st.sampled_from([1, 7, 1 << 20]),
)
@settings(max_examples=examples(8, many=40), deadline=None)
def test_rewrite_keeps_all_rows(slices, ordering, bounds, outputs, target, group_rows):
    store = storage()
    files = [
        base_file(store, number, columns(rows), group_rows=length)
        for number, (rows, length) in enumerate(slices)
    ]
    before = [pq.read_table(pa.BufferReader(store.read(one.base))) for one in files]
    asked = work(ordering=ordering, target=target, form=replace(FORM, group_rows=group_rows))
    (made,) = rewritten(store, asked, group(*files, outputs=outputs), bounds=bounds)

    assert counted(*before) == counted(*contents(store, made))
    assert made.read == made.written
    assert sum(file.rows for file in made.files) == made.read.rows
    assert all(file.rows for file in made.files)
    assert made.splits + outputs >= len(made.files)
