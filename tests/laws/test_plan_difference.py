"""The difference of plans counts every file once, in both directions."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from hypothesis import HealthCheck, given, settings

from reconciler.plans.difference import compare_plans
from reconciler.render.plan_difference import (
    difference_json,
    difference_markdown,
    difference_text,
)
from reconciler.render.terminal import Terminal
from tests.laws.plans import plans
from tests.selection import examples

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/diff.v1.json").read_text())
quick = settings(
    max_examples=examples(3, many=100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@quick
@given(plans())
def test_a_plan_decides_the_same_as_itself(plan):
    assert compare_plans(plan, plan).is_empty


@quick
@given(plans(), plans())
def test_what_is_new_one_way_is_gone_the_other(old, new):
    there, back = compare_plans(old, new), compare_plans(new, old)
    gone = {
        (table.name, step.kind, step.label): step.gone.items.path.to_pylist()
        for table in back.tables
        for step in table.steps
    }

    assert gone == {
        (table.name, step.kind, step.label): step.new.items.path.to_pylist()
        for table in there.tables
        for step in table.steps
    }


@quick
@given(plans(), plans())
def test_every_output_is_made_of_any_plans(old, new):
    difference = compare_plans(old, new)

    jsonschema.validate(json.loads(difference_json(difference, "t")), SCHEMA)
    assert difference_text(difference, Terminal(), full=True).endswith(".\n")
    assert difference_markdown(difference).endswith(".\n")
