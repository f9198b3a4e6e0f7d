"""When an index is brought up to date, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from reconciler.planners.compose import plan_table
from reconciler.planners.index.planner import plan_index
from reconciler.planners.picture import TablePicture
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.model import CleanStep, Finding, IndexStep, Note
from reconciler.spec.model import (
    Concurrency,
    IndexColumns,
    Lock,
    Policy,
    Retention,
    TableSpec,
)
from tests.unit.planners.cow import base, commit, table, upserts
from tests.unit.planners.indexes import TYPES, index_of_names, known

NOW = datetime(2024, 1, 2, tzinfo=UTC)
AB = {"a": TYPES["a"], "b": TYPES["b"]}


def spec(**more):
    lock = Concurrency(lock=Lock(provider="filesystem"))
    asked = {"index": IndexColumns(columns=("a", "b")), "concurrency": lock, **more}
    return TableSpec(name="t", path="/t", **asked)


def groups(count):
    """Three groups of one file each."""
    names = {"a": [base(f"g{nth}", nth) for nth in range(count)]}
    return table(names, [commit(hour) for hour in range(count)])


def names(count):
    return [base(f"g{nth}", nth) for nth in range(count)]


def decided(state, rewrites=(), removed=(), **more):
    is_removed = np.zeros(len(state.files), np.bool_)
    is_removed[list(removed)] = True
    return plan_index(TablePicture(spec(**more), state), rewrites, is_removed)


def rewriting(*bases, outputs):
    slices = [{"fileId": name.split("_")[0], "base": name, "logs": []} for name in bases]
    group = {"partition": "a", "outputs": outputs, "bytes": 1, "because": "x", "slices": slices}
    return rewrites_from_json([group])


def test_a_table_without_an_index_gets_one():
    found = decided(known(groups(3)))

    assert found.step == IndexStep(
        targets=("zindex",),
        columns=("a", "b"),
        add=("a", "b"),
        files=3,
        because="the table has no index yet; 3 base files are indexed",
    )
    assert found.drift == (Finding("index.columns", ["a", "b"], None, "the table has no index"),)
    assert () == found.warnings


def test_an_index_that_has_all_is_left_alone():
    found = decided(known(groups(3), index=index_of_names(names(3), AB)))

    assert (None, (), ()) == (found.step, found.drift, found.warnings)


def test_rows_about_files_that_are_gone_make_no_step():
    index = index_of_names([*names(3), base("gone", 1)], AB)

    assert decided(known(groups(3), index=index)).step is None


def test_a_new_file_is_read_and_no_other():
    found = decided(known(groups(3), index=index_of_names(names(2), AB)))

    assert found.step == IndexStep(
        targets=("zindex",),
        columns=("a", "b"),
        files=1,
        because="1 base file is not in the index yet",
    )
    assert found.drift == (
        Finding(
            "index.files",
            3,
            2,
            "index version 20240101000000000_0 covers 2 of 3 current base files",
        ),
    )


def test_old_slices_are_not_waited_for():
    index = index_of_names([base("g", 2)], AB)

    assert decided(known(upserts(3), index=index)).step is None


def test_a_declared_column_is_added_and_read_of_every_file():
    index = index_of_names(names(2), {"a": TYPES["a"]})
    found = decided(known(groups(3), index=index))

    assert found.step == IndexStep(
        targets=("zindex",),
        columns=("a", "b"),
        add=("b",),
        files=3,
        because="1 column added; 1 base file is not in the index yet",
    )
    assert [("index.columns", ["a", "b"], ["a"]), ("index.files", 3, 2)] == [
        (one.field, one.desired, one.actual) for one in found.drift
    ]


def test_a_column_that_is_not_declared_any_more_is_dropped_without_reading():
    found = decided(known(groups(3), index=index_of_names(names(3), TYPES)))

    assert found.step == IndexStep(
        targets=("zindex",),
        columns=("a", "b"),
        drop=("c",),
        files=0,
        because="1 column no longer declared",
    )


def test_a_column_of_another_type_is_read_again():
    index = index_of_names(names(3), {"a": pa.string(), "b": TYPES["b"]})
    found = decided(known(groups(3), index=index))

    assert found.step is not None
    assert (3, "type changed: a") == (found.step.files, found.step.because)
    assert () == found.drift


def test_a_column_that_was_widened_is_known():
    index = index_of_names(names(3), {"a": pa.int32(), "b": TYPES["b"]})

    assert decided(known(groups(3), index=index)).step is None


def test_a_damaged_version_is_replaced_even_where_an_older_one_has_all():
    damaged = (".hoodie/.zindex/2_0/index-9.parquet: it is cut short",)
    index = index_of_names(names(3), AB)
    found = decided(known(groups(3), index=index, damaged=damaged))
    alone = decided(known(groups(3), damaged=damaged))

    assert found.step is not None
    assert f"its last version is damaged: {damaged[0]}" == found.step.because
    assert alone.step is not None
    assert f"its last version is damaged: {damaged[0]}; 3 base files are indexed" == (
        alone.step.because
    )
    assert [Finding("index.columns", ["a", "b"], None, "no version of the index can be read")] == [
        *alone.drift
    ]


def test_what_is_rewritten_is_not_read_and_what_is_written_is():
    index = index_of_names(names(1), AB)
    some = (rewriting(names(3)[0], names(3)[1], outputs=2),)
    found = decided(known(groups(3), index=index), some)

    assert found.step is not None
    assert 3 == found.step.files  # one that stays and two that are written
    assert found.step.because == (
        "1 base file is not in the index yet; this plan writes 2 new base files"
    )


def test_a_rewrite_alone_makes_a_step_and_no_drift():
    index = index_of_names(names(3), AB)
    found = decided(known(groups(3), index=index), (rewriting(names(3)[0], outputs=1),))

    assert found.step is not None
    assert (1, "this plan writes 1 new base file") == (found.step.files, found.step.because)
    assert () == found.drift


def test_what_the_plan_removes_is_not_read():
    found = decided(known(groups(3)), removed=[1])

    assert found.step is not None
    assert 2 == found.step.files


def test_a_file_whose_footer_could_not_be_read_makes_no_step_by_itself():
    index = index_of_names(names(3), AB, unread=names(1))
    found = decided(known(groups(3), index=index))
    beside = decided(known(groups(4), index=index))

    assert found.step is None
    assert ["damagedFile"] == [note.rule for note in found.warnings]
    assert found.warnings[0].because == (
        "the index has no statistics of 1 base file whose footer could not be read, so every read "
        f"opens it: a/{names(1)[0]}; restore it from a copy"
    )
    assert beside.step is not None
    assert (2, "1 base file is not in the index yet") == (beside.step.files, beside.step.because)


def test_of_many_files_that_nothing_is_known_of_five_are_named():
    index = index_of_names(names(7), AB, unread=names(7))
    (found,) = decided(known(groups(7), index=index)).warnings

    five = ", ".join(f"a/{name}" for name in names(5))
    assert found.because.endswith(
        f"so every read opens them: {five} (and 2 more); restore them from copies"
    )


def test_a_column_that_cannot_be_indexed_is_a_warning_and_the_others_are():
    problem = "column x cannot be indexed: the table has no such column; did you mean a?"
    found = decided(known(groups(3), problems={"x": problem}))
    alone = decided(known(groups(3), wanted=(), problems={"x": problem}))

    assert found.step is not None
    assert (Note("indexColumn", problem),) == found.warnings
    assert (None, (), found.warnings) == (alone.step, alone.drift, alone.warnings)


def test_columns_that_cannot_be_indexed_do_not_empty_an_index():
    index = index_of_names(names(3), AB)

    assert decided(known(groups(3), wanted=(), index=index)).step is None


def test_a_table_without_base_files_waits_for_some():
    empty = table({"a": []}, [])

    assert decided(known(empty)).step is None


@pytest.mark.parametrize("has", [True, False])
def test_without_an_index_block_nothing_is_planned(has):
    state = known(groups(3)) if has else groups(3)
    plan = plan_table(
        spec(index=None), replace(state, index_state=state.index_state if has else None), NOW
    )

    assert ((), ()) == (plan.steps, plan.drift)


def test_the_index_comes_before_the_clean():
    keep = Retention(policy=Policy.COMMITS, keep=1)
    plan = plan_table(spec(retention=keep), known(upserts(5)), NOW)

    assert [IndexStep, CleanStep] == [type(step) for step in plan.steps]
    assert 1 == plan.steps[0].files
    assert ["retention.commits", "index.columns"] == [one.field for one in plan.drift]


def test_a_suspended_table_shows_its_step_and_is_blocked():
    plan = plan_table(spec(suspend=True), known(groups(3)), NOW)

    assert ["index"] == [step.kind for step in plan.steps]
    assert ["suspend"] == [note.rule for note in plan.refusals]


def built(state, has, **more):
    """The state with a metadata table, whose column_stats has these columns."""
    live = {"metadata_partitions": ("files", "column_stats"), **more}
    return known(replace(state, **live), index=index_of_names(names(3), AB), hudi_columns=has)


BUILD = IndexColumns(columns=("a", "b"), hudi="build")


def test_hudis_index_is_built_where_it_lacks_a_declared_column():
    found = decided(built(groups(3), ("a",)), index=BUILD)

    assert found.step == IndexStep(
        targets=("column_stats",),
        columns=("a", "b"),
        files=3,
        because="Hudi's column_stats lacks b",
    )
    assert [("index.hudi", ["a", "b"], ["a"])] == [
        (one.field, one.desired, one.actual) for one in found.drift
    ]


def test_hudis_index_that_has_the_columns_is_left_alone():

    assert decided(built(groups(3), ("b", "a", "c")), index=BUILD).step is None


def test_hudis_index_is_kept_as_it_is_where_nothing_else_is_asked():

    assert decided(built(groups(3), None)).step is None


def test_why_hudis_index_cannot_be_built_is_a_warning_and_ours_is():
    state = known(replace(groups(3), metadata_partitions=()))
    found = decided(state, index=BUILD)

    assert found.step is not None
    assert ("zindex",) == found.step.targets
    assert ["hudiIndex"] == [note.rule for note in found.warnings]
    assert "the table has no metadata table" in found.warnings[0].because


def test_files_that_hudis_index_lacks_are_a_step():
    state = built(groups(3), ("a", "b"))
    found = decided(
        replace(state, index_state=replace(state.index_state, hudi_files_without_entries=1)),
        index=BUILD,
    )

    assert found.step is not None
    assert (("column_stats",), 3) == (found.step.targets, found.step.files)
    assert found.step.because == (
        "Hudi's column_stats lacks entries of 1 base file, whose rows its readers may lose"
    )
    assert [("index.hudi.files", 3, 2)] == [
        (one.field, one.desired, one.actual) for one in found.drift
    ]


def test_what_writers_must_name_for_hudis_index_is_a_warning():
    state = built(groups(3), ("a",))
    many = pa.schema([("a", pa.int64()), *((f"x{nth}", pa.int8()) for nth in range(40))])
    schema = many.append(pa.field("b", pa.string()))
    found = decided(
        replace(state, index_state=replace(state.index_state, schema=schema)), index=BUILD
    )

    assert found.step is None
    says = (
        "index.hudi: build: Hudi writers index only the first 32 columns by default, so not b; "
        "list all wanted columns in hoodie.metadata.index.column.stats.column.list of every "
        "writer"
    )
    assert [says] == [note.because for note in found.warnings]


def test_what_writers_took_out_of_hudis_index_is_a_warning():
    state = built(groups(3), ("a",))
    found = decided(
        replace(state, index_state=replace(state.index_state, hudi_removed_by_writers=("b",))),
        index=BUILD,
    )

    assert found.step is None
    says = (
        "index.hudi: build: a writer has removed b from column_stats since they were built; add "
        "them to hoodie.metadata.index.column.stats.column.list of every writer, or remove that "
        "option"
    )
    assert [says] == [note.because for note in found.warnings]


def test_what_hudis_index_has_no_place_for_is_a_warning():
    state = built(groups(3), ("a",), table_version=8)
    schema = pa.schema([("a", pa.int64()), ("b", pa.decimal128(38, 10))])
    found = decided(
        replace(state, index_state=replace(state.index_state, schema=schema)), index=BUILD
    )

    assert found.step is None
    says = "index.hudi: build: Hudi's column_stats cannot hold b; reconciler's own index has them"
    assert [says] == [note.because for note in found.warnings]


def test_both_are_one_step():
    state = known(replace(groups(3), metadata_partitions=("files",)), hudi_columns=None)
    found = decided(state, index=BUILD)

    assert found.step is not None
    assert (("zindex", "column_stats"), 3) == (found.step.targets, found.step.files)
    assert found.step.because == (
        "the table has no index yet; 3 base files are indexed; Hudi's column_stats does not exist"
    )
