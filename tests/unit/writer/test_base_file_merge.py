"""Merging an upsert's records into a base file: the result and position of every row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.merge.log_records import LogRecords
from reconciler.file_slices.merge.ordering import to_comparable
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.writer.base_file_merge import BaseFileMerge, FileCounts

KEY = "_hoodie_record_key"
SCHEMA = pa.schema([(KEY, pa.string()), ("ts", pa.int64()), ("x", pa.string())])
BY_TIME = MergeRules(ordering=("ts",))
LATEST = MergeRules(overwrites=True)


def batch(*rows):
    return pa.RecordBatch.from_pylist(
        [{KEY: key, "ts": ts, "x": x} for key, ts, x in rows], schema=SCHEMA
    )


def records(*rows, final=False):
    """Return records of (key, ts, x); x is None for a deletion."""
    kept = [(key, ts, x) for key, ts, x in rows if x is not None]
    numbers = iter(range(len(kept)))
    return LogRecords(
        keys=pa.array([key for key, _, _ in rows], pa.string()),
        row=np.array([-1 if x is None else next(numbers) for _, _, x in rows], np.int64),
        is_final=np.array([final and x is None for _, _, x in rows], np.bool_),
        ordering=(to_comparable(pa.array([ts for _, ts, _ in rows], pa.int64()), "ts"),),
        table=pa.Table.from_batches([batch(*kept)], SCHEMA),
    )


def merged(base, found, rules=BY_TIME):
    merging = BaseFileMerge(found, rules, SCHEMA)
    rows = [*merging.merge(base, "f.parquet"), *merging.remaining()]
    return [(r[KEY], r["ts"], r["x"]) for b in rows for r in b.to_pylist()], merging.counts


def test_a_newer_record_takes_the_place_of_its_row_and_new_ones_come_last():
    base = [batch(("a", 1, "a1"), ("b", 1, "b1"), ("c", 1, "c1"))]

    rows, counts = merged(base, records(("d", 1, "d1"), ("b", 2, "b2")))

    assert rows == [("a", 1, "a1"), ("b", 2, "b2"), ("c", 1, "c1"), ("d", 1, "d1")]
    assert counts == FileCounts(inserts=1, updates=1)


def test_of_equal_event_times_the_new_record_wins_and_an_older_one_loses():
    base = [batch(("a", 5, "old"), ("b", 5, "old"))]

    rows, counts = merged(base, records(("a", 5, "new"), ("b", 4, "late")))

    assert rows == [("a", 5, "new"), ("b", 5, "old")]
    assert counts == FileCounts(updates=1)


def test_the_later_write_wins_where_there_is_no_event_time():
    rows, _ = merged([batch(("a", 5, "old"))], records(("a", 1, "new")), LATEST)

    assert rows == [("a", 1, "new")]


def test_a_deletion_takes_its_row_out_and_one_of_an_absent_key_does_nothing():
    base = [batch(("a", 1, "a1"), ("b", 1, "b1"))]

    rows, counts = merged(base, records(("a", 2, None), ("z", 9, None)))

    assert rows == [("b", 1, "b1")]
    assert counts == FileCounts(deletes=1)


def test_a_deletion_without_event_time_ends_whatever_is_there():
    rows, _ = merged([batch(("a", 7, "a7"))], records(("a", 0, None), final=True))

    assert rows == []


def test_every_row_of_a_key_is_replaced():
    base = [batch(("a", 1, "first")), batch(("b", 1, "b1"), ("a", 1, "second"))]

    rows, counts = merged(base, records(("a", 2, "new")))

    assert rows == [("a", 2, "new"), ("b", 1, "b1"), ("a", 2, "new")]
    assert counts == FileCounts(updates=2)


def test_rows_of_no_new_record_are_the_same_batch():
    base = batch(("a", 1, "a1"))

    (found,) = BaseFileMerge(records(("b", 1, "b1")), BY_TIME, SCHEMA).merge([base], "f.parquet")

    assert found.equals(base)
    assert found.column(0).buffers()[2].address == base.column(0).buffers()[2].address


def test_no_records_leave_everything_as_it_is():
    assert merged([batch(("a", 1, "a1"))], records()) == ([("a", 1, "a1")], FileCounts())


def test_a_row_without_key_is_an_error_that_names_the_file():
    with pytest.raises(FormatError, match=r"f\.parquet"):
        merged([batch((None, 1, "a1"))], records(("b", 1, "b1")))
