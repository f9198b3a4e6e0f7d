"""What ``maxScan`` asks for is done once: after an apply nothing is left to do, reached or not."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import reconciler
from tests.crash.clustering import Clustering
from tests.crash.drill import NOW
from tests.laid import added, laid

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}, small: {small}}}
  clustering:
    columns: {columns}
    curve: {curve}
    when: {{smallFileShareAbove: {share}, overlapAbove: {overlap}}}
    budget: {{groups: {groups}, perGroup: {group}}}
  queries:
{queries}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
WHERES = (
    "a = 17",
    "a < 20",
    "b = 100",
    "b between 50 and 300 and a > 30",
    "c like 'v1%'",
    "c = 'v7' or a = 3",
    "p = 'x' and b < 100",
    "length(c) = 2",
)
LATER = "20261201000100000"
#: more runs than a table of so few groups can need
MOST = 8


def rows_of(rng: np.random.Generator, count: int, ordered: str | None) -> pa.Table:
    table = pa.table(
        {
            "id": rng.permutation(count).astype(np.int64),
            "a": rng.integers(0, 100, count),
            "b": rng.permutation(count).astype(np.int64),
            "c": [f"v{value}" for value in rng.integers(0, 30, count)],
        }
    )
    return table.sort_by(ordered) if ordered else table


def parts_of(rng, partitions, files, ordered):
    found = {}
    for name in partitions:
        many = int(rng.integers(1, files + 1))
        table = rows_of(rng, 150 * many, ordered)
        table = table.append_column("p", pa.array([name] * len(table)))
        found[name] = [table.slice(at * 150, 150) for at in range(many)]
    return found


def planned(it):
    (table,) = reconciler.plan([it.spec], now=NOW).tables
    assert (None, ()) == (table.error, table.refusals)
    return table


def steps_of(table):
    return [(step.kind, step.groups.because.to_pylist()) for step in table.steps]


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    ordered=st.sampled_from([None, "a", "b"]),
    partitions=st.sampled_from([("x",), ("x", "y"), ("x", "y", "z")]),
    files=st.integers(1, 8),
    more=st.booleans(),
    asked=st.lists(
        st.tuples(st.sampled_from(WHERES), st.sampled_from(["1%", "10%", "30%", "60%", "90%"])),
        min_size=1,
        max_size=3,
        unique_by=lambda one: one[0],
    ),
    columns=st.sampled_from(["[a]", "[b]", "[a, b]", "[c]"]),
    curve=st.sampled_from(["kd-tree", "hilbert", "linear"]),
    target=st.sampled_from(["4KiB", "12KiB", "1MiB"]),
    small=st.sampled_from(["1KiB", "7KiB", "1MiB"]),
    overlap=st.sampled_from([2, 1000]),
    groups=st.sampled_from([1, 30]),
    group=st.sampled_from(["20KiB", "2GiB"]),
)
def test_a_limit_is_worked_for_once(  # noqa: PLR0917
    seed,
    ordered,
    partitions,
    files,
    more,
    asked,
    columns,
    curve,
    target,
    small,
    overlap,
    groups,
    group,
):
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        rng = np.random.default_rng(seed)
        laid(root / "table", parts_of(rng, partitions, files, ordered), by="p")
        it = Clustering(root, {})
        queries = "".join(
            f'    - {{name: "{where}", where: "{where}", maxScan: {limit}}}\n'
            for where, limit in asked
        )
        (root / "spec.yaml").write_text(
            SPEC.format(
                path=it.table,
                target=target,
                small=small,
                columns=columns,
                curve=curve,
                share=0.5,
                # what is laid out later is laid out beside what is there, and may overlap it
                overlap=1000 if more else overlap,
                groups=groups,
                group=group,
                queries=queries,
            )
        )
        (spec,) = reconciler.load_specs(root / "spec.yaml")
        # as if commits elsewhere opened the gate all the time
        it.spec = replace(spec, clustering=replace(spec.clustering, after_commits=0))
        rows = it.rows()

        settle(it, one_is_enough=groups == 30)
        if more:
            added(it.table, parts_of(rng, partitions[:1], files, None), LATER)
            rows = it.rows()
            settle(it, one_is_enough=groups == 30)
        assert rows == it.rows()
    finally:
        shutil.rmtree(root)


def settle(it, *, one_is_enough):
    """Plan and apply until nothing is left."""
    done = []
    while True:
        plan = reconciler.plan([it.spec], now=NOW)
        (table,) = plan.tables
        assert (None, ()) == (table.error, table.refusals), (table.error, table.refusals)
        if not table.steps:
            break
        done.append(steps_of(table))
        assert len(done) <= (1 if one_is_enough else MOST), done
        result = it.apply(plan)
        assert 0 == result.exit_code, result
    assert not [found for found in table.drift if found.field.startswith("queries")]
