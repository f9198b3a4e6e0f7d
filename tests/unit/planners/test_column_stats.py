"""When Hudi's own index is built, of which columns, and why it is not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from reconciler.hudi.instant import Action, Instant, State
from reconciler.hudi.timeline import Timeline, TimelineFile
from reconciler.planners import column_stats
from reconciler.planners.column_stats import Verdict, busy_with, columns_of, verdict
from tests.unit.planners.cow import base, commit, table
from tests.unit.planners.indexes import TYPES, known

HERE = "index.hudi: build: column_stats cannot be built here: "
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
    found = verdict(state(has=("a",)), ("a", "b"))

    assert Verdict(missing=("b",), columns=("a", "b", "c"), files=3) == found
    assert found.is_due


def test_no_index_lacks_every_column():
    assert ("a", "b") == verdict(state(), ("a", "b")).missing


def test_an_index_that_has_the_columns_is_fine_whatever_else_it_lacks():
    assert Verdict() == verdict(state(has=("b", "a")), ("a", "b"))


def test_nothing_is_due_for_a_column_that_the_index_has_no_place_for():
    schema = {"a": pa.int64(), "b": pa.list_(pa.int8())}
    found = verdict(state(has=("a",), schema=schema), ("a", "b"))

    assert (("b",), ("a",)) == (found.missing, found.columns)
    assert not found.is_due


@pytest.mark.parametrize(
    ("more", "because"),
    [
        ({"version": 5}, "the table is of version 5, and only 6, 8, 9 are known"),
        (
            {"metadata_partitions": ()},
            "the table has no metadata table; write to it once with hoodie.metadata.enable=true",
        ),
        ({"metadata_partitions": ("x",)}, "its metadata table does not list the files"),
        (
            {"properties": {"hoodie.table.metadata.partitions.inflight": "record_index"}},
            "the metadata partitions record_index are being built by another",
        ),
        (
            {"properties": {"hoodie.bootstrap.base.path": "/else"}},
            "the table was bootstrapped, so columns of its files lie in others",
        ),
        (
            {"schema": {"a": pa.int64(), "t": pa.timestamp("ms", tz="UTC")}},
            (
                "its readers count on entries of column t, of type timestamp[ms, tz=UTC], and how "
                "they are kept is not known; let a Hudi writer build the index"
            ),
        ),
    ],
)
def test_what_forbids_it_is_said(more, because):
    found = verdict(state(**more), ("a",))

    assert HERE + because == found.because
    assert not found.is_due


def test_columns_that_files_hold_under_another_name_forbid_it():
    found = verdict(replace_index(state(), renamed=frozenset({"c"})), ("a",))

    assert (
        f"{HERE}older files hold column c under another name; rewrite them with Hudi, for example "
        "by clustering"
    ) == found.because


def replace_index(of, **more):
    return replace(of, index=replace(of.index, **more))


def test_an_index_that_cannot_be_read_is_not_touched():
    found = verdict(replace_index(state(), hudi_problem="a block is damaged"), ("a",))

    assert (("a",), f"{HERE}a block is damaged") == (found.missing, found.because)


def test_more_entries_than_a_driver_holds_are_left_to_hudi(monkeypatch):
    monkeypatch.setattr(column_stats, "_MOST_ENTRIES", 8)

    assert (
        f"{HERE}3 files with 3 columns are more than 8 entries; let a Hudi writer build it"
        == verdict(state(), ("a",)).because
    )


ALL = {
    "_hoodie_record_key": pa.string(),
    "_hoodie_file_name": pa.string(),
    "n": pa.int32(),
    "st": pa.struct({"x": pa.float64(), "list": pa.list_(pa.int8())}),
    "dec": pa.decimal128(38, 10),
}


def test_columns_are_those_that_a_writer_would_index():
    schema = pa.schema(list(ALL.items()))

    assert ["_hoodie_record_key", "n", "st.x", "dec"] == [*columns_of(schema, 9)]
    assert ["_hoodie_record_key", "n", "st.x"] == [*columns_of(schema, 8)]


@pytest.mark.parametrize(
    ("kind", "said"), [("st", "struct<x: double, list: list<item: int8>>"), ("dec", "decimal128")]
)
def test_readers_of_version_6_count_on_entries_of_columns_that_have_none(kind, said):
    found = verdict(state(version=6, schema={"a": pa.int64(), kind: ALL[kind]}), ("a",))

    assert f"entries of column {kind}, of type {said}" in (found.because or "")


def timeline(*instants):
    return Timeline.of([TimelineFile(one, one.file_name, 1, 0) for one in instants])


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

    assert (instant if is_busy else None) == busy_with(timeline(instant))


def test_types_of_the_test_can_be_kept():
    assert [*TYPES] == [*columns_of(pa.schema([*TYPES.items(), ("l", pa.list_(UTC))]), 9)]
