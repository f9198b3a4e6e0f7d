"""Clustering for ``maxScan`` happens once: afterwards nothing is planned, reached or not."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reconciler
from tests.convergence import LATER, apply_until_done, random_partitions
from tests.crash.clustering_drill import ClusteringDrill
from tests.plain_tables import add_commit, write_table
from tests.selection import examples

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
    when: {{smallFileShareAbove: {share}, {goal}}}
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


@settings(max_examples=examples(1, many=15), deadline=None)
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
    goal=st.sampled_from(["overlapAbove: 2", "overlapAbove: 1000", "gainAbove: 0.2"]),
    groups=st.sampled_from([1, 30]),
    group=st.sampled_from(["20KiB", "2GiB"]),
)
@example(
    seed=0,
    ordered=None,
    partitions=("x", "y", "z"),
    files=8,
    more=False,
    asked=[("a = 17", "1%")],
    columns="[a]",
    curve="kd-tree",
    target="4KiB",
    small="1KiB",
    goal="overlapAbove: 2",
    groups=1,
    group="20KiB",
)
def test_max_scan_is_pursued_once(  # noqa: PLR0917
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
    goal,
    groups,
    group,
):
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        rng = np.random.default_rng(seed)
        write_table(root / "table", random_partitions(rng, partitions, files, ordered), by="p")
        it = ClusteringDrill(root, {})
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
                # what is laid out later is laid out beside what is there, and may overlap it again
                # where a run rewrites little of it at a time: then one run is not enough
                goal="overlapAbove: 1000" if more and groups == 30 and "overlap" in goal else goal,
                groups=groups,
                group=group,
                queries=queries,
            )
        )
        (spec,) = reconciler.load_specs(root / "spec.yaml")
        # as if commits elsewhere opened the gate all the time
        it.spec = replace(spec, clustering=replace(spec.clustering, after_commits=0))
        rows = it.rows()

        apply_until_done(it, one_is_enough=groups == 30)
        if more:
            add_commit(it.table, random_partitions(rng, partitions[:1], files, None), LATER)
            rows = it.rows()
            apply_until_done(it, one_is_enough=groups == 30)
        assert rows == it.rows()
    finally:
        shutil.rmtree(root)
