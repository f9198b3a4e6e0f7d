"""Which steps of a plan refusals leave out."""

from __future__ import annotations

from dataclasses import replace

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.decode import empty_named_files, empty_removed_files
from reconciler.plans.groups import empty_rewrites
from reconciler.plans.model import (
    CleanStep,
    IndexStep,
    Note,
    ResumeStep,
    RollbackStep,
    TablePlan,
)
from reconciler.plans.refused_steps import (
    find_refusals,
    find_refused_kinds,
    list_applied_steps,
    omit_refused_steps,
)
from reconciler.plans.savepoint_step import SavepointStep

STEPS = (
    ResumeStep(instant="1", action="clean", files=empty_removed_files()),
    ResumeStep(instant="2", action="clustering", files=empty_removed_files()),
    ResumeStep(instant="5", action="compaction", files=empty_removed_files()),
    RollbackStep(instant="3", action="commit", files=empty_named_files(), because="b"),
    SavepointStep(
        change="create", name="q", instant="4", until=None, files=1, bytes=1, because="b"
    ),
    CompactStep(order="logBytes", groups=empty_rewrites(), expected=()),
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
    assert ["resume", "compact"] == omitted("compact")
    (compaction,) = (step for step in STEPS if step.kind == "resume" and step.instant == "5")
    assert compaction not in omit_refused_steps(STEPS, ("compact",))


def test_a_rollback_is_of_no_kind_that_can_be_refused():
    assert ["resume", "resume", "index", "clean"] == omitted("clean", "cluster", "index")


def test_a_savepoint_is_refused_alone():
    assert ["savepoint"] == omitted("savepoint")


def test_steps_are_applied_unless_their_kind_or_the_table_is_refused():
    table = TablePlan(name="t", path="/t", spec={}, spec_digest="", steps=STEPS)
    clean, all_work = Note("maxFilesRemoved", "b", step="clean"), Note("suspend", "b")

    assert STEPS == list_applied_steps(table)
    assert STEPS[1:7] == list_applied_steps(replace(table, refusals=(clean,)))
    assert () == list_applied_steps(replace(table, refusals=(clean, all_work)))


def test_a_step_is_marked_with_the_refusals_of_its_kind_alone():
    notes = (Note("a", "b", step="clean"), Note("c", "d", step="cluster"), Note("e", "f"))

    assert [("a",), ("c",), (), (), (), (), (), ("a",)] == [
        tuple(note.rule for note in find_refusals(step, notes)) for step in STEPS
    ]
