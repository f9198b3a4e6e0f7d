"""The difference of plans counts every file once, in both directions."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler import canonical_json
from reconciler.errors import PlanError
from reconciler.plans.difference import compare_plans
from reconciler.plans.document import dump_plan, load_plan
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


def list_leaves(value, path=()):
    """Yield the path of every value of a document that can be changed, and of every list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from list_leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield path
        for number, inner in enumerate(value):
            yield from list_leaves(inner, (*path, number))
    elif isinstance(value, str | int) and path[-1] != "kind":
        yield path


def change(value):
    match value:
        case bool():
            return not value
        case int():
            return value ^ 1
        case str():
            return f"{value[:-1]}{'a' if value[-1:] != 'a' else 'b'}"
    return value[:-1]


def reload(document):
    for table in document["tables"]:
        table["stepsDigest"] = canonical_json.digest_document(table["steps"])
    parts = {key: document[key] for key in document if key not in ("digest", "createdAt", "tool")}
    digest = canonical_json.digest_document(parts)
    try:
        return load_plan(canonical_json.to_bytes({**document, "digest": digest}) + b"\n", "a plan")
    except PlanError:
        return None


@settings(quick, max_examples=examples(6, many=1500))
@given(plans(), st.data())
def test_no_change_of_a_step_is_the_same(plan, data):
    document = json.loads(dump_plan(plan))
    paths = [
        (number, *path)
        for number, table in enumerate(document["tables"])
        for path in list_leaves(table["steps"], ("steps",))
        if not _has_groups_and_files(table["steps"][path[1]] if path[1:] else {})
    ]
    assume(paths)
    number, *path, last = data.draw(st.sampled_from(paths))
    place = document["tables"][number]
    for key in path:
        place = place[key]
    place[last] = change(place[last])
    changed = reload(document)
    assume(changed is not None)  # it has a valid form

    assert "changed" == compare_plans(plan, changed).tables[number].status


def _has_groups_and_files(step):
    return step.get("groups") is not None and bool(step.get("partitions"))


@quick
@given(plans(), plans())
def test_every_output_is_made_of_any_plans(old, new):
    difference = compare_plans(old, new)

    jsonschema.validate(json.loads(difference_json(difference, "t")), SCHEMA)
    assert difference_text(difference, Terminal(), full=True).endswith(".\n")
    assert difference_markdown(difference).endswith(".\n")
