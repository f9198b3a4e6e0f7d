"""A damaged file fails the clustering that reads it, and nothing else of its table."""

from __future__ import annotations

from pathlib import Path

import pytest

import reconciler
from reconciler.errors import FormatError, NotFoundError, ReconcilerError, StorageError
from reconciler.executor.cluster.execution import find_damaged_input
from reconciler.plans.groups import group_of_slices
from tests.crash.clustering_drill import list_leftovers, make_clustering_drill
from tests.crash.drill import NOW
from tests.trees import Tree

TABLES = Path(__file__).parents[1] / "tables"
RETENTION = "  retention: {commits: 1}\n"


@pytest.fixture
def it(tmp_path):
    """A table with something to cluster and something to clean, and the plan of both."""
    return make_clustering_drill(TABLES / "v9_cow_part.zip", tmp_path / "t", more=RETENTION)


def planned(it):
    plan = reconciler.plan([it.spec], now=NOW)
    (table,) = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    assert ["cluster", "clean"] == [step.kind for step in table.steps]
    return plan, table.steps


def inputs(it, step):
    groups = step.groups
    partitions, of = groups.partition.to_pylist(), group_of_slices(groups).tolist()
    return [
        it.table / partitions[n] / base for n, base in zip(of, groups.base.to_pylist(), strict=True)
    ]


def damage(path):
    """The footer stays, the rows cannot be read."""
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = bytes(end - 4)
    path.write_bytes(bytes(data))


def test_the_clean_after_a_clustering_that_fails_for_a_damaged_file_runs(it):
    plan, (cluster, _) = planned(it)
    paths = inputs(it, cluster)
    for path in paths:
        damage(path)
    result = it.apply(plan)
    (table,) = result.tables
    rewrite, removal = table.outcomes
    left = [group.because.partition(": ")[0] for group in rewrite.rewritten.left]

    assert (5, None) == (result.exit_code, table.error)
    assert ("cluster", "failed", None) == (rewrite.kind, rewrite.how, rewrite.instant)
    # others have written to the rest of the groups
    assert len(cluster.groups) == len(left)
    assert {str(path.relative_to(it.table)) for path in paths}.intersection(left)
    assert ("clean", "completed") == (removal.kind, removal.how)
    assert removal.removed > 0
    assert [] == list_leftovers(it.table)


def test_a_store_that_fails_while_a_clustering_reads_stops_the_rest(it, monkeypatch):
    plan, _ = planned(it)

    def fails(*_, **__):
        raise StorageError("p0/f.parquet", "timed out")

    before = Tree.from_folder(it.table).files
    monkeypatch.setattr("reconciler.rewrite.local.build_runs", fails)
    (table,) = it.apply(plan).tables

    assert ((), "p0/f.parquet: timed out", 1) == (table.outcomes, table.error, table.code)
    assert before == Tree.from_folder(it.table).files


def test_the_input_that_an_error_is_about_is_named(it):
    _, (cluster, _) = planned(it)

    class Work:
        groups = cluster.groups

    path = str(inputs(it, cluster)[0].relative_to(it.table))
    error = FormatError(path, "is damaged", "restore it")
    quoted = f"Lost task 0.0: reconciler.errors.FormatError: {error}"

    assert str(error) == find_damaged_input(Work, error)
    assert str(error) == find_damaged_input(Work, ReconcilerError(quoted))
    for other in (
        FormatError(".hoodie/20260101.commit", "is damaged"),
        FormatError(f"{path}x", "is damaged"),
        NotFoundError(path, "is gone"),
        StorageError(path, "timed out"),
        ReconcilerError(f"{path}: is damaged"),
        ReconcilerError(f"FormatError: {path}x: is damaged"),
        ValueError(str(error)),
        KeyboardInterrupt(),
    ):
        assert None is find_damaged_input(Work, other)
