"""What the demo tells comes about: its batches, written in this process, and the plan of them."""

from __future__ import annotations

from importlib.resources import files

import pytest

import reconciler
from reconciler.cli.demo.orders import DAYS, SCHEMA, make_batches, remaining_orders
from reconciler.cli.demo.table import read_file_sizes, read_rows, write_batch
from reconciler.runtime import open_storage


class Told:
    """The demo's table after each of its writes."""

    def __init__(self, folder):
        (folder / "orders.yaml").write_text(
            (files("reconciler") / "cli/demo/orders.yaml").read_text()
        )
        (self.spec,) = reconciler.load_specs(folder / "orders.yaml")
        self.storage = open_storage(self.spec.path)
        self.sizes, self.outcomes = {}, {}
        for batch in make_batches():
            self.outcomes[batch.name] = write_batch(self.spec, batch)
            self.sizes[batch.name] = read_file_sizes(self.storage)
        (self.plan,) = reconciler.plan(self.spec).tables


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("demo"))


def test_loads_leave_a_small_file_a_day(told):
    small = told.spec.files.small
    for count, name in enumerate(("morning", "noon", "evening"), 1):
        assert len(told.sizes[name]) == count * len(DAYS)
        assert max(told.sizes[name].values()) < small


def test_the_insert_fills_every_small_file_and_begins_none(told):
    before, after = told.sizes["evening"], told.sizes["web"]
    outcome = told.outcomes["web"]

    assert (outcome.created_groups, outcome.rewritten_groups) == (0, len(before))
    assert after.keys() == before.keys()
    assert min(after.values()) >= told.spec.files.small
    assert max(after.values()) <= told.spec.files.target * 1.15


def test_changes_and_deletions_reach_every_file(told):
    for name in ("shipped", "forgotten"):
        assert told.outcomes[name].rewritten_groups == len(told.sizes["web"])


def test_the_table_has_the_rows_that_were_brought(told):
    assert (
        read_rows(told.storage, SCHEMA).sort_by("order_id").equals(remaining_orders(make_batches()))
    )


def test_the_plan_clusters_indexes_and_cleans_and_a_query_will_read_a_third(told):
    assert [step.kind for step in told.plan.steps] == ["cluster", "index", "clean"]
    assert told.plan.warnings == ()
    assert told.plan.refusals == ()
    for one in told.plan.predictions:
        assert 3 * one["filesAfter"] == one["filesBefore"] == len(told.sizes["web"])
