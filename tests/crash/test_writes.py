"""Writes of rows, as whole runs: what is in the table afterwards, and what nobody may see."""

from __future__ import annotations

import pytest

from reconciler.writer.asked import Way
from tests.holding import spec_of
from tests.written import Runs, rows


@pytest.fixture(params=[6, 8, 9])
def it(request, tmp_path):
    return Runs(spec_of(tmp_path, version=request.param))


def test_the_first_write_makes_the_table(it):
    done = it.write(rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    assert ("completed", 2, 2) == (done.how, done.files, done.totals.inserts)
    assert [(1, "a", 1, "one"), (2, "b", 1, "two")] == it.rows()


def test_rows_are_changed_where_they_are_and_others_added(it):
    it.write(rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    done = it.write(rows((1, "a", 2, "ONE"), (3, "a", 1, "three")))

    assert (1, 1) == (done.totals.updates, done.totals.inserts)
    assert (1, 0) == (done.filled, done.begun)
    assert [(1, "a", 2, "ONE"), (2, "b", 1, "two"), (3, "a", 1, "three")] == it.rows()


def test_what_is_older_than_the_row_that_is_there_changes_nothing(it):
    it.write(rows((1, "a", 5, "one")))
    it.write(rows((1, "a", 4, "older")))

    assert [(1, "a", 5, "one")] == it.rows()


def test_rows_are_deleted_by_their_keys(it):
    it.write(rows((1, "a", 1, "one"), (2, "a", 1, "two")))

    done = it.write(rows((1, "a", 9, None), (7, "a", 9, None)), Way.DELETE)

    assert (1, 1) == (done.totals.deletes, done.totals.idle)
    assert [(2, "a", 1, "two")] == it.rows()


def test_partitions_are_overwritten_where_rows_come(it):
    it.write(rows((1, "a", 1, "one"), (2, "b", 1, "two")))

    done = it.write(rows((5, "a", 1, "five")), Way.INSERT_OVERWRITE)

    assert 1 == done.replaced
    assert [(2, "b", 1, "two"), (5, "a", 1, "five")] == it.rows()


def test_the_whole_table_is_overwritten(it):
    it.write(rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(rows((5, "c", 1, "five")), Way.INSERT_OVERWRITE_TABLE)

    assert [(5, "c", 1, "five")] == it.rows()


def test_partitions_are_deleted(it):
    it.write(rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    it.write(rows(), Way.DELETE_PARTITION, partitions=["p=a"])

    assert [(2, "b", 1, "two")] == it.rows()
