from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, RowsError, UnsupportedError
from reconciler.writer.declared_schema import make_avro_schema
from reconciler.writer.schema_evolution import SchemaEvolution

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
TABLE = pa.schema([("id", TEXT), ("n", INT)])


def evolved(table, rows, **how):
    text = table if isinstance(table, str) else make_avro_schema(table, "t", table_version=9)
    rows = rows if isinstance(rows, pa.Schema) else pa.schema(rows)
    return SchemaEvolution.from_schemas(text, rows, table_name="t", **{"table_version": 9, **how})


def record(*fields):
    return json.dumps({"type": "record", "name": "r", "namespace": "a.b", "fields": [*fields]})


def test_a_schema_that_does_not_change_stays_to_the_letter():
    table = '{ "type": "record", "name": "x", "fields": [{"name": "n", "type": ["int", "null"]}] }'

    assert table == evolved(table, [("n", INT)]).avro


def test_rows_come_in_the_tables_order_and_types_and_are_null_where_they_have_nothing():
    found = evolved(TABLE, [("x", TEXT), ("n", LONG)], fills_missing=True)
    rows = pa.RecordBatch.from_pydict({"x": ["a"], "n": [2**40]})

    assert [{"id": None, "n": 2**40, "x": "a"}] == found.convert_batch(rows).to_pylist()
    assert pa.schema([("id", TEXT), ("n", LONG), ("x", TEXT)]) == found.columns


def test_narrower_rows_become_as_wide_as_the_table():
    table = pa.schema([("n", LONG), ("s", pa.struct([("a", LONG), ("b", TEXT)])), ("t", TEXT)])
    rows = pa.schema([("n", pa.int8()), ("s", pa.struct([("b", TEXT), ("a", INT)])), ("t", INT)])
    batch = pa.RecordBatch.from_pylist([{"n": 1, "s": {"b": "x", "a": 2}, "t": 3}], rows)
    found = evolved(table, rows)

    assert [{"n": 1, "s": {"a": 2, "b": "x"}, "t": "3"}] == found.convert_batch(batch).to_pylist()
    assert table == found.columns


def test_every_column_that_does_not_fit_is_shown_with_both_types():
    table = pa.schema([("id", TEXT), ("n", INT), ("s", pa.struct([("a", pa.date32())]))])
    rows = pa.schema([("n", pa.bool_()), ("s", pa.struct([("a", pa.timestamp("us", "UTC"))]))])
    with pytest.raises(RowsError) as caught:
        evolved(table, rows)

    assert (
        "the rows do not fit the schema of table t:\n"
        "  id: missing required column (string): add it, or use --fill-missing for nulls\n"
        "  n: the table has int, the rows have boolean: neither type can hold all values of "
        "the other\n"
        "  s.a: the table has date, the rows have timestamp: neither type can hold all "
        "values of the other"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("table", "rows", "shown"),
    [
        (pa.list_(INT), pa.map_(TEXT, INT), "array<int>.*map<string,int>"),
        (pa.struct([("a", INT)]), LONG, "struct<a:int>.*bigint"),
        (pa.decimal128(10, 2), pa.decimal128(10, 3), r"decimal\(10,2\).*decimal\(10,3\).*digits"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "timestamp_ntz.*timestamp:"),
        (pa.list_(INT), pa.list_(pa.bool_()), "v.element: the table has int, the rows have boolea"),
    ],
)
def test_types_are_shown_as_sql_names_them(table, rows, shown):
    with pytest.raises(RowsError, match=shown):
        evolved(pa.schema([("v", table)]), [("v", rows)])


@pytest.mark.parametrize("fills", [True, False])
def test_a_name_in_other_letters_is_neither_missing_nor_new(fills):
    with pytest.raises(RowsError, match=r"N: new column .int.: SQL cannot"):
        evolved(TABLE, [("id", TEXT), ("N", INT)], fills_missing=fills)


def test_a_required_column_can_not_be_added():
    rows = TABLE.append(pa.field("x", INT, nullable=False))
    with pytest.raises(RowsError, match=r"x: new column .int.: a new column must"):
        evolved(TABLE, rows)


