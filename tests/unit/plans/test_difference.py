"""Two plans of one table, and what tells them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler import arrays
from reconciler.plans import columns
from reconciler.plans.archive_step import ArchivedInstant, ArchiveStep, Leftover
from reconciler.plans.difference import compare_plans, compare_tables
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    KeptFiles,
    Note,
    Observed,
    RemovedFiles,
    TablePlan,
)
from reconciler.plans.plan import Plan
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.render.plan_difference import (
    difference_markdown,
    difference_text,
)
from reconciler.render.terminal import Terminal


def removed(files, because="old"):
    rows = sorted(files)
    return RemovedFiles(
        partition=columns.encode_dictionary([path.rpartition("/")[0] for path in rows]),
        name=arrays.to_arrow([path.rpartition("/")[2] for path in rows]),
        bytes=np.array([files[path] for path in rows], np.int64),
        kind=np.zeros(len(rows), np.int8),
        rule=np.zeros(len(rows), np.int8),
        because=columns.encode_dictionary([because] * len(rows)),
    )


def clean(files, because="old", earliest="1"):
    return CleanStep(
        policy="KEEP_LATEST_COMMITS",
        earliest_instant_to_retain=earliest,
        files=removed(files, because),
    )


def kept(path, because):
    return KeptFiles(
        partition=columns.encode_dictionary([path.rpartition("/")[0]]),
        name=arrays.to_arrow([path.rpartition("/")[2]]),
        rule=np.zeros(1, np.int8),
        because=columns.encode_dictionary([because]),
    )


def cluster(*slices):
    group = {"partition": "p", "outputs": 1, "bytes": 9, "because": "small"}
    listed = [{"fileId": name, "base": base, "logs": []} for name, base in slices]
    return ClusterStep(
        columns=("a",), curve="linear", mapping="rank",
        groups=rewrites_from_json([{**group, "slices": listed}]),
    )  # fmt: skip


def table(*steps, **more):
    known = {"name": "t", "path": "/t", "spec": {}, "spec_digest": ""}
    return TablePlan(**{**known, **more}, steps=steps)


def plan(*tables):
    return Plan(created_at="2026-01-01T00:00:00+00:00", tool="t", tables=tables)


def paths(part):
    return part.items.path.to_pylist()


def test_files_are_new_gone_or_the_same_by_their_paths():
    old, new = clean({"p/a": 1, "p/b": 2, "c": 4}), clean({"p/b": 2, "c": 4, "q/a": 8})
    [step] = compare_tables(table(old), table(new)).steps

    assert ("clean", "changed", 2, 6) == (step.kind, step.status, step.same, step.same_bytes)
    assert (["q/a"], ["p/a"], []) == (paths(step.new), paths(step.gone), paths(step.changed))
    assert [8] == step.new.items.bytes.tolist()


def test_a_file_that_is_kept_now_says_why():
    old, new = table(clean({"p/a": 1})), table(kept=kept("p/a", "pinned"))
    changed = compare_tables(old, new)
    by_kind = {step.kind: step for step in changed.steps}

    assert ["kept: pinned"] == by_kind["clean"].gone.elsewhere.to_pylist()
    assert ["clean: old"] == by_kind["kept"].new.elsewhere.to_pylist()
    assert ("gone", "new") == (by_kind["clean"].status, by_kind["kept"].status)


def test_another_reason_is_a_change():
    [step] = compare_tables(
        table(clean({"p/a": 1, "p/b": 1}, "x")), table(clean({"p/a": 1, "p/b": 1}, "y"))
    ).steps

    assert ["p/a", "p/b"] == paths(step.changed)
    assert ["x", "x"] == step.changed.elsewhere.to_pylist()
    assert (0, 0) == (len(step.new), len(step.gone))


def test_another_base_file_of_a_slice_is_a_change():
    [step] = compare_tables(
        table(cluster(("f", "b1"), ("g", "b2"))), table(cluster(("f", "b1"), ("g", "b3")))
    ).steps

    assert ("cluster", 2) == (step.kind, step.same)
    assert ["p/g"] == paths(step.changed)


def test_fields_of_a_step_are_compared():
    [step] = compare_tables(table(clean({"a": 1})), table(clean({"a": 1}, earliest="2"))).steps

    assert [("earliestInstantToRetain", "1", "2")] == [(f.field, f.old, f.new) for f in step.fields]


def test_steps_that_are_the_same_are_counted():
    index = IndexStep(targets=("zindex",), columns=("a",), files=1, because="new files")
    changed = compare_tables(table(index), table(index, clean({"a": 1})))

    assert 1 == changed.same_steps
    assert [("clean", "new")] == [(step.kind, step.status) for step in changed.steps]


def test_specs_are_compared_by_dotted_fields():
    old, new = ({"retention": {"commits": n}, "path": "/t"} for n in (10, 5))
    changed = compare_tables(table(spec=old), table(spec=new))

    assert [("retention.commits", 10, 5)] == [(f.field, f.old, f.new) for f in changed.spec]


def test_refusals_warnings_and_errors_are_new_or_gone():
    note = Note("lock", "no lock")
    changed = compare_tables(table(error="lost"), table(warnings=(note,)))

    assert ((note,), (Note("error", "lost"),)) == (changed.new_notes, changed.gone_notes)


def test_a_table_that_has_grown_is_the_same_with_other_figures():
    seen = Observed(table_version=9, table_type="COPY_ON_WRITE", last_completed="1")
    old = table(clean({"a": 1}), observed=seen)
    same = compare_tables(old, replace(old, observed=replace(seen, last_completed="2", files=7)))

    assert "same" == same.status
    assert ["observed.files", "observed.lastCompleted"] == [f.field for f in same.figures]
    assert compare_plans(plan(old), plan(old)).is_empty


def test_tables_are_new_or_gone():
    one, other = table(clean({"a": 1})), table(name="u")
    found = compare_plans(plan(one), plan(other))

    assert [("u", "new"), ("t", "gone")] == [(part.name, part.status) for part in found.tables]
    assert not found.is_empty


def test_archived_instants_of_the_metadata_table_and_leftovers_are_compared():
    def archive(*of_metadata_table, leftovers=()):
        return ArchiveStep(
            keep="1..2", commits=3, because="3 are active", leftovers=leftovers,
            metadata_table=tuple(ArchivedInstant(one, "deltacommit") for one in of_metadata_table),
        )  # fmt: skip

    [step] = compare_tables(table(archive("1")), table(archive("1", "2"))).steps
    [left] = compare_tables(
        table(archive("1")), table(archive("1", leftovers=(Leftover("a", "old"),)))
    ).steps

    assert ["metadata/2.deltacommit"] == paths(step.new)
    assert [("leftovers", [], [{"path": "a", "because": "old"}])] == [
        (field.field, field.old, field.new) for field in left.fields
    ]


def test_deleted_folders_of_a_clean_are_compared_and_shown():
    old, new = clean({"p/a": 1}), replace(clean({"p/a": 1}), delete_partitions=("p", "q"))
    [step] = compare_tables(table(old), table(new)).steps
    alone = replace(clean({}), delete_partitions=("q",))

    assert [("deletePartitions", None, ["p", "q"])] == [
        (field.field, field.old, field.new) for field in step.fields
    ]
    shown = difference_text(compare_plans(plan(table()), plan(table(alone))), Terminal())
    assert '+ clean  names no files\n      deletePartitions: nothing → ["q"]\n' in shown


def test_another_size_of_a_file_and_other_columns_are_changes():
    [step] = compare_tables(table(clean({"a": 1})), table(clean({"a": 2}))).steps
    one = cluster(("f", "b1"))
    [other] = compare_tables(table(one), table(replace(one, columns=("b",)))).steps
    shown = difference_text(
        compare_plans(plan(table(clean({"a": 1}))), plan(table(clean({"a": 2})))), Terminal()
    )

    assert ["a"] == paths(step.changed)
    assert [("columns", ["a"], ["b"])] == [(f.field, f.old, f.new) for f in other.fields]
    assert "~ 1 file: another size: old" in shown


def test_names_of_a_plan_cannot_paint_the_terminal():
    name = "\x1b[31mred\n```"
    step = SavepointStep(
        change="create", name=name, instant="1", until=None, files=0, bytes=0, because=name
    )
    old, new = plan(table(spec={name: 1})), plan(table(step, spec={name: 2}))
    difference = compare_plans(old, new)

    for text in (difference_text(difference, Terminal()), difference_markdown(difference)):
        assert "\x1b" not in text
        assert r"savepoint create \x1b[31mred ```" in text
