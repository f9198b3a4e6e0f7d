"""Statistics from footers: types, nulls, row groups, files older than the table."""

from __future__ import annotations

import gc
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import UnsupportedError
from reconciler.index.codec import Provenance, decode_index, encode_index
from reconciler.index.footers import find_index_types, index_footers
from reconciler.index.parquet_kinds import INT64, ParquetKind, convert_bounds
from reconciler.index.parquet_writers import make_nan_free_pair
from tests.unit.index.footer_samples import index_facts, read_column_stats, read_facts, write_footer

US = pa.timestamp("us")
UTC_US = pa.timestamp("us", tz="UTC")
JAVA = "parquet-mr version 1.13.1"


@pytest.mark.parametrize(
    ("array", "least", "greatest"),
    [
        (pa.array([3, None, -1]), -1, 3),
        (pa.array([-128, 127], pa.int8()), -128, 127),
        (pa.array([True, False]), False, True),
        (pa.array([1.5, -2.5]), -2.5, 1.5),
        (pa.array([1.5, -2.5], pa.float32()), -2.5, 1.5),
        (pa.array(["z", "\uffff", "\U0001f600"]), "z", "\U0001f600"),
        (pa.array([b"\xff", b"\x00"]), b"\x00", b"\xff"),
        (pa.array([b"ab", b"aa"], pa.binary(2)), b"aa", b"ab"),
        (pa.array([date(1969, 12, 31)]), date(1969, 12, 31), date(1969, 12, 31)),
        (pa.array([Decimal("1.25"), Decimal("-3.50")]), Decimal("-3.50"), Decimal("1.25")),
        (
            pa.array([Decimal(-1), Decimal("9" * 38)], pa.decimal128(38, 0)),
            Decimal(-1),
            Decimal("9" * 38),
        ),
        (pa.array([7], US), *[pa.scalar(7, US).as_py()] * 2),
        (pa.array([7], UTC_US), *[datetime(1970, 1, 1, 0, 0, 0, 7, UTC)] * 2),
        (pa.array([-7], pa.timestamp("ms")), *[pa.scalar(-7000, US).as_py()] * 2),
    ],
    ids=str,
)
def test_bounds_of_every_type(array, least, greatest):
    stats = read_column_stats(array)

    assert (least, greatest, array.null_count, len(array)) == read_facts(stats)
    assert [True] == stats.is_exact_least.tolist() == stats.is_exact_greatest.tolist()


def test_nanoseconds_are_rounded_outwards():
    stats = read_column_stats(pa.array([-1500, 1500, 2500], pa.timestamp("ns")))

    assert [-2, 3] == [stats.least[0].value, stats.greatest[0].value]
    assert [False] == stats.is_exact_least.tolist()


def test_zeros_of_floats_are_rounded_outwards():
    for physical, wanted in (("DOUBLE", pa.float64()), ("FLOAT", pa.float32())):
        kind = ParquetKind(physical=physical, logical="NONE")
        bounds = convert_bounds(kind, wanted, [0.0, -1.0, None], [-0.0, -0.0, 0.0])

        assert "[-0.0, -1.0, None]" == str(bounds.least.to_pylist())
        assert "[0.0, 0.0, 0.0]" == str(bounds.greatest.to_pylist())
        assert [True, True, False] == bounds.is_exact_least.tolist()


def test_integer_zero_read_as_a_float_is_rounded_outwards():
    stats = read_column_stats(pa.array([0, 0]), pa.float64())

    assert ("-0.0", "0.0") == tuple(str(side) for side in read_facts(stats)[:2])


def test_bounds_in_the_wrong_order_are_dropped():
    bounds = convert_bounds(INT64, pa.int64(), [1, 5], [2, 4])

    assert ([1, None], [2, None]) == (bounds.least.to_pylist(), bounds.greatest.to_pylist())


