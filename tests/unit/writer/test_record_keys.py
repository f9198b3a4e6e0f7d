from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.errors import RowsError, UnsupportedError
from reconciler.writer.record_keys import KeyRule, make_record_keys
from tests.unit.writer.tables import properties

COMPLEX = {"hoodie.table.keygenerator.type": "COMPLEX"}


def rows(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_a_key_of_one_column_is_its_text():
    rule = KeyRule.from_properties(properties())

    assert ["7", "-1"] == make_record_keys(rows(id=[7, -1]), rule).to_pylist()


def test_a_key_of_several_columns_carries_their_names():
    rule = KeyRule.from_properties(properties(keys="a,b"))

    assert ["a:7,b:x", "a:__null__,b:__empty__x"] == make_record_keys(
        rows(a=[7, None], b=["x", "__empty__x"]), rule
    ).to_pylist()


def test_a_field_of_a_struct_can_be_the_key():
    rule = KeyRule.from_properties(properties(keys="s.id"))

    assert ["x"] == make_record_keys(rows(s=[{"id": "x"}]), rule).to_pylist()


def test_a_key_that_is_no_text_is_refused():
    rule = KeyRule.from_properties(properties())
    binary = pa.array([b"x", b"\xff"])
    column = pa.Array.from_buffers(pa.string(), 2, binary.buffers())

    with pytest.raises(RowsError, match="column id: a value is not UTF-8"):
        make_record_keys(rows(id=column), rule)


def test_keys_of_dictionaries_are_those_of_their_values():
    column = pa.array(["x", "y", "x"]).dictionary_encode()

    assert ["x", "y", "x"] == make_record_keys(
        rows(id=column), KeyRule.from_properties(properties())
    ).to_pylist()


@pytest.mark.parametrize("absent", [None, ""])
def test_a_row_without_a_key_is_named(absent):
    with pytest.raises(RowsError, match=r"record key id: null or empty in 1 of 3 rows.*row 1"):
        make_record_keys(rows(id=["a", absent, "b"]), KeyRule.from_properties(properties()))


def test_a_row_is_without_a_key_when_all_its_parts_are_absent():
    rule = KeyRule.from_properties(properties(keys="a,b"))
    with pytest.raises(RowsError, match="record key a, b: null or empty in 1 of 2 rows"):
        make_record_keys(rows(a=["x", None], b=[None, ""]), rule)


def test_a_missing_key_column_is_named_with_those_that_are_there():
    with pytest.raises(RowsError, match=r"lack key column id; their columns are x, y"):
        make_record_keys(rows(x=[1], y=[2]), KeyRule.from_properties(properties()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.binary(), b"a"),
        (pa.list_(pa.int32()), [1]),
        (pa.struct([("a", pa.int32())]), {"a": 1}),
        (pa.timestamp("ms"), 1),
        (pa.uint32(), 1),
    ],
)
def test_a_type_that_hudi_spells_in_several_ways_is_refused_by_name(kind, value):
    with pytest.raises(
        UnsupportedError, match="column id: Hudi's writers spell keys and partitions of"
    ):
        make_record_keys(rows(id=pa.array([value], kind)), KeyRule.from_properties(properties()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.float32(), 1e7),
        (pa.float32(), 9.999e-4),
        (pa.float64(), 1e15),
        (pa.float64(), -1e-5),
    ],
)
def test_numbers_that_versions_of_java_spell_differently_are_refused(kind, value):
    with pytest.raises(RowsError, match=r"column id: .* in row 1 cannot be part of a key"):
        make_record_keys(
            rows(id=pa.array([1.0, value], kind)), KeyRule.from_properties(properties())
        )


def test_large_doubles_are_spelled_as_java_does():
    values = [1e7, 12345678.5, -123456789012345.0, 9007199254740.99, 2e12, float("-inf")]

    assert [
        "1.0E7",
        "1.23456785E7",
        "-1.23456789012345E14",
        "9.00719925474099E12",
        "2.0E12",
        "-Infinity",
    ] == make_record_keys(rows(id=values), KeyRule.from_properties(properties())).to_pylist()


def test_moments_of_tables_with_consistent_logical_timestamps_are_refused():
    said = {
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true",
    }
    rule = KeyRule.from_properties(properties(**said))
    assert ["5"] == make_record_keys(rows(id=[5]), rule).to_pylist()
    with pytest.raises(UnsupportedError, match=r"column id.*consistent\.logical"):
        make_record_keys(rows(id=pa.array([1], pa.timestamp("us", "UTC"))), rule)


@pytest.mark.parametrize("generator", ["TimestampBased", "Custom", "GlobalDelete", "com.acme.Own"])
def test_other_key_generators_are_refused_by_name(generator):
    said = {"hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{generator}KeyGenerator"}
    with pytest.raises(UnsupportedError, match=rf"table t:.*key generator .*{generator}"):
        KeyRule.from_properties(properties(version=6, **said))


def test_keys_that_a_writer_makes_up_are_refused():
    with pytest.raises(UnsupportedError, match=r"recordkey\.fields is empty"):
        KeyRule.from_properties(properties(keys=""))


@pytest.mark.parametrize(("version", "is_named"), [(6, False), (8, False), (9, True)])
def test_a_complex_key_of_one_column_is_spelled_as_the_tables_version_spells_it(version, is_named):
    rule = KeyRule.from_properties(properties(version=version, **COMPLEX))

    assert ["id:x" if is_named else "x"] == make_record_keys(rows(id=["x"]), rule).to_pylist()


@pytest.mark.parametrize(("written", "expected"), [(["id:a", "id:z"], "id:x"), (["a", "z"], "x")])
def test_keys_that_are_there_say_how_complex_ones_of_one_column_are_spelled(written, expected):
    rule = KeyRule.from_properties(properties(version=6, **COMPLEX), written)

    assert [expected] == make_record_keys(rows(id=["x"]), rule).to_pylist()


@pytest.mark.parametrize(("version", "written"), [(6, ["a", "id:b"]), (9, ["a", "b"])])
def test_keys_in_two_spellings_are_refused(version, written):
    with pytest.raises(UnsupportedError, match="id:VALUE and VALUE"):
        KeyRule.from_properties(properties(version=version, **COMPLEX), written)


@pytest.mark.parametrize("day", [-719_163, 2_932_897])
def test_a_day_that_java_spells_with_a_sign_is_refused(day):
    column = pa.array([0, day], pa.int32()).cast(pa.date32())
    with pytest.raises(RowsError, match="column id: a date outside the years"):
        make_record_keys(rows(id=column), KeyRule.from_properties(properties()))


@pytest.mark.parametrize(
    ("keys", "fields", "expected"), [("id", "p,q", "id:x"), ("id", "p", "x"), ("id", "", "x")]
)
def test_a_table_that_names_no_generator_has_the_one_that_its_fields_ask_for(
    keys, fields, expected
):
    rule = KeyRule.from_properties(properties(keys=keys, fields=fields))

    assert [expected] == make_record_keys(rows(id=["x"]), rule).to_pylist()
