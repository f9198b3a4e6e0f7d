"""A limit on what a query may read: it makes a clustering, once, or a sentence why none helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconciler
from tests.crash.clustering import Clustering
from tests.crash.drill import NOW
from tests.laid import laid, orders

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 40KiB, small: 1KiB}}
  clustering: {{columns: [customer], curve: linear, when: {{overlapAbove: 1000}}}}
  queries:
    - {{name: one customer, where: "customer = 4711", maxScan: {limit}}}
    - {{name: state, where: "state = 'new'"}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


@pytest.fixture
def table(tmp_path):
    """Twenty thousand orders in sixteen files, in the order of their ids."""

    def made(limit):
        if not (tmp_path / "t").exists():
            laid(tmp_path / "t" / "table", {"": orders(20_000, 16)})
        it = Clustering(tmp_path / "t", {})
        (tmp_path / "t/spec.yaml").write_text(SPEC.format(path=it.table, limit=limit))
        (it.spec,) = reconciler.load_specs(tmp_path / "t/spec.yaml")
        return it

    return made


def planned(it):
    plan = reconciler.plan([it.spec], now=NOW)
    (table,) = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    return plan, table


def of(notes, rule):
    return [note.because for note in notes if note.rule == rule]


def test_a_query_that_reads_too_much_has_the_table_clustered_once(table):
    it = table("20%")
    plan, before = planned(it)
    rows = it.rows()
    it.apply(plan)
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    (because,) = before.steps[0].groups.because.to_pylist()
    assert because.endswith(
        "query 'one customer' reads 100 % of the table's bytes, more than its maxScan of 20 %"
    )
    (drift,) = [found for found in before.drift if found.field.startswith("queries")]
    assert ("queries.one customer.maxScan", 0.2, 1.0) == (drift.field, drift.desired, drift.actual)
    assert [] == of(before.warnings, "maxScan")
    assert (16, 1) == (before.predictions[0]["filesBefore"], before.predictions[0]["filesAfter"])
    assert before.predictions[1]["filesAfter"] == before.layout.after.files
    assert (16, 16) == (before.layout.sampled.row_groups, before.layout.sampled.of)
    assert ((), ()) == (after.steps, after.drift)
    assert rows == it.rows()
    assert [(1, 1, 0.0)] == [
        (one["filesBefore"], one["filesAfter"], one["error"]) for one in after.predictions[:1]
    ]


def test_a_limit_that_no_layout_reaches_is_explained_and_rewrites_nothing_again(table):
    it = table("1%")
    plan, before = planned(it)
    it.apply(plan)
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    (said,) = of(before.warnings, "maxScan")
    assert said.startswith("no layout on customer gets query 'one customer' below 1 % (maxScan): ")
    assert "it reads 100 % of the table's bytes today; raise its maxScan" in said
    assert () == after.steps
    (said,) = of(after.warnings, "maxScan")
    assert ": all is laid out as declared; it reads 9.1 % of the table's bytes today; " in said
    assert said.startswith("no layout on customer gets query 'one customer' below 1 % (maxScan): ")
    assert ["queries.one customer.maxScan"] == [found.field for found in after.drift]


def test_what_is_laid_out_as_declared_is_not_written_again_without_a_gain(table):
    it = table("1%")
    plan, before = planned(it)
    it.apply(plan)
    # as if a commit elsewhere had opened the gate of afterCommits
    it.spec = replace(it.spec, clustering=replace(it.spec.clustering, after_commits=0))
    _, after = planned(it)

    assert ["cluster"] == [step.kind for step in before.steps]
    assert () == after.steps
    (said,) = of(after.warnings, "maxScan")
    assert said.startswith("no layout on customer gets query 'one customer' below 1 % (maxScan): ")
    assert "predicted 9.1 %" in said


def test_a_layout_that_gains_nothing_is_not_written(table):
    it = table("50%")
    text = (it.folder / "spec.yaml").read_text()
    (it.folder / "spec.yaml").write_text(text.replace("[customer]", "[id]"))
    (it.spec,) = reconciler.load_specs(it.folder / "spec.yaml")
    _, found = planned(it)

    assert () == found.steps
    (said,) = of(found.warnings, "maxScan")
    assert said.startswith("no layout on id gets query 'one customer' below 50 % (maxScan): ")
    assert "predicted 100 %" in said


def test_without_a_clustering_block_the_limit_is_drift_and_a_warning(table):
    it = table("20%")
    lines = (it.folder / "spec.yaml").read_text().splitlines(keepends=True)
    (it.folder / "spec.yaml").write_text("".join(x for x in lines if "clustering:" not in x))
    (it.spec,) = reconciler.load_specs(it.folder / "spec.yaml")
    _, found = planned(it)

    assert () == found.steps
    assert ["queries.one customer.maxScan"] == [one.field for one in found.drift]
    (said,) = of(found.warnings, "maxScan")
    assert said == (
        "query 'one customer' is to read at most 20 % (maxScan), and it reads 100 % of the table's "
        "bytes today: the spec has no clustering block that could lay the table out for it"
    )
    assert [(16, 16, 0.0), (16, 16, 0.0)] == [
        (one["filesBefore"], one["filesAfter"], one["error"]) for one in found.predictions
    ]


def test_a_damaged_file_stops_no_plan_of_a_table_with_queries(table):
    it = table("20%")
    file = min(it.table.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-9] + b"notaparqu")
    _, found = planned(it)

    assert ["predictions"] == [note.rule for note in found.warnings if note.rule == "predictions"]
