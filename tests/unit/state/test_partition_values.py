"""What the names of partition folders say about the rows in them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.table.properties import (
    TableProperties,
    compute_checksum,
    format_java_properties,
)
from reconciler.state.partition_values import read_partition_columns

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
PLAIN = {"hoodie.datasource.write.hive_style_partitioning": "false"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}


def properties(fields, **more):
    raw = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.table.partition.fields": fields,
        **more,
    }
    raw["hoodie.table.checksum"] = str(compute_checksum(raw))
    return TableProperties.parse(format_java_properties(raw), "hoodie.properties")


TEXT = (("p", pa.string()),)


def values(paths, *, fields="p", schema=TEXT, **said):
    """Column -> values by folder; None where rows have their file's own."""
    known = pa.schema([pa.field("id", pa.string()), *(pa.field(*column) for column in schema)])
    found, columns = read_partition_columns(paths, known, properties(fields, **said))
    assert [column.type for column in columns] == found.types
    return {
        name: column.to_pylist() for name, column in zip(found.names, columns, strict=True)
    } or None


def typed(kind, *texts):
    return values(list(texts), schema=[("p", kind)], **PLAIN)


def test_a_folder_is_its_value():

    assert {"p": ["a", "b c", "é"]} == values(["a", "b c", "é"], **PLAIN)


def test_a_hive_style_folder_names_its_column():

    assert {"p": ["a", "b=c"]} == values(["p=a", "p=b=c"], **HIVE)


def test_an_equals_sign_is_part_of_a_value_that_is_not_hive_style():

    assert {"p": ["x=y", "p=1"]} == values(["x=y", "p=1"], **PLAIN)


def test_a_table_that_does_not_say_its_style_shows_it_in_all_its_folders():

    assert {"p": ["a", "b"]} == values(["p=a", "p=b"])
    assert {"p": ["p=a", "b"]} == values(["p=a", "b"])


def test_a_hive_style_table_with_a_folder_of_another_name_leaves_its_files_the_word():

    assert values(["p=a", "q=b"], **HIVE) is None


def test_percent_signs_are_escapes_only_where_the_table_escapes():

    assert {"p": ["a/b", "50%", "a%2Fb"]} == values(["a%2Fb", "50%", "a%252Fb"], **PLAIN, **ENCODED)
    assert {"p": ["a%2Fb"]} == values(["a%2Fb"], **PLAIN)


def test_the_folder_of_no_value_is_null():

    assert {"p": [None, "a"]} == values(["__HIVE_DEFAULT_PARTITION__", "a"], **PLAIN)
    assert {"p": [None]} == values(["p=__HIVE_DEFAULT_PARTITION__"], **HIVE)


def test_several_levels_are_several_columns_in_the_order_of_the_table():
    schema = [("q", pa.int32()), ("p", pa.string())]
    found = values(["a/1", "b/__HIVE_DEFAULT_PARTITION__"], fields="p,q", schema=schema, **PLAIN)

    assert {"q": [1, None], "p": ["a", "b"]} == found
    assert ["q", "p"] == list(found)


def test_a_value_with_a_slash_leaves_the_files_the_word():

    assert values(["2024/01/02"], **PLAIN) is None
    assert values(["p=a/b", "p=c"], **HIVE) is None
    two = [("p", pa.string()), ("q", pa.string())]
    assert values(["a/b/q", "a/q"], fields="p,q", schema=two, **PLAIN) is None


def test_values_take_the_type_of_their_column():

    assert {"p": [7, -3, 0]} == typed(pa.int32(), "7", "-3", "0")
    assert {"p": [9_000_000_000]} == typed(pa.int64(), "9000000000")
    assert {"p": [True, False]} == typed(pa.bool_(), "true", "false")
    assert {"p": [date(2024, 1, 2)]} == typed(pa.date32(), "2024-01-02")
    assert {"p": [1.5, 1e20, float("inf")]} == typed(pa.float64(), "1.5", "1.0E20", "Infinity")
    assert {"p": [Decimal("1.50")]} == typed(pa.decimal128(10, 2), "1.50")
    assert {"p": [Decimal("1000.00")]} == typed(pa.decimal128(10, 2), "1E+3")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int32(), "07"),
        (pa.int32(), "4294967296"),
        (pa.int32(), "7.0"),
        (pa.bool_(), "yes"),
        (pa.date32(), "19724"),
        (pa.date32(), "2024-13-01"),
        (pa.decimal128(10, 2), "1.505"),
        (pa.decimal128(3, 2), "10.00"),
        (pa.decimal128(3, 2), "NaN"),
        (pa.timestamp("us", "UTC"), "1704164645000000"),
        (pa.binary(), "a"),
    ],
)
def test_a_name_that_does_not_say_a_value_of_the_type_leaves_the_files_the_word(kind, text):

    assert typed(kind, text) is None


def test_a_column_whose_folders_fail_does_not_take_the_others_with_it():
    schema = [("p", pa.string()), ("q", pa.date32())]

    assert {"p": ["a"]} == values(["a/19724"], fields="p,q", schema=schema, **PLAIN)


def test_folders_of_formatted_times_leave_the_files_the_word():
    timed = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}

    assert values(["2024-01-02"], **PLAIN, **timed) is None
    assert (
        values(["2024-01-02"], **PLAIN, **{"hoodie.table.keygenerator.type": "TIMESTAMP"}) is None
    )


def test_of_a_custom_key_generator_the_simple_fields_are_known():
    schema = [("p", pa.string()), ("q", pa.string())]
    custom = {"hoodie.table.keygenerator.type": "CUSTOM"}

    typed_fields = {"fields": "p:SIMPLE,q:TIMESTAMP", "schema": schema}
    assert {"p": ["a"]} == values(["a/2024"], **typed_fields, **PLAIN, **custom)
    assert values(["a/2024"], fields="p,q", schema=schema, **PLAIN, **custom) is None


def test_a_field_that_is_no_column_is_left_out():

    assert values(["a"], fields="s.p", **PLAIN) is None


def test_a_table_without_partitions_or_without_rows_has_no_columns():

    assert values([""], fields="") is None
    assert values([], **HIVE) is None


def test_dropped_columns_come_from_the_folder_whatever_it_looks_like():

    assert {"p": ["a"]} == values(["p=a"], **HIVE, **DROPPED)
    assert {"p": ["2024/01/02"]} == values(["2024/01/02"], **PLAIN, **DROPPED)
    assert {"p": ["2024/01/02"]} == values(["p=2024/01/02"], **HIVE, **DROPPED)


def test_dropped_columns_that_no_folder_says_are_refused_by_name():
    two = [("p", pa.string()), ("q", pa.string())]

    with pytest.raises(UnsupportedError, match=r"a/b/q: the files of this partition do not hold"):
        values(["a/q", "a/b/q"], fields="p,q", schema=two, **PLAIN, **DROPPED)
    with pytest.raises(UnsupportedError, match=r"do not hold partition column p, .* type date32"):
        values(["19724"], schema=[("p", pa.date32())], **PLAIN, **DROPPED)