def test_column_of_nulls_is_all_null_but_column_without_statistics_is_not():
    nothing = read_column_stats(pa.array([None, None], pa.int32()))
    unsaid = read_column_stats(pa.array([1, 2]), write_statistics=False)
    long = read_column_stats(pa.array(["x" * 5000]))

    assert (None, None, 2, 2) == read_facts(nothing)
    assert (None, None, -1, 2) == read_facts(unsaid)
    assert (None, None, 0, 1) == read_facts(long)
    assert [[True], [False], [False]] == [s.is_all_null.tolist() for s in (nothing, unsaid, long)]


def test_file_without_rows_holds_no_value():
    stats = read_column_stats(pa.array([], pa.float64()))

    assert (None, None, 0, 0) == read_facts(stats)
    assert [True] == stats.is_all_null.tolist() == stats.is_nan_free.tolist()


def test_int96_times_and_unsigned_numbers_have_no_bounds():
    old = read_column_stats(pa.array([7, 9], US), use_deprecated_int96_timestamps=True)
    unsigned = read_column_stats(pa.array([1, 2**32 - 1], pa.uint32()), pa.int64())

    assert (None, None, -1, 2) == read_facts(old)
    assert (None, None, 0, 2) == read_facts(unsigned)


def test_row_groups_are_combined_per_file():
    stats = read_column_stats(pa.array([5, 9, None, None, 1, 7]), row_group_size=2)

    assert (1, 9, 2, 6) == read_facts(stats)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "b", "x" * 5000, "c"]),
        pa.array(["x" * 5000, "c", "a", "b"]),
    ],
)
def test_row_group_without_bounds_makes_the_bounds_of_the_file_unknown(array):
    assert (None, None, 0, 4) == read_facts(read_column_stats(array, row_group_size=2))


def test_each_file_has_its_own_row_groups():
    schema = pa.schema([("x", pa.string())])
    one = write_footer(pa.table({"x": ["b", "a", "c"]}), row_group_size=1)
    two = write_footer(pa.table({"x": ["z", None]}), row_group_size=1)
    none = write_footer(pa.table({"x": pa.array([], pa.string())}))
    found = index_footers([("", "a", 1, one), ("", "b", 1, two), ("", "c", 1, none)], ["x"], schema)
    stats = found.columns["x"]

    assert [("a", "c", 0, 3), ("z", "z", 1, 2), (None, None, 0, 0)] == [
        read_facts(stats, row) for row in range(3)
    ]


def test_struct_fields_are_columns_and_a_null_struct_has_null_fields():
    table = pa.table({"st": [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]})
    footer = write_footer(table, use_dictionary=False)
    found = index_footers([("", "f", 1, footer)], ["st.a", "st.b.c"], table.schema)

    assert (1, 1, 2, 3) == read_facts(found.columns["st.a"])
    assert ("x", "x", 2, 3) == read_facts(found.columns["st.b.c"])


def test_dictionary_in_a_struct_hides_null_structs():
    """pyarrow counts only the nulls of the dictionary's own rows."""
    kind = pa.struct([("a", pa.dictionary(pa.int32(), pa.string())), ("n", pa.int64())])
    some, none = ({"a": "x", "n": 1}, {"a": None, "n": None})

    def of(values, column, **options):
        table = pa.table({"st": pa.array(values, kind)})
        schema = pa.schema([("st", pa.struct([("a", pa.string()), ("n", pa.int64())]))])
        file = ("", "f", 1, write_footer(table, **options))
        return read_facts(index_footers([file], [column], schema).columns[column])[2:]

    assert (-1, 2) == of([some, None], "st.a") == of([none, None], "st.a")
    assert (1, 2) == of([some, None], "st.a", use_dictionary=False)
    assert (1, 2) == of([some, None], "st.n", use_dictionary=["st.a"])
    assert (2, 2) == of([none, none], "st.a", use_dictionary=False)


