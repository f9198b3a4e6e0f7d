from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reconciler.errors import RowsError, UnsupportedError
from reconciler.writer.declared_schema import make_avro_schema


def declared(kind, name="v", version=9):
    text = make_avro_schema(pa.schema([(name, kind)]), "t", table_version=version)
    return json.loads(text)["fields"][0]["type"]


def test_a_column_that_may_be_null_is_a_union_that_defaults_to_null():
    text = make_avro_schema(
        pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())]),
        "t",
        table_version=9,
    )

    assert (
        '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":['
        '{"name":"a","type":"int"},{"name":"b","type":["null","int"],"default":null}]}'
    ) == text


def test_meta_columns_that_the_rows_bring_are_no_part_of_the_schema():
    columns = pa.schema([("_hoodie_commit_time", pa.string()), ("a", pa.int32())])

    assert ["a"] == [
        f["name"] for f in json.loads(make_avro_schema(columns, "t", table_version=9))["fields"]
    ]


def test_a_dictionary_is_declared_as_its_values():
    assert ["null", "string"] == declared(pa.dictionary(pa.int32(), pa.string()))


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("ns", "UTC"),
        pa.timestamp("ms"),
        pa.time64("us"),
        pa.uint8(),
        pa.null(),
        pa.float16(),
        pa.decimal256(50, 2),
        pa.struct([]),
        pa.map_(pa.int32(), pa.string()),
        pa.decimal128(5, -2),
    ],
)
def test_a_type_that_hudis_tables_have_not_is_refused_by_column(kind):
    with pytest.raises(UnsupportedError, match=r"column s\.v: "):
        declared(pa.struct([("v", kind)]), name="s")


@pytest.mark.parametrize("version", [6, 8])
def test_times_without_a_zone_are_for_tables_of_version_9_on(version):
    assert ["null", {"type": "long", "logicalType": "local-timestamp-micros"}] == declared(
        pa.timestamp("us"), version=9
    )
    with pytest.raises(UnsupportedError, match=f"column v: tables of version {version} have no"):
        declared(pa.timestamp("us"), version=version)


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "a.b"])
def test_a_column_name_that_avro_has_not_is_refused(name):
    with pytest.raises(RowsError, match="names consist of letters, digits and underscores"):
        declared(pa.int32(), name=name)