def test_a_required_column_becomes_nullable_with_null_for_its_default():
    table = pa.schema([pa.field("n", INT, nullable=False)])
    (field,) = json.loads(evolved(table, [("n", INT)]).avro)["fields"]

    assert {"name": "n", "type": ["null", "int"], "default": None} == field


def test_what_else_a_schema_says_of_a_column_stays():
    table = record(
        {"name": "n", "type": ["null", "int"], "default": None, "doc": "how many"},
        {"name": "o", "type": "int"},
    )
    found = json.loads(evolved(table, [("n", LONG), ("o", INT)]).avro)

    assert {"name": "n", "type": ["null", "long"], "default": None, "doc": "how many"} == found[
        "fields"
    ][0]
    assert ("r", "a.b") == (found["name"], found["namespace"])


def test_meta_columns_in_a_tables_schema_are_not_missing_in_rows():
    table = record(
        {"name": "_hoodie_commit_time", "type": ["null", "string"]}, {"name": "n", "type": "int"}
    )

    assert table == evolved(table, [pa.field("n", INT, nullable=False)]).avro


def test_a_type_that_is_used_by_its_name_fits_as_it_is_and_cannot_change():
    inner = {"type": "record", "name": "i", "fields": [{"name": "a", "type": ["null", "int"]}]}
    table = record({"name": "x", "type": inner}, {"name": "y", "type": ["null", "a.b.i"]})
    kind, wider = pa.struct([("a", INT)]), pa.struct([("a", LONG)])
    rows = pa.schema([pa.field("x", kind, nullable=False), pa.field("y", kind)])

    assert table == evolved(table, rows).avro
    with pytest.raises(RowsError, match=r"y: .*uses this named type elsewhere"):
        evolved(table, pa.schema([rows.field("x"), pa.field("y", wider)]))


def test_a_struct_that_is_named_like_a_primitive_type_is_not_taken_for_it():
    table = pa.schema([("id", LONG), ("long", pa.struct([("a", TEXT)])), ("n", LONG)])

    assert make_avro_schema(table, "t", table_version=9) == evolved(table, table).avro


def test_a_table_in_milliseconds_is_not_written_with_microseconds():
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    with pytest.raises(RowsError, match="at: the table has timestamp-millis, the rows have times"):
        evolved(record({"name": "at", "type": millis}), [("at", pa.timestamp("us", "UTC"))])


def test_a_tables_schema_that_is_none_is_named():
    with pytest.raises(FormatError, match="the schema of table t"):
        evolved('{"type": "record"}', TABLE)


def test_a_value_that_the_tables_type_cannot_hold_is_refused_by_column():
    found = evolved(pa.schema([("v", TEXT)]), [("v", pa.binary())])
    with pytest.raises(UnsupportedError, match="the rows, column v"):
        found.convert_batch(pa.RecordBatch.from_pydict({"v": [b"\xff"]}))


@pytest.mark.parametrize("version", [6, 8])
def test_decimals_are_widened_in_tables_of_version_9_only(version):
    table = pa.schema([("d", pa.decimal128(10, 2))])
    wider = [("d", pa.decimal128(12, 2))]

    assert pa.schema(wider) == evolved(table, wider).columns
    with pytest.raises(RowsError, match="does not widen decimals"):
        evolved(table, wider, table_version=version)
    assert table == evolved(table, [("d", pa.decimal128(9, 2))], table_version=version).columns


def test_a_required_column_that_rows_have_not_becomes_nullable_when_they_are_filled():
    table = pa.schema([pa.field("id", TEXT, nullable=False), pa.field("n", INT, nullable=False)])
    rows = pa.schema([pa.field("id", TEXT, nullable=False)])
    id_, n = json.loads(evolved(table, rows, fills_missing=True).avro)["fields"]

    assert {"name": "id", "type": "string"} == id_
    assert {"name": "n", "type": ["null", "int"], "default": None} == n
