"""The columns of a table, and base files that hold other types."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UsageError
from reconciler.hudi.timeline.declared_schema import find_declared_schema
from reconciler.reader.open_scan import find_evolved_instants, format_types, select_columns
from reconciler.state.schema import build_table_schema
from tests.memory_slices import record_schema
from tests.unit.state.test_partition_values import DROPPED, properties

META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]
BARE = {"hoodie.populate.meta.fields": "false"}


def test_a_write_declares_the_schema_and_a_table_service_does_not():
    extra = {"schema": "{}"}

    assert find_declared_schema("UPSERT", extra) == "{}"
    assert find_declared_schema(None, extra) == "{}"
    assert find_declared_schema("delete_partition", extra) == "{}"
    assert find_declared_schema("COMPACT", extra) is None
    assert find_declared_schema("cluster", extra) is None
    assert find_declared_schema("UPSERT", {}) is None
    assert find_declared_schema("UPSERT", {"schema": ""}) is None


def test_the_meta_columns_come_first_where_the_table_has_them():
    text = record_schema(("id", "long"), ("p", "string"))

    assert [*META, "id", "p"] == build_table_schema(text, "c", properties("p")).names
    assert ["id", "p"] == build_table_schema(text, "c", properties("p", **BARE)).names


def test_dropped_partition_columns_are_text_at_the_end():
    text = record_schema(("id", "long"), ("q", "int"))
    found = build_table_schema(text, "c", properties("p,q", **DROPPED, **BARE))

    assert pa.schema([("id", pa.int64()), ("q", pa.int32()), ("p", pa.string())]) == found


def test_a_declared_schema_that_is_none_names_its_file():

    with pytest.raises(FormatError, match=r"001\.commit"):
        build_table_schema(json.dumps({"type": "what"}), "001.commit", properties("p"))


def test_columns_are_given_in_the_order_they_are_asked_for():
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.date32())])

    assert ["c", "a"] == select_columns(schema, ("c", "a"), "t").names
    assert [] == select_columns(schema, (), "t").names
    assert schema == select_columns(schema, None, "t")


def test_a_column_there_is_none_of_is_named_beside_those_there_are():
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])

    with pytest.raises(UsageError, match="table t has no column 'x'; its columns are a, b"):
        select_columns(schema, ("a", "x"), "t")


WIDE = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.string()), ("y", pa.int32())]))])


def evolved(files, table=WIDE):
    """Return the instants whose files have other types, and how many files were read."""
    looked = []

    def shape(instant):
        looked.append(instant)
        return format_types(files[instant])

    return sorted(find_evolved_instants(sorted(files), shape, table)), len(looked)


def test_a_file_with_a_narrower_type_is_found():

    assert (["1"], 2) == evolved({"1": pa.schema([("a", pa.int32())]), "2": WIDE})


def test_a_file_that_lacks_columns_or_has_more_is_not():
    more = pa.schema([*WIDE, pa.field("z", pa.int32())])

    assert ([], 2) == evolved({"1": pa.schema([("a", pa.int64())]), "2": more})


def test_a_struct_with_other_fields_is():
    one = pa.schema([("s", pa.struct([("x", pa.string())]))])

    assert (["1"], 1) == evolved({"1": one})


def test_names_of_items_and_units_of_times_are_no_difference():
    table = pa.schema(
        [
            ("l", pa.list_(pa.field("element", pa.timestamp("us", "UTC")))),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("s", pa.struct([("x", pa.string()), ("y", pa.int32())])),
        ]
    )
    file = pa.schema(
        [
            ("l", pa.list_(pa.field("array", pa.timestamp("ms", "UTC"), nullable=False))),
            ("m", pa.map_(pa.string(), pa.field("v", pa.int32(), nullable=False))),
            ("s", pa.struct([("y", pa.int32()), ("x", pa.string())])),
        ]
    )

    assert ([], 1) == evolved({"1": file}, table)


def test_times_of_another_kind_are():
    table = pa.schema([("t", pa.timestamp("us", "UTC"))])
    local = pa.schema([("t", pa.timestamp("us"))])
    int96 = pa.schema([("t", pa.timestamp("ns"))])

    assert (["1", "2"], 2) == evolved({"1": local, "2": int96}, table)


def test_few_of_many_files_are_looked_into():
    old, new = pa.schema([("a", pa.int32())]), WIDE
    files = {f"{n:04d}": old if n < 700 else new for n in range(1000)}
    found, looked = evolved(files)

    assert [f"{n:04d}" for n in range(700)] == found
    assert looked < 20


def test_no_files_need_no_look():

    assert ([], 0) == evolved({})
