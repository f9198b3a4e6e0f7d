"""Which sizes of new files a clustering refuses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.planners.cluster import notes
from reconciler.planners.compose import plan_table
from reconciler.plans.model import ClusterStep
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Policy, Retention
from tests.unit.planners.cluster.test_cluster_plan import BY_XY, NOW, WIDE, evidence, sized, spec
from tests.unit.planners.cluster.test_planner import bases
from tests.unit.planners.cluster.test_planner import sized as sized_folders
from tests.unit.planners.cluster.test_sizes import MOSTLY_FOOTER, plan_of

KIB = 1024


@pytest.fixture(autouse=True)
def _real_sizes(monkeypatch):
    monkeypatch.setattr(notes, "LEAST_OUTPUT_BYTES", 64 * KIB)


def refuse(slices, size, outputs, rows=None, target=120):
    return refuse_groups([(slices, size, outputs)], rows, target)


def refuse_groups(given, rows=None, target=120):
    slices, size, outputs = zip(*given, strict=True)
    groups = Rewrites(
        partition=None,
        outputs=np.array(outputs),
        bytes=np.array(size),
        because=None,
        starts=np.cumsum([0, *slices]),
        file_id=pa.array([f"g{n}" for n in range(sum(slices))]),
        base=None,
        logs=None,
    )
    return [note.because for note in notes.refuse_tiny_files(groups, rows, target)]


def test_more_files_than_rows_are_refused():
    [because] = refuse(12, 76_000_000, 639_952, rows=200_010)

    assert because == (
        "files.target: 120B would make 639,952 files from 12 file slices of 72 MiB, which have "
        "about 200,010 rows; raise files.target, for example to 120MiB"
    )


def test_more_files_below_64_kib_are_refused():
    [because] = refuse(2, 2048 * KIB, 51, target=40 * KIB)

    assert because == (
        "files.target: 40KiB would make 51 files from 2 file slices of 2.0 MiB: 40 KiB each, less "
        "than 64 KiB; raise files.target, for example to 120MiB"
    )


@pytest.mark.parametrize(
    ("slices", "size", "outputs", "rows"),
    [
        (2, 1000 * KIB, 2, 1),  # as many files
        (30, 300 * KIB, 25, None),  # fewer files, however small
        (1, 640 * KIB, 10, 10),  # of 64 KiB and a row each
    ],
)
def test_files_that_are_large_enough_or_no_more_than_before_are_not_refused(
    slices, size, outputs, rows
):
    assert refuse(slices, size, outputs, rows) == []


def test_groups_that_become_fewer_files_do_not_hide_one_that_becomes_tiny_ones():
    [because] = refuse_groups([(200, 2048 * KIB, 51), (1, 400 * KIB, 10)], target=40 * KIB)

    assert because == (
        "files.target: 40KiB would make 10 files from 1 file slice of 400 KiB: 40 KiB each, less "
        "than 64 KiB; raise files.target, for example to 120MiB"
    )


def test_tiny_files_refuse_the_clustering_and_nothing_else():
    wide = pa.array([0] * 6), pa.array([9] * 6)
    state = sized(*[190] * 6, clustering_facts=evidence(6, bounds=(wide, wide)))
    keep = Retention(policy=Policy.COMMITS, keep=1)
    plan = plan_table(spec(retention=keep, **{**BY_XY, "when": WIDE}), state, NOW)

    assert [("files", "cluster")] == [(note.rule, note.step) for note in plan.refusals]
    assert not any(isinstance(step, ClusterStep) for step in plan.steps)


@pytest.mark.parametrize(("size", "expected"), [(520, [("files", "cluster")]), (150, [])])
def test_a_tiny_target_is_refused_although_its_files_cannot_be_split(size, expected):
    state = sized_folders({"a": bases(size, size)})
    plan = plan_of(state, footers=MOSTLY_FOOTER)

    assert () == plan.steps
    assert expected == [(note.rule, note.step) for note in plan.refusals]
