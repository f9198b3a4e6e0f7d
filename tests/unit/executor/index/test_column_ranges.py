"""What an entry says of a file: what is proven, and where nothing is, what no value is beyond."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.executor.index.column_ranges import make_file_ranges, make_unknown_ranges
from reconciler.hudi.metadata.bound_encoding import find_bound_encoding
from reconciler.index.footers import index_footers
from tests.unit.index.footer_samples import write_footer

INF = float("inf")
NAN = float("nan")


def make_entry(array, *, version=9, **how):
    """Least, greatest, nulls, values of a file with one column."""
    return entry_of(write_footer(pa.table({"x": array}), **how), array.type, version=version)


def entry_of(footer, kind, *, column="x", version=9):
    schema = pa.schema([(column, kind)])
    index = index_footers([("", "f.parquet", 1, footer)], [column], schema)
    kept = find_bound_encoding(kind, version)
    (file,) = make_file_ranges(index, {column: kept})
    (found,) = file.ranges
    return (found.least, found.greatest, found.nulls, found.values)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([3, None, 1], pa.int64()), (1, 3, 1, 3)),
        (pa.array([True, False]), (False, True, 0, 2)),
        (pa.array(["b", "a"]), ("a", "b", 0, 2)),
        (pa.array([Decimal("1.25"), Decimal("-2.00")]), (Decimal("-2.00"), Decimal("1.25"), 0, 2)),
        (pa.array([date(2020, 1, 2)]), (18263, 18263, 0, 1)),
        (
            pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
            (1_000_000, 1_000_000, 0, 1),
        ),
        (pa.array([None, None], pa.int64()), (None, None, 2, 2)),
        (pa.array([], pa.int64()), (None, None, 0, 0)),
    ],
)
def test_what_is_proven(array, expected):
    assert expected == make_entry(array)


def test_where_a_float_may_be_nan_there_is_no_greatest():
    assert (1.0, INF, 0, 2) == make_entry(pa.array([1.0, NAN]))
    assert (-INF, INF, 0, 1) == make_entry(pa.array([NAN]))


def test_old_days_have_a_year_before_the_first():
    assert (-719_528, 18_263, 0, 2) == make_entry(pa.array([date(900, 1, 1), date(2020, 1, 2)]))


def test_text_without_statistics_lies_between_the_first_and_the_last():
    least, greatest, nulls, values = make_entry(pa.array(["q", None]), write_statistics=False)

    assert ("", "\U0010ffff" * 16, 1, 2) == (least, greatest, nulls, values)


def test_a_column_that_a_file_has_not_is_null_in_all_rows():
    footer = write_footer(pa.table({"y": [1, 2, 3]}))

    assert (None, None, 3, 3) == entry_of(footer, pa.int64())


def test_a_file_that_cannot_be_read_may_hold_anything():
    assert (-(1 << 63), (1 << 63) - 1, 1, 2) == entry_of(None, pa.int64())


def test_a_log_file_may_hold_anything():
    kept = {"n": find_bound_encoding(pa.int32(), 9), "b": find_bound_encoding(pa.bool_(), 9)}
    found = make_unknown_ranges("p=1", ".f.log", kept)

    assert ("p=1", ".f.log", ["n", "b"]) == (
        found.partition,
        found.name,
        [one.column for one in found.ranges],
    )
    assert [(-(1 << 31), (1 << 31) - 1, 1, 2), (False, True, 1, 2)] == [
        (one.least, one.greatest, one.nulls, one.values) for one in found.ranges
    ]


def test_files_come_with_their_partitions():
    footer = write_footer(pa.table({"x": [1]}))
    files = [("b", "2.parquet", 9, footer), ("a", "1.parquet", 9, footer)]
    index = index_footers(files, ["x"], pa.schema([("x", pa.int64())]))

    assert [("a", "1.parquet"), ("b", "2.parquet")] == [
        (file.partition, file.name)
        for file in make_file_ranges(index, {"x": find_bound_encoding(pa.int64(), 9)})
    ]
