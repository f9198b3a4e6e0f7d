"""When Hudi's own index is built, of which columns, and why it is not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.planners.index import column_stats
from reconciler.planners.index.column_stats import (
    ColumnStatsNeed,
    assess_column_stats,
    list_indexed_columns,
)
from tests.unit.planners.cow import base, commit, table
from tests.unit.planners.indexes import TYPES, known

HERE = "index.hudi: build: column_stats cannot be built: "
UTC = pa.timestamp("us", tz="UTC")


def state(*, has=None, version=9, schema=None, **more):
    """Three files and a metadata table that lists files."""
    names = {"a": [base(f"g{nth}", nth) for nth in range(3)]}
    made = table(names, [commit(hour) for hour in range(3)])
    live = {"metadata_partitions": ("files",), "table_version": version}
    made = replace(made, **{**live, **more})
    asked = {} if schema is None else {"schema": pa.schema(list(schema.items()))}
    return known(made, hudi_columns=has, **asked)


def test_a_declared_column_that_the_index_lacks_is_reason_to_build_it_of_every_column():
    found = assess_column_stats(state(has=("a",)), ("a", "b"))

    assert ColumnStatsNeed(missing=("b",), columns=("a", "b", "c"), files=3) == found
    assert found.is_due


def test_no_index_lacks_every_column():
    assert ("a", "b") == assess_column_stats(state(), ("a", "b")).missing


def test_an_index_that_has_the_columns_is_fine_whatever_else_it_lacks():
    assert ColumnStatsNeed() == assess_column_stats(state(has=("b", "a")), ("a", "b"))


def test_nothing_is_due_for_a_column_that_the_index_has_no_place_for():
    schema = {"a": pa.int64(), "b": pa.list_(pa.int8())}
    found = assess_column_stats(state(has=("a",), schema=schema), ("a", "b"))

    assert (("b",), ("a",)) == (found.missing, found.columns)
    assert not found.is_due


@pytest.mark.parametrize(
    ("more", "because"),
    [
        ({"version": 5}, "the table has version 5; supported versions are 6, 8, 9"),
        (
            {"metadata_partitions": ()},
            "the table has no metadata table; write to it once with hoodie.metadata.enable=true",
        ),
        ({"metadata_partitions": ("x",)}, "its metadata table does not list the files"),
        (
            {"properties": {"hoodie.table.metadata.partitions.inflight": "record_index"}},
            "another process is building the metadata partitions record_index",
        ),
        (
            {"properties": {"hoodie.bootstrap.base.path": "/else"}},
            "the table was bootstrapped, so columns of its files are in other files",
        ),
        (
            {"schema": {"a": pa.int64(), "t": pa.timestamp("ms", tz="UTC")}},
            (
                "readers rely on entries of column t of type timestamp[ms, tz=UTC], whose encoding "
                "is not supported; let a Hudi writer build the index"
            ),
        ),
    ],
)
def test_what_forbids_it_is_said(more, because):
    found = assess_column_stats(state(**more), ("a",))

    assert HERE + because == found.because
    assert not found.is_due


def test_columns_that_files_hold_under_another_name_forbid_it():
    found = assess_column_stats(replace_index(state(), renamed=frozenset({"c"})), ("a",))

    assert (
        f"{HERE}older files have column c under another name; rewrite them with Hudi, for example "
        "by clustering"
    ) == found.because


def replace_index(of, **more):
    return replace(of, index_state=replace(of.index_state, **more))


def test_an_index_that_cannot_be_read_is_not_touched():
    found = assess_column_stats(replace_index(state(), hudi_problem="a block is damaged"), ("a",))

    assert (("a",), f"{HERE}a block is damaged") == (found.missing, found.because)


def test_more_entries_than_a_driver_holds_are_left_to_hudi(monkeypatch):
    monkeypatch.setattr(column_stats, "MAX_ENTRIES", 8)

    assert (
        f"{HERE}3 files with 3 columns need more than 8 entries; let a Hudi writer build it"
        == assess_column_stats(state(), ("a",)).because
    )


ALL = {
    "_hoodie_record_key": pa.string(),
    "_hoodie_file_name": pa.string(),
    "n": pa.int32(),
    "st": pa.struct({"x": pa.float64(), "list": pa.list_(pa.int8())}),
    "dec": pa.decimal128(38, 10),
}


def test_columns_are_those_that_a_writer_would_index_by_itself():
    schema = pa.schema(list(ALL.items()))

    assert ["_hoodie_record_key", "n", "dec"] == [*list_indexed_columns(schema, 9)]
    assert ["_hoodie_record_key", "n"] == [*list_indexed_columns(schema, 8)]


def wide(*more):
    """The meta columns, a list, 32 columns that a writer indexes by itself, and one more."""
    meta = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    plain = {f"c{nth:02}": pa.int64() for nth in range(33)}
    fields = {**{f"_hoodie_{name}": pa.string() for name in meta}, "list": pa.list_(pa.int8())}
    return pa.schema([*(fields | plain).items(), *more])


FIRST = [
    "_hoodie_commit_time",
    "_hoodie_partition_path",
    "_hoodie_record_key",
    *(f"c{nth:02}" for nth in range(32)),
]


def test_of_many_columns_a_writer_indexes_the_first_32_and_three_of_its_own():
    assert FIRST == [*list_indexed_columns(wide(), 9)]
    assert FIRST == [*list_indexed_columns(wide(), 8)]


def test_readers_of_version_6_take_all_of_many_columns_for_indexed():
    flat = pa.schema([field for field in wide() if field.name != "list"])

    assert flat.names == [*list_indexed_columns(flat, 6)]


def test_a_column_that_writers_have_written_down_stays_in_the_index():
    struct = ("st", pa.struct({"x": pa.int8(), "y": pa.int8()}))

    assert [*FIRST, "c32", "st.y"] == [
        *list_indexed_columns(wide(struct), 9, ("c32", "st.y", "c01", "gone"))
    ]


def of_wide(**more):
    return replace_index(state(), schema=wide(), **more)


def test_a_column_that_writers_do_not_index_by_themselves_is_no_reason_to_build():
    found = assess_column_stats(of_wide(hudi_columns=tuple(FIRST)), ("c01", "c32"))

    assert (("c32",), (), ("c32",)) == (found.missing, found.buildable, found.unsupported)
    assert not found.is_due


def test_a_column_that_cannot_be_kept_matters_only_where_writers_index_it():
    strange = ("t", pa.timestamp("ms", tz="UTC"))

    assert assess_column_stats(replace_index(state(), schema=wide(strange)), ("c01",)).is_due
    found = assess_column_stats(
        replace_index(state(), schema=wide(strange), hudi_defined=("t",)), ("c01",)
    )
    assert "entries of column t of type timestamp[ms, tz=UTC]" in (found.because or "")


def test_columns_that_writers_took_out_of_the_index_again_are_not_built_for_ever():
    found = assess_column_stats(
        replace_index(state(has=("a",)), hudi_removed_by_writers=("b",)), ("a", "b")
    )

    assert (("b",), (), ("b",)) == (found.missing, found.buildable, found.removed_by_writers)
    assert not found.is_due


def test_files_that_the_index_lacks_are_reason_to_build_it():
    found = assess_column_stats(
        replace_index(state(has=("a", "b")), hudi_files_without_entries=2), ("a", "b")
    )

    assert ((), 2, ("a", "b", "c"), 3) == (
        found.missing,
        found.files_without_entries,
        found.columns,
        found.files,
    )
    assert found.is_due


def test_files_that_the_index_lacks_are_said_where_it_cannot_be_built():
    found = assess_column_stats(
        replace_index(state(has=("a",), version=5), hudi_files_without_entries=2), ("a",)
    )

    assert (found.because or "").startswith(HERE)
    assert (found.because or "").endswith(
        "; it lacks entries of 2 base files, whose rows Hudi's readers may lose"
    )


@pytest.mark.parametrize(
    ("kind", "said"), [("st", "struct<x: double, list: list<item: int8>>"), ("dec", "decimal128")]
)
def test_readers_of_version_6_count_on_entries_of_columns_that_have_none(kind, said):
    found = assess_column_stats(state(version=6, schema={"a": pa.int64(), kind: ALL[kind]}), ("a",))

    assert f"entries of column {kind} of type {said}" in (found.because or "")


def timeline(*instants):
    return Timeline.from_files([TimelineFile(one, one.file_name, 1, 0) for one in instants])


@pytest.mark.parametrize(
    ("action", "begun", "is_busy"),
    [
        (Action.COMMIT, State.REQUESTED, True),
        (Action.DELTACOMMIT, State.INFLIGHT, True),
        (Action.INDEXING, State.REQUESTED, True),
        (Action.RESTORE, State.REQUESTED, True),
        (Action.REPLACECOMMIT, State.REQUESTED, True),
        (Action.CLUSTERING, State.REQUESTED, False),
        (Action.CLUSTERING, State.INFLIGHT, True),
        (Action.COMPACTION, State.REQUESTED, False),
        (Action.COMPACTION, State.INFLIGHT, True),
        (Action.ROLLBACK, State.INFLIGHT, True),
        (Action.CLEAN, State.REQUESTED, False),
    ],
)
def test_who_may_count_on_the_indexes_as_they_are(action, begun, is_busy):
    instant = Instant("20240101000000000", action, begun)

    assert (instant if is_busy else None) == find_busy_instant(timeline(instant))


def test_types_of_the_test_can_be_kept():
    assert [*TYPES] == [*list_indexed_columns(pa.schema([*TYPES.items(), ("l", pa.list_(UTC))]), 9)]