def test_column_missing_from_an_older_file_is_null():
    schema = pa.schema(
        [("a", pa.int64()), ("n", pa.int32()), ("st", pa.struct([("x", pa.string())]))]
    )
    footer = write_footer(pa.table({"a": [1, 2]}))
    found = index_footers([("", "f", 1, footer)], ["a", "n", "st.x"], schema)

    assert (None, None, 2, 2) == read_facts(found.columns["n"]) == read_facts(found.columns["st.x"])


@pytest.mark.parametrize(
    ("inside", "column", "schema"),
    [
        ({"ID": [1]}, "id", [("id", pa.int64())]),
        ({"st": [{"A": 1}]}, "st.a", [("st", pa.struct([("a", pa.int64())]))]),
        ({"ST": [{"a": 1}]}, "st.a", [("st", pa.struct([("a", pa.int64())]))]),
    ],
)
def test_column_in_other_case_in_an_older_file_is_unknown(inside, column, schema):
    """Spark reads it anyway, because it ignores case by default."""
    found = index_footers(
        [("", "f", 1, write_footer(pa.table(inside)))], [column], pa.schema(schema)
    )

    assert (None, None, -1, 1) == read_facts(found.columns[column])


def test_supplied_column_missing_from_a_file_is_unknown():
    schema = pa.schema([("a", pa.int64()), ("p", pa.string())])
    footer = write_footer(pa.table({"a": [1, 2]}))
    found = index_footers([("p=x", "f", 1, footer)], ["p"], schema, supplied={"p"})

    assert (None, None, -1, 2) == read_facts(found.columns["p"])


@pytest.mark.parametrize(
    ("inside", "schema"),
    [
        ({"x": [{"a": 1}]}, [("x", pa.int64())]),
        ({"x": [[1]]}, [("x", pa.int64())]),
        ({"x": [1]}, [("x", pa.struct([("a", pa.int64())]))]),
    ],
)
def test_column_with_another_shape_in_an_older_file_is_unknown(inside, schema):
    column = "x.a" if pa.types.is_struct(schema[0][1]) else "x"
    found = index_footers(
        [("", "f", 1, write_footer(pa.table(inside)))], [column], pa.schema(schema)
    )

    assert (None, None, -1, 1) == read_facts(found.columns[column])


@pytest.mark.parametrize(
    ("array", "kind", "least", "greatest"),
    [
        (pa.array([1, 2], pa.int32()), pa.int64(), 1, 2),
        (pa.array([1, 2], pa.int32()), pa.float64(), 1.0, 2.0),
        (pa.array([b"a", b"b"]), pa.string(), "a", "b"),
        (pa.array(["a", "b"]), pa.binary(), b"a", b"b"),
        (
            pa.array([Decimal("1.5")], pa.decimal128(4, 1)),
            pa.decimal128(9, 3),
            Decimal("1.500"),
            Decimal("1.500"),
        ),
        # text has another order, and a smaller type may change a value
        (pa.array([1, 20], pa.int32()), pa.string(), None, None),
        (pa.array([1.5]), pa.float32(), None, None),
        (pa.array([Decimal("1.55")]), pa.decimal128(9, 1), None, None),
        (pa.array([Decimal("1.50")]), pa.decimal128(9, 1), None, None),
        (pa.array([2**40]), pa.int32(), None, None),
        (pa.array([date(2026, 1, 1)]), pa.string(), None, None),
        (pa.array([7], US), UTC_US, None, None),
        (pa.array([b"\xff"]), pa.string(), None, None),
    ],
    ids=str,
)
def test_bounds_widen_with_the_column_type_or_are_unknown(array, kind, least, greatest):
    assert (least, greatest, 0, len(array)) == read_facts(read_column_stats(array, kind))


def test_invalid_text_affects_no_other_file():
    schema = pa.schema([("x", pa.string())])
    footers = [write_footer(pa.table({"x": pa.array([value])})) for value in (b"\xff", b"ok")]
    found = index_footers(
        [("", n, 1, f) for n, f in zip("ab", footers, strict=True)], ["x"], schema
    )

    assert [None, "ok"] == found.columns["x"].least.to_pylist()


