"""Files that overlap or gain are clustered once: afterwards nothing is planned, whatever comes."""

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
    when: {{smallFileShareAbove: 0.5, {goal}}}
    budget: {{groups: {groups}, perGroup: {group}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
GOALS = (
    *(f"overlapAbove: {overlap}" for overlap in (1, 1.25, 1.5, 2, 3)),
    *(f"gainAbove: {gain}" for gain in (0, 0.05, 0.2, 0.2, 0.5)),
    "overlapAbove: 2, gainAbove: 0.2",
)


@settings(max_examples=examples(2, many=12), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    files=st.integers(2, 12),
    columns=st.sampled_from(["[a]", "[a, b]", "[a, b, c]"]),
    curve=st.sampled_from(["kd-tree", "hilbert", "z-order", "linear"]),
    goal=st.sampled_from(GOALS),
    target=st.sampled_from(["4KiB", "12KiB"]),
    small=st.sampled_from(["1KiB", "7KiB"]),
)
@example(
    seed=0,
    files=12,
    columns="[a, b]",
    curve="hilbert",
    goal="overlapAbove: 1.5",
    target="4KiB",
    small="7KiB",
)
def test_overlapping_files_are_clustered_once(  # noqa: PLR0917
    seed, files, columns, curve, goal, target, small
):
    check_clustering_ends(
        seed=seed,
        files=files,
        partitions=("x", "y"),
        one_is_enough=True,
        target=target,
        small=small,
        columns=columns,
        curve=curve,
        goal=goal,
        groups=30,
        group="2GiB",
    )


@settings(max_examples=examples(1, many=8), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    files=st.integers(2, 8),
    partitions=st.sampled_from([("x",), ("x", "y"), ("x", "y", "z")]),
    columns=st.sampled_from(["[a]", "[a, b]", "[a, b, c]"]),
    curve=st.sampled_from(["kd-tree", "hilbert", "z-order", "linear"]),
    goal=st.sampled_from(GOALS),
    target=st.sampled_from(["4KiB", "12KiB"]),
    small=st.sampled_from(["1KiB", "7KiB"]),
    groups=st.sampled_from([1, 30]),
    group=st.sampled_from(["12KiB", "20KiB"]),
)
@example(
    seed=6738,
    files=9,
    partitions=("x",),
    columns="[a, b, c]",
    curve="z-order",
    goal="overlapAbove: 1.5",
    target="12KiB",
    small="1KiB",
    groups=1,
    group="20KiB",
)
def test_clustering_a_few_files_at_a_time_ends(  # noqa: PLR0917
    seed, files, partitions, columns, curve, goal, target, small, groups, group
):
    check_clustering_ends(
        seed=seed,
        files=files,
        partitions=partitions,
        one_is_enough=False,
        target=target,
        small=small,
        columns=columns,
        curve=curve,
        goal=goal,
        groups=groups,
        group=group,
    )


def check_clustering_ends(*, seed, files, partitions, one_is_enough, **settings):
    """Cluster a table, and again after later writes."""
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        rng = np.random.default_rng(seed)
        write_table(root / "table", random_partitions(rng, partitions, files, None), by="p")
        it = ClusteringDrill(root, {})
        (root / "spec.yaml").write_text(SPEC.format(path=it.table, **settings))
        (spec,) = reconciler.load_specs(root / "spec.yaml")
        # as if commits elsewhere opened the gate all the time
        it.spec = replace(spec, clustering=replace(spec.clustering, after_commits=0))

        apply_until_done(it, one_is_enough=one_is_enough)
        add_commit(it.table, random_partitions(rng, ("x",), files, None), LATER)
        apply_until_done(it, one_is_enough=one_is_enough)
    finally:
        shutil.rmtree(root)
