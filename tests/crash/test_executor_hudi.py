"""What another one executes for us is held against what was reviewed; here it may do wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ReconcilerError
from reconciler.executor.cluster import run
from reconciler.executor.cluster.hudi_execution import execute_clustering_by_hudi
from reconciler.executor.cluster.publish import settle_clustering
from reconciler.executor.cluster.rewrite_job import make_groups, make_rewrite
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi_engine.spark import split_groups, tally_part
from reconciler.rewrite.local import LocalRewriter
from reconciler.rewrite.model import Tally
from reconciler.runtime import open_storage
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.write_history import read_write_history
from reconciler.transaction.run import publish_completion
from tests.crash.clustering_drill import list_leftovers, make_clustering_drill

TABLES = Path(__file__).parents[1] / "tables"


@dataclass
class StandIn:
    """In Hudi's place: rewrites as we do, ``harm``s the results, and completes the instant."""

    harm: Any = list
    fails: str = ""
    bundle: str = "1.2.0"
    asked: dict[str, str] = field(default_factory=dict)
    outputs: int = 0
    held: Any = None

    def has_class(self, _name):
        return True

    def read_spark_version(self):
        return 3, 5

    def read_version(self):
        return self.bundle

    def clean(self, ref, instant, options):
        raise NotImplementedError

    def cluster(self, ref, instant, options, *, outputs):
        self.asked, self.outputs = dict(options), outputs
        table, work = self.held
        table.publisher.begin(instant, work.action, b"")
        rewrite = make_rewrite(
            work.facts, table.spec, ClusteringLayout(), instant=instant, attempt="x"
        )
        groups = make_groups(work.facts, work.groups, work.state)
        rewriter = LocalRewriter(open_storage)
        results = rewriter.rewrite(ref, rewrite, groups, progress=lambda _: None)
        if self.fails:
            raise ReconcilerError(self.fails)
        with table.hold_lock():
            told = replace(work, extra={})  # Hudi says nothing of us
            harmed = self.harm(results)
            completion = settle_clustering(table, told, harmed, lambda _claims, _found: False, {})
            publish_completion(table, told, completion, [])

    def tally_groups(self, ref, work, groups):
        storage = open_storage(ref)
        found = {group.number: Tally() for group in groups}
        for part in split_groups(groups):
            number = part.group.number
            found[number] = found[number].add(tally_part(part, work, storage))
        return [found[group.number] for group in groups]


@pytest.fixture
def delegated(monkeypatch):
    """Applies a drill's plan by a stand-in."""

    def holding(table, hudi, work):
        hudi.held = table, work
        return execute_clustering_by_hudi(table, hudi, work)

    monkeypatch.setattr(run, "execute_clustering_by_hudi", holding)
    return lambda it, hudi, plan=None: it.apply(plan or it.plan(), hudi=hudi, rewriter=None)


def timeline(it):
    return [file.name for file in load_timeline(it.storage, load_properties(it.storage)).files]


@pytest.mark.parametrize("name", ["v6_cow_nopart", "v6_mor_nopart", "v8_mor_part", "v9_keygen"])
def test_what_was_reviewed_is_done_and_nothing_is_missed(name, tmp_path, delegated):
    it = make_clustering_drill(TABLES / f"{name}.zip", tmp_path / "t")
    rows, plan, hudi = it.rows(), it.plan(), StandIn()
    result = delegated(it, hudi, plan)
    [outcome] = result.tables[0].outcomes

    assert (None, "completed", ()) == (
        result.tables[0].error,
        outcome.how,
        outcome.differences,
    )
    assert outcome.rewritten.rows > 0
    assert rows == it.rows()
    assert [] == list_leftovers(it.table)
    assert "linear" == hudi.asked["hoodie.layout.optimize.strategy"]


def test_what_queries_read_of_its_files_is_measured(tmp_path, delegated):
    queries = """\
  queries:
    - {name: some, where: "id >= 0"}
    - {name: none, where: "id = -5"}
"""
    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", more=queries)
    [outcome] = delegated(it, StandIn()).tables[0].outcomes
    (after,) = it.table.glob(f"*_{outcome.instant}.parquet")
    size = after.stat().st_size

    assert None is outcome.rewritten.unmeasured
    assert [("some", 1, size, 1, size), ("none", 0, 0, 1, size)] == [
        (one.query, one.files, one.bytes, one.of_files, one.of_bytes)
        for one in outcome.rewritten.queries
    ]