def test_float_read_as_a_double_lies_within_bounds_for_both_conversions():
    stats = read_column_stats(pa.array([0.1, 0.3], pa.float32()), pa.float64())
    least, greatest, *_ = read_facts(stats)
    bits = pa.array([0.1, 0.3], pa.float32()).cast(pa.float64()).to_pylist()

    assert least <= min(0.1, *bits)
    assert max(0.3, *bits) <= greatest
    assert [False] == stats.is_exact_least.tolist()


def test_integer_without_exact_float_is_rounded_outwards():
    stats = read_column_stats(pa.array([-(2**53) - 1, 2**53 + 1]), pa.float64())
    least, greatest, *_ = read_facts(stats)

    assert least < -(2**53) - 1
    assert greatest > 2**53 + 1


OLD_DAY, OLD_TIME = date(1500, 1, 1), datetime(1850, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("old", [pa.array([OLD_DAY]), pa.array([OLD_TIME], UTC_US)])
def test_old_dates_are_known_only_if_the_file_names_its_calendar(old):
    def of(pairs):
        table = pa.table({"x": old}).replace_schema_metadata(pairs)
        found = index_footers([("", "f", 1, write_footer(table))], ["x"], table.schema)
        return read_facts(found.columns["x"])[:2]

    spark, legacy = "org.apache.spark.version", "org.apache.spark.legacyDateTime"

    assert (None, None) == of({})
    assert (None, None) == of({spark: "2.4.8"})
    assert (None, None) == of({spark: "3.5.0", legacy: ""})
    assert (old[0].as_py(), old[0].as_py()) == of({spark: "3.5.0"})


def test_newest_date_is_known_among_old_and_new_ones():
    new = date(2026, 1, 1)

    assert (None, new, 0, 2) == read_facts(read_column_stats(pa.array([OLD_DAY, new])))


def test_files_are_sorted_and_unreadable_ones_are_unknown():
    whole = write_footer(pa.table({"x": [1]}))
    found = index_footers(
        [
            ("p=2", "a", 5, whole),
            ("p=1", "b", 6, None),
            ("p=1", "a", 7, whole[:-20] + whole[-8:]),
            ("p=1", "c", 8, b"PAR1"),
            ("p=1", "d", 9, whole.replace(b"parquet-cpp", b"parquet\xffcpp")),
        ],
        ["x"],
        pa.schema([("x", pa.int64())]),
    )

    assert {
        "partition": ["p=1", "p=1", "p=1", "p=1", "p=2"],
        "name": ["a", "b", "c", "d", "a"],
        "size": [7, 6, 8, 9, 5],
        "rows": [-1, -1, -1, -1, 1],
        "columns": {
            "x": (
                "int64",
                "[None, None, None, None, 1]",
                "[None, None, None, None, 1]",
                [-1, -1, -1, -1, 0],
                [-1, -1, -1, -1, 1],
                [False, False, False, False, True],
                [False, False, False, False, True],
                [True, True, True, True, True],
            )
        },
    } == index_facts(found)


COUNTED = write_footer(pa.table({"x": [7, None, 9]}), store_schema=False)


def index_both_ways(footer):
    """Return the index of a file with a column x, by its footer's bytes and by pyarrow."""
    for given in (footer, pq.read_metadata(pa.BufferReader(footer))):
        yield index_footers([("", "f", 1, given)], ["x"], pa.schema([("x", pa.int64())]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\x16\x02(", b"\x16\x06("),
        (b"\x16\x02(", b"\x16\x08("),
        (b"\x16\x02(", b"\x16\x05("),
        (b"\x15\x02\x16\x06", b"\x15\x02\x16\x02"),
        (b"\x15\x02\x16\x06", b"\x15\x02\x16\x08"),
    ],
    ids=["all null, with bounds", "too many nulls", "less than none", "few values", "many values"],
)
def test_contradictory_counts_are_damage(old, new):
    assert 1 == COUNTED.count(old)
    for found in index_both_ways(COUNTED.replace(old, new)):
        again, _ = decode_index(
            encode_index(found, Provenance(table="t", instant="", tool="")), "index"
        )

        assert (
            (None, None, -1, 3) == read_facts(found.columns["x"]) == read_facts(again.columns["x"])
        )
        assert [3] == found.rows.tolist()


def test_row_count_that_differs_from_the_row_groups_is_damage():
    rows = b"\x16\x06\x19\x1c\x19"
    assert 1 == COUNTED.count(rows)
    for found in index_both_ways(COUNTED.replace(rows, b"\x16\x08\x19\x1c\x19")):
        assert [-1] == found.rows.tolist()
        assert (None, None, -1, -1) == read_facts(found.columns["x"])


def test_columns_of_the_same_name_in_two_structs_are_distinguished():
    kind = pa.struct([("a", pa.int64())])
    schema = pa.schema([("s", kind), ("t", kind)])
    one = pa.table({"s": [{"a": 1}], "t": [{"a": 2}]}, schema=schema)
    two = one.rename_columns(["t", "s"])
    files = [
        (name, write_footer(of, use_dictionary=False)) for name, of in (("1", one), ("2", two))
    ]
    files = [("", name, 1, footer) for name, footer in files]
    found = index_footers(files, ["s.a"], schema).columns["s.a"]

    assert (1, 1, 0, 1) == read_facts(found, 0)
    assert read_facts(found, 1) in {(2, 2, 0, 1), (None, None, -1, 1)}


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("nobody", "the table has no such column"),
        ("st", "it is a struct; name its fields: st.a"),
        ("deep", "it is a struct; name its fields: deep.in.b, deep.c"),
        ("deep.in", "it is a struct; name its fields: deep.in.b"),
        ("w", "it is a struct; name its fields: w.f0, w.f1, w.f2, w.f3, w.f4 (and 3 more)"),
        ("odd", "it is of type struct<"),
        ("st.nobody", "the table has no such column"),
        ("l", "it is of type list"),
    ],
)
def test_column_without_bounds_is_refused_by_name(column, why):
    inner = pa.struct([("b", pa.int8()), ("m", pa.list_(pa.int8()))])
    schema = pa.schema(
        {
            "st": pa.struct([("a", pa.int8())]),
            "l": pa.list_(pa.int8()),
            "deep": pa.struct([("in", inner), ("c", pa.string())]),
            "w": pa.struct([(f"f{nth}", pa.int8()) for nth in range(8)]),
            "odd": pa.struct([("l", pa.list_(pa.int8()))]),
        }
    )

    says = re.escape(f"column {column} cannot be indexed: {why}")
    with pytest.raises(UnsupportedError, match=says):
        find_index_types([column], schema)


def test_nan_free_entry_counts_only_for_the_file_it_names():
    def is_free(**pairs):
        table = pa.table({"x": [1.0], "y": [1.0]}).replace_schema_metadata(pairs)
        found = index_footers([("", "f.parquet", 1, write_footer(table))], ["x", "y"], table.schema)
        return [bool(stats.is_nan_free[0]) for stats in found.columns.values()]

    assert [True, False] == is_free(**make_nan_free_pair("f.parquet", ["x"]))
    assert [False, False] == is_free(**make_nan_free_pair("other.parquet", ["x"]))
    assert [False, False] == is_free(**{"reconciler.nan_free": "[]"})
    assert [False, False] == is_free()


def test_reading_a_footer_leaves_no_reference_cycle():
    """A footer holds a bloom filter: ten thousand of them would keep gigabytes in memory."""
    footer = write_footer(pa.table({"c": [1, 2]}))
    gc.collect()
    gc.disable()
    try:
        before = count_footers()
        index_footers([("", "f.parquet", 1, footer)], ["c"], pa.schema([("c", pa.int64())]))
        after = count_footers()
    finally:
        gc.enable()
    assert before == after


def count_footers():
    return sum(type(thing) is pq.FileMetaData for thing in gc.get_objects())
