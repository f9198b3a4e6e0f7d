"""A proposed layout is never worse than today's, by the simulation that plans predict with."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.prediction.layout_candidates import (
    LayoutCandidate,
    LayoutTrial,
    QueryReads,
    choose_trial,
    rank_trials,
)
from reconciler.runtime import open_storage
from reconciler.spec.model import Clustering, FileSizes, Query, TableSpec
from reconciler.status.table_advice import advise_table
from reconciler.storage.read_only import ReadOnlyStorage
from tests.plain_tables import write_table
from tests.selection import examples

SIZES = st.integers(0, 1 << 40)
LAYOUTS = st.builds(
    LayoutCandidate,
    columns=st.sampled_from([("a",), ("a", "b"), ("b",)]),
    curve=st.sampled_from(["kd-tree", "linear"]),
)
WHERES = st.sampled_from(
    [
        "a = 17",
        "a between 10 and 40",
        "b < 5 and a > 30",
        "b in (1, 50, 99)",
        "c like 'v1%'",
        "c = 'v7' or a = 3",
        "length(c) = 2",
        "nothing = 3",
    ]
)


def make_trial(sizes, candidate):
    reads = tuple(QueryReads(files=1, bytes=size) for size in sizes)
    return LayoutTrial(candidate=candidate, reads=reads, errors=(0.1,) * len(sizes), table_bytes=1)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(SIZES, min_size=3, max_size=3),
    st.lists(st.tuples(st.lists(SIZES, min_size=3, max_size=3), LAYOUTS), max_size=6),
)
def test_proposal_reads_a_tenth_less_than_today(now, tried):
    today = [QueryReads(files=1, bytes=size) for size in now]
    trials = rank_trials([make_trial(*one) for one in tried])
    best = choose_trial(today, trials)

    assert sorted(map(repr, trials)) == sorted(repr(make_trial(*one)) for one in tried)
    assert best is None or best.bytes <= 0.9 * sum(now)
    if best is None:
        assert all(one.bytes > 0.88 * sum(now) for one in trials) or not sum(now)


def draw_rows(seed, count, ordered):
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "a": rng.integers(0, 100, count),
            "b": rng.permutation(count).astype(np.int64),
            "c": [f"v{value}" for value in rng.integers(0, 30, count)],
        }
    )
    return table.sort_by(ordered) if ordered else table


@settings(max_examples=examples(3, many=12), deadline=None)
@given(
    seed=st.integers(0, 1000),
    ordered=st.sampled_from([None, "a", "b"]),
    files=st.integers(1, 6),
    wheres=st.lists(WHERES, min_size=1, max_size=3, unique=True),
    declared=st.sampled_from([None, ("a",), ("b", "a")]),
)
def test_proposal_for_a_table_reads_less(seed, ordered, files, wheres, declared):
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        rows = draw_rows(seed, 600, ordered)
        step = 600 // files
        write_table(root / "t", {"": [rows.slice(at * step, step) for at in range(files)]})
        spec = TableSpec(
            name="t",
            path=str(root / "t"),
            queries=tuple(Query(name=where, where=where) for where in wheres),
            files=FileSizes(target=4096, small=1024),
            clustering=Clustering(columns=declared, curve="kd-tree") if declared else None,
        )
        storage = ReadOnlyStorage(open_storage(str(root / "t")))
        found = advise_table(storage, spec, observed_ms=0)
        before = sum(one.bytes for one in found.current)

        assert found.error is None
        assert found.because
        assert found.best is None or found.best.bytes <= 0.9 * before
        assert {one.bytes for one in found.trials} == {
            one.bytes for one in advise_table(storage, spec, observed_ms=0).trials
        }
        total = found.bytes
        assert all(one.bytes <= total for one in found.current)
        assert all(
            read.bytes <= 1.01 * one.table_bytes for one in found.trials for read in one.reads
        )
    finally:
        shutil.rmtree(root)
