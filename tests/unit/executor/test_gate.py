"""Which tables of a plan may run, decided once for the command line and the API."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.errors import StaleError
from reconciler.executor.gate import (
    AdmittedTable,
    RefusedError,
    RefusedTable,
    admit_plan,
    get_waiver_time,
)
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import Note, TablePlan
from reconciler.plans.plan import Plan
from reconciler.spec.document import spec_to_document
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import Concurrency, Lock, Policy, Retention, TableSpec
from tests.unit.executor.rows import make_clean_step
from tests.unit.transaction.fakes import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = TableSpec(
    name="t",
    path="/t",
    retention=Retention(policy=Policy.COMMITS, keep=2),
    concurrency=Concurrency(lock=Lock(provider="filesystem")),
)


def make_spec(**changes):
    spec = replace(SPEC, **changes)
    return replace(spec, document=spec_to_document(spec))


def make_table(spec=None, **changes):
    document = (spec or make_spec()).document
    fields = {"name": "t", "path": "/t", "spec": document, "steps": (make_clean_step("a/f"),)}
    digest = compute_spec_digest(document)
    return TablePlan(**{**fields, "spec_digest": digest, **changes})


def make_plan(*tables):
    return Plan(created_at="", tool="", tables=tables or (make_table(),))


def admit_one(table=None, **options):
    """Admit a plan of one table, and return what became of it and whether it has work."""
    admitted = admit_plan(make_plan(*([table] if table else [])), now=NOW, **options)
    (found,) = admitted.tables
    return found, bool(list(admitted.working_tables))


def test_a_table_that_was_reviewed_may_run():
    table, has_work = admit_one()

    assert isinstance(table, AdmittedTable)
    assert has_work


def test_an_admitted_plan_carries_its_digest():
    plan = make_plan()

    assert plan.digest == admit_plan(plan, expected_digest=plan.digest, now=NOW).digest


def test_a_plan_with_another_digest_is_refused_as_a_whole():
    with pytest.raises(StaleError, match="sha256:0 was approved"):
        admit_plan(make_plan(), expected_digest="sha256:0", now=NOW)


def test_another_spelling_of_the_reviewed_path_is_the_reviewed_table():
    reviewed = make_table(make_spec(path="s3://lake/t"), path="s3://lake/t")
    table, _ = admit_one(reviewed, specs=[make_spec(path="s3a://lake//t")])

    assert isinstance(table, AdmittedTable)
    assert table.spec.path == "s3://lake/t"


@pytest.mark.parametrize("path", ["abfs://c/t", "abfss://c@test.dfs.core.windows.net/t"])
def test_a_path_that_leaves_the_account_to_the_client_is_planned_again(path):
    before = "abfss://c@prod.dfs.core.windows.net/t"
    reviewed = make_table(make_spec(path=before), path=before)
    table, _ = admit_one(reviewed, specs=[make_spec(path=path)])

    assert isinstance(table, RefusedTable)
    assert "was reviewed at" in str(table.error)


def test_a_plan_of_other_specs_is_refused_as_a_whole():
    with pytest.raises(StaleError, match="the plan is of other specs"):
        admit_plan(make_plan(), specs=[make_spec(name="other")], now=NOW)


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"error": "no table there"}, 1, "no table there"),
        ({"refusals": (Note("suspend", "suspend: true"),)}, 3, "suspend: true"),
    ],
)
def test_what_the_plan_forbids_does_not_run(changes, code, says):
    table, has_work = admit_one(make_table(**changes))

    assert isinstance(table, RefusedTable)
    assert (code, says, False) == (table.error.exit_code, str(table.error), has_work)


def test_a_table_whose_spec_was_edited_does_not_run():
    today = make_spec(retention=Retention(policy=Policy.COMMITS, keep=9))
    table, has_work = admit_one(specs=[today])

    assert isinstance(table, RefusedTable)
    assert isinstance(table.error, StaleError)
    assert not has_work


def test_todays_policies_count_and_not_those_of_the_review():
    today = replace(make_spec(), guarded_by=(GuardPolicy(name="gold", max_files_removed=0),))
    table, has_work = admit_one(specs=[today])

    assert isinstance(table, AdmittedTable)
    assert [("maxFilesRemoved", "clean")] == [(note.rule, note.step) for note in table.refusals]
    assert () == table.allowed.steps
    assert not has_work


def test_a_policy_about_the_table_refuses_all_of_it():
    today = replace(make_spec(), guarded_by=(GuardPolicy(name="gold", protected=("t",)),))
    table, has_work = admit_one(specs=[today])

    assert isinstance(table, RefusedTable)
    assert isinstance(table.error, RefusedError)
    assert ["protected"] == [note.rule for note in table.error.notes]
    assert not has_work


def test_a_refused_kind_of_step_leaves_the_others():
    refusal = Note("bucketIndex", "b", step="cluster")
    table, has_work = admit_one(make_table(refusals=(refusal,)))

    assert isinstance(table, AdmittedTable)
    assert (refusal,) == table.refusals
    assert ["clean"] == [step.kind for step in table.allowed.steps]
    assert has_work


def test_a_refused_step_of_an_edited_plan_does_not_run():
    table, has_work = admit_one(make_table(refusals=(Note("readers", "b", step="clean"),)))

    assert isinstance(table, AdmittedTable)
    assert () == table.allowed.steps
    assert 0 == table.allowed.impact.files_removed
    assert not has_work


def test_a_refusal_of_the_table_counts_beside_one_of_a_step():
    refusals = (Note("readers", "b", step="clean"), Note("suspend", "b"))
    table, _ = admit_one(make_table(refusals=refusals))

    assert isinstance(table, RefusedTable)
    assert refusals == table.error.notes


def test_a_policy_that_only_warns_is_a_warning():
    policy = GuardPolicy(name="gold", max_files_removed=0, severity="warn")
    table, has_work = admit_one(specs=[replace(make_spec(), guarded_by=(policy,))])

    assert isinstance(table, AdmittedTable)
    assert ["maxFilesRemoved"] == [note.rule for note in table.warnings]
    assert has_work


def test_sums_of_an_edited_plan_are_counted_again():
    """The table says that it removes nothing, and has a step that removes a file."""
    policy = GuardPolicy(name="gold", max_files_removed=0)
    assert 0 == make_table().impact.files_removed

    table, _ = admit_one(specs=[replace(make_spec(), guarded_by=(policy,))])

    assert ["maxFilesRemoved"] == [note.rule for note in table.refusals]


def test_how_to_reach_the_store_comes_from_todays_spec():
    options = {"key": "today"}
    table, _ = admit_one(specs=[replace(make_spec(), storage_options=options)])

    assert isinstance(table, AdmittedTable)
    assert options == table.spec.storage_options


@pytest.mark.parametrize("table", [make_table(steps=()), make_table(make_spec(concurrency=None))])
def test_without_steps_or_a_declared_lock_there_is_no_work(table):
    found, has_work = admit_one(table)

    assert isinstance(found, AdmittedTable)
    assert not has_work


def test_waivers_count_from_no_time_of_the_past():
    clock = FakeClock()
    actual = datetime.fromtimestamp(clock.ms / 1000, UTC)

    assert actual == get_waiver_time(None, clock)
    assert actual == get_waiver_time(actual - timedelta(days=1), clock)
    assert actual + timedelta(days=1) == get_waiver_time(actual + timedelta(days=1), clock)
