"""Why a reviewed plan is not of today's specs, said so that people know what to do."""

from __future__ import annotations

import pytest

from reconciler.executor.spec_match import explain_mismatch, explain_other_specs
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import TablePlan
from reconciler.plans.plan import Plan
from reconciler.spec.model import TableSpec

REVIEWED = {"path": "/t", "suspend": False, "retention": {"commits": 2, "policy": "x"}}


FEW = (
    "a is 1 now and was absent, b is true now and was absent, c is [3] now and was absent and "
    "1 more"
)


def make_table(name: str = "t", spec: object = None) -> TablePlan:
    document = REVIEWED if spec is None else spec
    return TablePlan(name=name, path="/t", spec=document, spec_digest=compute_spec_digest(document))


def make_plan(*names: str) -> Plan:
    return Plan(created_at="", tool="", tables=tuple(make_table(name) for name in names))


def explain_change(path: str = "/t", **changed: object) -> str | None:
    document = {**REVIEWED, **changed, "path": path}
    spec = TableSpec(name="t", path=path, document=document)
    return explain_mismatch(make_table(), {"t": spec}, {"t": compute_spec_digest(document)})


def test_what_was_reviewed_runs():
    assert explain_change() is None


def test_a_table_that_nobody_declares_any_more_stays_as_it_is():
    found = explain_mismatch(make_table(), {}, {})

    assert found == (
        "no spec declares t any more: it is not managed now, and stays as it is; plan again"
    )


def test_a_table_at_another_path_is_another_table():
    assert explain_change("/elsewhere") == (
        "t is at /elsewhere now and was reviewed at /t: its spec was edited, or the plan is of "
        "another environment; plan again"
    )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"suspend": True}, "suspend is true now and was false"),
        ({"retention": {"commits": 3, "policy": "x"}}, "retention.commits is 3 now and was 2"),
        ({"retention": None}, "retention is absent now and was a block"),
        ({"files": {"target": 5}}, "files is a block now and was absent"),
        ({"owner": "y" * 99}, "owner is another text now and was absent"),
        ({"a": 1, "b": True, "c": [3], "d": 4}, FEW),
    ],
)
def test_an_edited_spec_says_what_is_another_now(changed, says):
    found = explain_change(**changed)

    assert found == f"the spec of t is no longer the reviewed one ({says}); plan again"


def test_a_digest_alone_is_enough_to_be_another():
    spec = TableSpec(name="t", path="/t", document=REVIEWED)

    assert explain_mismatch(make_table(), {"t": spec}, {"t": "sha256:0"}) == (
        "the spec of t is no longer the reviewed one; plan again"
    )


def test_a_plan_of_which_no_table_is_declared_is_of_other_specs():
    assert explain_other_specs(make_plan("a", "b", "c", "d"), {"x"}) == (
        "the plan is of other specs than these: none of its 4 tables (a, b, c and 1 more) is "
        "declared by them; name with --specs the ones that it was made from, or plan again from "
        "these"
    )
    assert "its one table (a) is declared by none of them" in explain_other_specs(
        make_plan("a"), {"x"}
    )


def test_a_plan_of_some_declared_tables_or_of_none_is_judged_table_by_table():
    assert explain_other_specs(make_plan("a", "b"), {"b"}) is None
    assert explain_other_specs(make_plan(), {"b"}) is None
