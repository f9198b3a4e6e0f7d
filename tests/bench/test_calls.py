"""Count the storage calls of planning: one listing pass, independent of partitions."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from reconciler.planners.compose import plan_table
from reconciler.spec.model import (
    Clustering,
    ClusteringTrigger,
    IndexColumns,
    Policy,
    Retention,
    TableSpec,
)
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.bench.make_table import Shape, make_table
from tests.storage_wrappers import RecordingStorage

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def calls_of_a_plan(root, shape, clustering=None, index=None):
    """Plan a table; return the recording storage and the plan."""
    make_table(root, shape)
    storage = RecordingStorage(open_storage(str(root)))
    spec = TableSpec(
        name="t",
        path=str(root),
        retention=Retention(policy=Policy.COMMITS, keep=2),
        clustering=clustering,
        index=index,
        document={"path": str(root), "retention": {"commits": 2}},
    )
    state = observe(storage, spec, observed_ms=round(NOW.timestamp() * 1000))
    return storage, plan_table(spec, state, NOW)


def test_a_plan_lists_the_table_once_and_writes_nothing(tmp_path):
    storage, plan = calls_of_a_plan(tmp_path / "t", Shape(partitions=3, groups=2, versions=5))

    assert 3 * 2 * 2 == plan.impact.files_removed
    assert 1 == storage.counts["walk"]
    assert [] == storage.mutations


@pytest.mark.parametrize("larger", [{"partitions": 30}, {"groups": 20}], ids=str)
def test_calls_do_not_grow_with_the_table(tmp_path, larger):
    small = {"partitions": 3, "groups": 2, "versions": 5}
    few, _ = calls_of_a_plan(tmp_path / "few", Shape(**small))
    many, _ = calls_of_a_plan(tmp_path / "many", Shape(**small | larger))

    assert few.counts == many.counts
    assert few.counts.total() < 30


@pytest.mark.parametrize("larger", [{"partitions": 80}, {"groups": 20}], ids=str)
def test_a_clustering_reads_some_commits_and_some_footers_more(tmp_path, larger):
    small = {"partitions": 8, "groups": 2, "versions": 5}
    packing = Clustering(columns=(), when=ClusteringTrigger(overlap_above=None))
    bare, _ = calls_of_a_plan(tmp_path / "bare", Shape(**small))
    few, _ = calls_of_a_plan(tmp_path / "few", Shape(**small), packing)
    many, _ = calls_of_a_plan(tmp_path / "many", Shape(**small | larger), packing)

    assert few.counts == many.counts
    assert {"read": 5, "read_range": 16, "list": 1} == dict(few.counts - bare.counts)
    assert [] == few.mutations


@pytest.mark.parametrize("larger", [{"partitions": 80}, {"groups": 20}], ids=str)
def test_an_index_reads_a_commit_more_and_no_base_file(tmp_path, larger):
    small = {"partitions": 8, "groups": 2, "versions": 5}
    id_alone = IndexColumns(columns=("id",))
    bare, _ = calls_of_a_plan(tmp_path / "bare", Shape(**small))
    few, _ = calls_of_a_plan(tmp_path / "few", Shape(**small), index=id_alone)
    many, _ = calls_of_a_plan(tmp_path / "many", Shape(**small | larger), index=id_alone)

    assert few.counts == many.counts
    assert {"read": 1, "list": 1} == dict(few.counts - bare.counts)
    assert [] == few.mutations


PROGRAM = """\
import sys
from reconciler.cli import app
app.run(['plan', sys.argv[1], '--now', '2026-01-02T00:00:00+00:00'])
heavy = {'pandas', 'numpy.ma', 'numpy.random', 'pyarrow.parquet', 'pyspark'}
ours = ('reconciler.index', 'reconciler.index.predicates', 'reconciler.state.index_state_reader')
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
print([name for name in sys.modules if name.startswith(ours)], file=sys.stderr)
"""


def test_a_plan_of_a_clean_imports_nothing_that_takes_longer_than_it(tmp_path):
    """``pa.scalar`` and similar calls import pandas, which takes a third of a second."""
    make_table(tmp_path / "t", Shape(partitions=3, groups=2, versions=5))
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t}\n"
        "spec: {path: t, timezone: UTC, retention: {commits: 2}}\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, spec], capture_output=True, text=True, check=True
    )

    assert "files to remove" in done.stdout
    assert ["[]", "[]"] == done.stderr.splitlines()[-2:]
