"""The archive step of a plan document: what it may name, and which refusal leaves it out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.errors import PlanError
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.model import Note
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.plans.validation import validate_document
from tests.unit.plans.test_document import plan
from tests.unit.render.test_archive import STEP


def make_document(**changed):
    document = json.loads(dump_plan(plan(STEP)))
    document["tables"][0]["steps"][0].update(changed)
    return document


def test_a_step_is_the_same_once_it_is_read():
    assert (STEP,) == load_plan(dump_plan(plan(STEP)), "plan.json").tables[0].steps


@pytest.mark.parametrize(
    "path",
    [
        ".hoodie/.temp/../timeline",
        ".hoodie/timeline/20260101000000000.commit",
        ".hoodie/hoodie.properties",
        "dt=1/a.parquet",
        ".hoodie/.heartbeat/",
        "/etc/passwd",
    ],
)
def test_nothing_but_leftovers_can_be_named(path):
    with pytest.raises(PlanError, match="a heartbeat, a folder of markers or a schema file"):
        validate_document(make_document(leftovers=[{"path": path, "because": "b"}]))


@pytest.mark.parametrize("action", ["savepoint", "restore", "compaction", "../x"])
def test_only_instants_that_hudi_archives_can_be_named(action):
    with pytest.raises(PlanError):
        validate_document(make_document(instants=[{"instant": "1", "action": action}]))


def test_a_refusal_of_archivals_leaves_the_step_out():
    (table,) = plan(STEP).tables
    refused = replace(table, refusals=(Note("lock", "b", "archive"),))

    assert (STEP,) == list_applied_steps(table)
    assert () == list_applied_steps(refused)