def test_the_layout_is_remembered_from_the_plan(tmp_path, delegated):
    said = {"columns": "[ts]", "curve": "linear"}
    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", **said)
    delegated(it, StandIn())
    properties = load_properties(it.storage)
    history = read_write_history(it.storage, properties, load_timeline(it.storage, properties))

    assert (
        ClusteringLayout(columns=("ts",), curve="linear", mapping="rank")
        == history.clusterings[-1].layout
    )


def test_rows_that_are_lost_are_told_of_loudly(tmp_path, delegated):
    def loses_a_file(results):
        (first, *rest) = results
        return [replace(first, files=()), *rest]

    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t")
    there = len(it.rows())
    result = delegated(it, StandIn(harm=loses_a_file))
    [outcome] = result.tables[0].outcomes

    assert 5 == result.exit_code
    [said] = [note.because for note in outcome.differences]
    assert said == (
        f"Hudi's rewrite of partition '' is not what it was made of: {there} rows were there and 0 "
        "are there now; the replaced files are still there: roll the replacecommit back with Hudi "
        "before anything is cleaned"
    )


def test_what_cannot_be_checked_is_told_of_loudly(tmp_path, delegated):
    class Blind(StandIn):
        def tally_groups(self, ref, work, groups):
            if groups[0].number:
                raise ReconcilerError("the executors are gone")
            return super().tally_groups(ref, work, groups)

    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t")
    result = delegated(it, Blind())
    [outcome] = result.tables[0].outcomes

    assert (5, "completed") == (result.exit_code, outcome.how)
    assert [
        "Hudi has completed the clustering, and it could not be checked: the executors are gone"
    ] == [note.because for note in outcome.differences]


def test_an_interruption_at_the_end_is_still_one(tmp_path, delegated):
    class Stopped(StandIn):
        def cluster(self, ref, instant, options, *, outputs):
            super().cluster(ref, instant, options, outputs=outputs)
            raise KeyboardInterrupt

    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t")
    rows = it.rows()

    with pytest.raises(KeyboardInterrupt):
        delegated(it, Stopped())
    assert rows == it.rows()


def test_what_hudi_does_not_complete_is_taken_back(tmp_path, delegated):
    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t")
    rows, before = it.rows(), timeline(it)
    files = sorted(it.table.rglob("*.parquet"))
    result = delegated(it, StandIn(fails="Hudi stopped executing clustering: no space"))

    assert (1, "Hudi stopped executing clustering: no space") == (
        result.exit_code,
        result.tables[0].error,
    )
    assert (before, rows, files) == (timeline(it), it.rows(), sorted(it.table.rglob("*.parquet")))


@pytest.mark.parametrize(
    ("said", "bundle", "because"),
    [
        ({"columns": "[ts]", "curve": "kd-tree"}, "1.2.0", "Hudi cannot lay rows out by a kd-tree"),
        (
            {"columns": "[ts]", "curve": "z-order"},
            "1.2.0",
            "Hudi cannot order a z-order by mapping",
        ),
        ({}, "0.15.0", "the table has version 9, but Hudi 0.15.0 on Spark's class path writes"),
    ],
)
def test_what_hudi_cannot_make_is_refused_before_it_is_announced(
    said, bundle, because, tmp_path, delegated
):
    it = make_clustering_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", **said)
    before = timeline(it)
    result = delegated(it, StandIn(bundle=bundle))

    assert 1 == result.exit_code
    assert str(result.tables[0].error).startswith(because)
    assert before == timeline(it)


def test_buckets_are_refused_because_hudi_would_name_them_without_their_number(tmp_path, delegated):
    table = TABLES.parent / "cases/clean/mor_bucket_logonly__1.0.2/table.zip"
    it = make_clustering_drill(table, tmp_path / "t")
    rows, plan = it.rows(), it.plan()
    result = delegated(it, StandIn(bundle="1.0.2"), plan)
    [done] = result.tables

    assert [("bucketIndex", "cluster")] == [(note.rule, note.step) for note in done.refusals]
    assert (3, "blockedInPart", ()) == (result.exit_code, done.status, done.outcomes)
    assert [] == list_leftovers(it.table)
    assert rows == it.rows()
