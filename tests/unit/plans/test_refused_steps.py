"""Which steps of a plan refusals leave out."""

from __future__ import annotations

from reconciler.plans.decode import empty_named_files, empty_removed_files
from reconciler.plans.model import CleanStep, IndexStep, Note, ResumeStep, RollbackStep
from reconciler.plans.refused_steps import find_refused_kinds, omit_refused_steps

STEPS = (
    ResumeStep(instant="1", action="clean", files=empty_removed_files()),
    ResumeStep(instant="2", action="clustering", files=empty_removed_files()),
    RollbackStep(instant="3", action="commit", files=empty_named_files(), because="b"),
    IndexStep(targets=("zindex",), columns=("a",), files=1, because="b"),
    CleanStep(policy="p", earliest_instant_to_retain=None, files=empty_removed_files()),
)


def omitted(*kinds):
    kept = {id(step) for step in omit_refused_steps(STEPS, kinds)}
    return [step.kind for step in STEPS if id(step) not in kept]


def test_a_refusal_of_the_table_names_no_kind():
    assert frozenset() == find_refused_kinds([Note("clock", "b")])


def test_refused_kinds_are_those_that_refusals_name():
    refusals = [Note("readers", "b", step="clean"), Note("columns", "b", step="cluster")]

    assert {"clean", "cluster"} == find_refused_kinds(refusals)


def test_a_resume_is_refused_with_what_it_finishes():
    assert ["resume", "clean"] == omitted("clean")
    assert ["resume"] == omitted("cluster")


def test_a_rollback_is_of_no_kind_that_can_be_refused():
    assert ["resume", "resume", "index", "clean"] == omitted("clean", "cluster", "index")
