"""From slow queries to a layout: what is advised is committed, planned, applied and measured."""

from __future__ import annotations

import json

import pytest

import reconciler
from reconciler.state.measured_queries import parse_measurements
from tests.command import run
from tests.crash.clustering_drill import ClusteringDrill
from tests.crash.drill import NOW
from tests.plain_tables import make_orders, write_table

QUERIES = """\
  queries:
    - {name: one customer, where: "customer = 4711"}
    - {name: big ones of some customers, where: "customer between 1000 and 3000 and amount > 900"}
    - {name: dear ones, where: "amount > 990"}
"""
ROWS, FILES = 20_000, 16
TARGET = "40KiB"


@pytest.fixture
def advised(tmp_path, capsys):
    """A table in the order of its ids, and what is advised for it."""
    write_table(tmp_path / "t" / "table", {"": make_orders(ROWS, FILES)})
    spec = (
        "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t}\nspec:\n"
        f"  path: {tmp_path}/t/table\n  files: {{target: {TARGET}, small: 30KiB}}\n{QUERIES}"
    )
    (tmp_path / "asked.yaml").write_text(spec)
    assert 0 == run("advise", tmp_path / "asked.yaml", "--format", "json")
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    return found


def test_what_is_advised_is_what_the_table_becomes(advised, tmp_path, capsys):
    layout = advised["proposal"]["clustering"]
    it = ClusteringDrill(
        tmp_path / "t",
        {
            "target": TARGET,
            "columns": json.dumps(layout["columns"]),
            "curve": layout["curve"],
            "more": QUERIES,
        },
    )
    rows = it.rows()
    plan = reconciler.plan([it.spec], now=NOW)
    (table,) = plan.tables
    assert (None, ()) == (table.error, table.refusals)
    (outcome,) = it.apply(plan).tables[0].outcomes
    measured = outcome.rewritten.queries
    predicted = [one["bytes"] for one in advised["tried"][0]["queries"]]

    assert rows == it.rows()
    assert outcome.rewritten.files_after == measured[0].of_files
    # every query reads less than a third of what it read, as was advised
    for now, then, said in zip(advised["queries"], measured, predicted, strict=True):
        assert FILES == now["files"]
        assert then.bytes < now["bytes"] / 3
        assert abs(then.bytes - said) <= 0.2 * said + 0.02 * advised["bytes"]
    # the plan said it too, and the instant keeps both
    for prediction, then in zip(table.predictions, measured, strict=True):
        assert (prediction["query"], prediction["filesAfter"]) == (then.query, then.predicted_files)
        assert abs(then.files - then.predicted_files) <= 2
    state = reconciler.observe(it.spec, now=NOW)
    assert measured == parse_measurements(state.clustering_facts.clusterings[-1].extra)
    assert 0 == run("status", it.folder / "spec.yaml")
    shown = " ".join(capsys.readouterr().out.split())
    assert f"query one customer reads {measured[0].files} of {measured[0].of_files} files" in shown
    # and there is nothing more to say
    assert 0 == run("advise", it.folder / "spec.yaml", "--format", "json")
    (again,) = json.loads(capsys.readouterr().out)["tables"]
    assert "the current layout is good enough" in again["because"]
    assert "clustering" not in again["proposal"]
