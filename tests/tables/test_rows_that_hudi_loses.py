"""Filters for which Hudi's data skipping loses rows, on the very tables: our index keeps them all.

How many rows Hudi gave is what Hudi 0.15.0 and 1.2.0 answered on these files, both the same unless
a test says so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.index.footers import index_footers
from reconciler.index.may_match import may_match
from reconciler.index.predicates.parse import parse
from tests.trees import unpack

LYING = Path(__file__).parent / "lying"
COLUMNS = ("id", "s", "y", "f", "ls", "n", "g")

#: by file, six rows each: ids from 0 on, from 100 on, ...
WITH_NAN, ALL_NAN = set(range(100, 106)), set(range(200, 206))
LONG_TEXT = WITH_NAN


def files_of(folder):
    return sorted(
        path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts and path.is_file()
    )


class Table:
    """The rows of each base file, and the index over them."""

    def __init__(self, folder, columns):
        paths = files_of(folder)
        self.rows = [pq.read_table(path) for path in paths]
        widest = max((table.schema for table in self.rows), key=len)
        self.schema = widest.remove_metadata()
        files = [("", path.name, path.stat().st_size, pq.read_metadata(path)) for path in paths]
        self.index = index_footers(files, columns, self.schema)
        assert [path.name for path in paths] == self.index.name.to_pylist()

    def found(self, where, matches, *, without=()):
        """Ids of the rows that match in the files that are read; ``without`` is not indexed."""
        columns = {name: one for name, one in self.index.columns.items() if name not in without}
        index = replace(self.index, columns=columns)
        kept = may_match(parse(where), index, schema=self.schema, zone="UTC")
        tables = [rows for rows, is_kept in zip(self.rows, kept, strict=True) if is_kept]
        return {row["id"] for table in tables for row in table.to_pylist() if matches(row)}


@pytest.fixture(scope="module", params=["0.15.0", "1.2.0"])
def table(request, tmp_path_factory):
    folder = unpack(LYING / f"statistics_{request.param}.zip", tmp_path_factory.mktemp("lying"))
    return Table(folder, COLUMNS)


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    """Column c was added after the first file; rows 0 to 4 are older, 10 to 14 newer."""
    folder = unpack(LYING / "evolution_1.2.0.zip", tmp_path_factory.mktemp("evolved"))
    return Table(folder, ["a", "c"])


def test_text_that_begins_with_a_prefix_is_found_though_bounds_are_longer(table):
    found = table.found("s LIKE 'abc%'", lambda row: (row["s"] or "").startswith("abc"))

    assert {*range(6), 100, 102, 104, *range(500, 506)} == found  # Hudi: 3 of 15


def test_text_that_begins_with_a_shorter_prefix_is_found(table):
    found = table.found("s LIKE 'ab%'", lambda row: (row["s"] or "").startswith("ab"))

    expected = {*range(6), 100, 102, 104, 301, 303, 305, *range(400, 406), *range(500, 506)}
    assert expected == found  # Hudi: 3 of 24


def test_numbers_beside_nan_are_found(table):
    found = table.found("y = 1.0", lambda row: row["y"] == 1.0)

    assert {0, 3, 100, 102, 104} == found  # Hudi: 2 of 5


def test_nan_is_found_above_every_number(table):
    found = table.found("y > 1.5", lambda row: row["y"] > 1.5 or math.isnan(row["y"]))

    expected = {1, 2, 4, 5, 101, 103, 105, *ALL_NAN, 300, 302, 304}
    assert expected == found  # Hudi: 7 of 16


def test_nan_is_found_above_every_float(table):
    found = table.found("f > 1.5", lambda row: row["f"] > 1.5 or math.isnan(row["f"]))

    expected = {1, 2, 4, 5, 101, 103, 105, *ALL_NAN, 300, 302, 304}
    assert expected == found  # Hudi: 7 of 16


def test_nan_itself_is_found(table):
    found = table.found("y = cast('NaN' as double)", lambda row: math.isnan(row["y"]))

    assert {101, 103, 105, *ALL_NAN} == found  # Hudi: none of 9


def test_nan_is_found_beyond_infinity(table):
    found = table.found("y > cast('Infinity' as double)", lambda row: math.isnan(row["y"]))

    assert {101, 103, 105, *ALL_NAN} == found  # Hudi: none of 9


def test_text_too_long_for_a_footer_is_found_by_its_beginning(table):
    found = table.found("ls LIKE 'qqq%'", lambda row: row["ls"].startswith("qqq"))

    assert found == LONG_TEXT  # Hudi: none of 6


def test_text_too_long_for_a_footer_is_greater_than_its_beginning(table):
    found = table.found("ls > 'q'", lambda row: row["ls"] > "q")

    assert set(range(600)) & found == found
    assert (30, LONG_TEXT) == (len(found), LONG_TEXT & found)  # Hudi: 24 of 30


def test_text_too_long_for_a_footer_is_not_null(table):
    found = table.found("ls IS NOT NULL", lambda row: row["ls"] is not None)

    assert (36, LONG_TEXT) == (len(found), LONG_TEXT & found)  # Hudi: 30 of 36


def test_text_too_long_for_a_footer_differs_from_short_text(table):
    found = table.found("ls != 'm'", lambda row: row["ls"] != "m")

    assert (30, LONG_TEXT) == (len(found), LONG_TEXT & found)  # Hudi: 24 of 30


@pytest.mark.parametrize(
    ("where", "expected"),
    [("n * -1 = -2", {1, 4}), ("n / -1 = -2", {1, 4})],
)
def test_numbers_are_found_by_what_a_negative_factor_makes_of_them(table, where, expected):
    assert expected == table.found(where, lambda row: row["n"] == 2)  # Hudi: none of 2


def test_numbers_are_found_beyond_what_a_negative_factor_makes_of_them(table):
    found = table.found("n * -1 <= -2", lambda row: row["n"] is not None and row["n"] >= 2)

    assert (26, {1, 4}) == (len(found), {1, 4} & found)  # Hudi: 24 of 26


def test_a_column_without_statistics_beside_one_with_them_loses_nothing(table):
    """Hudi 0.15.0 takes every column for indexed: 24 of 30; Hudi 1.2.0 is right."""
    found = table.found(
        "NOT(s LIKE 'abc%' AND g = 0)",
        lambda row: row["g"] != 0 or (row["s"] is not None and not row["s"].startswith("abc")),
        without=("g",),
    )

    assert (30, set(range(500, 506))) == (len(found), set(range(500, 506)) & found)


OLD_NULLS = {*range(5), 10}


def test_rows_from_before_a_column_are_null_in_it_beside_a_known_column(evolved):
    where = "c IS NULL AND a >= 0"

    assert evolved.found(where, lambda row: row.get("c") is None) == OLD_NULLS  # Hudi: 1 of 6


def test_rows_from_before_a_column_are_the_same_as_null_in_it(evolved):
    where = "c <=> NULL AND a = 2"
    found = evolved.found(where, lambda row: row.get("c") is None and row["a"] == 2)

    assert {2} == found  # Hudi: none


def test_rows_from_before_a_column_are_found_by_an_alternative(evolved):
    where = "(c IS NULL OR c > 2) AND a >= 0"
    found = evolved.found(where, lambda row: row.get("c") is None or row["c"] > 2)

    assert found == OLD_NULLS | {13, 14}  # Hudi: 3 of 8
