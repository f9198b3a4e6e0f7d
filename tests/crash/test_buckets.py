"""Buckets of a real table, rewritten in this process: each keeps its number and its rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.crash.clustering_drill import (
    ClusteringDrill,
    PlannedDrill,
    get_outcome,
    make_drill_of,
)

#: Hudi 1.0.2 wrote it: one bucket in each of two partitions, with log files
TABLE = Path(__file__).parents[1] / "cases/clean/mor_bucket_logonly__1.0.2/table.zip"


@pytest.fixture
def it(tmp_path) -> PlannedDrill:
    return make_drill_of(PlannedDrill, TABLE, tmp_path / "t", columns="[ts]", target="64KiB")


def live_buckets(it: ClusteringDrill) -> Counter[tuple[str, str]]:
    """Count the file groups of each partition's bucket that readers see."""
    state = it.state()
    view, files = state.view, state.files
    ids = files.group_id.to_pylist()
    groups = {int(view.group[at]) for at in (view.is_live & view.is_visible).nonzero()[0]}
    return Counter((files.partitions[files.group_partition[g]], ids[g][:8]) for g in groups)


def test_each_bucket_becomes_one_file_under_its_number(it):
    rows, before = it.rows(), live_buckets(it)
    plan = it.plan()
    [table] = plan.tables
    result = it.apply(plan)
    [done] = result.tables

    assert {"how": "completed", "code": 0, "error": None} == get_outcome(result)
    assert [1] * len(before) == table.steps[0].groups.outputs.tolist()
    [rewritten] = done.rewritten
    assert (len(before), len(before), 0) == (
        rewritten.slices,
        rewritten.files_after,
        rewritten.splits,  # though each file is larger than the target
    )
    assert set(before.values()) == {1}
    assert before == live_buckets(it)
    assert rows == it.rows()
    assert () == it.plan().tables[0].steps
