from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import RowsError, UnsupportedError
from reconciler.writer.dedupe import DedupeRule, choose_rows
from tests.unit.writer.tables import properties

PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
MARKER = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}


def left(rule, keys, paths=None, **columns):
    batch = pa.RecordBatch.from_pydict({"id": keys, **columns})
    paths = pa.array(paths or ["x"] * len(batch)).dictionary_encode()
    return choose_rows(batch, batch.column("id"), paths, rule)


def test_without_ordering_the_later_row_wins():
    assert [2, 3] == left(DedupeRule(), ["a", "b", "b", "a"]).rows.tolist()


def test_the_greatest_event_time_wins_and_of_equals_the_later_row():
    rule = DedupeRule(ordering=("ts",))

    assert [0, 4] == left(rule, ["a", "b", "a", "b", "b"], ts=[5, 1, 4, 7, 7]).rows.tolist()


def test_columns_of_event_time_compare_the_first_one_first():
    rule = DedupeRule(ordering=("ts", "n"))

    assert [1] == left(rule, ["a", "a", "a"], ts=[1, 2, 1], n=["z", "a", "y"]).rows.tolist()


def test_equal_keys_of_two_partitions_are_two_rows_unless_the_index_is_global():
    keys, paths, ts = ["a", "a", "a"], ["x", "y", "x"], [3, 1, 2]

    assert [0, 1] == left(DedupeRule(ordering=("ts",)), keys, paths, ts=ts).rows.tolist()
    rule = DedupeRule(ordering=("ts",), is_global=True)
    assert [0] == left(rule, keys, paths, ts=ts).rows.tolist()


def test_a_batch_without_rows_stays_one():
    found = left(DedupeRule(ordering=("ts",)), pa.array([], pa.string()), ts=pa.array([], "int64"))

    assert ([], []) == (found.rows.tolist(), found.is_deletion.tolist())


def test_a_row_that_wins_may_be_a_deletion():
    found = left(
        DedupeRule(ordering=("ts",)),
        ["a", "a", "b", "b"],
        ts=[1, 2, 2, 1],
        _hoodie_is_deleted=[False, True, False, True],
    )

    assert ([1, 2], [True, False]) == (found.rows.tolist(), found.is_deletion.tolist())


def test_the_tables_marker_makes_deletions():
    rule = DedupeRule.from_properties(properties(**MARKER), is_global=False)
    found = left(rule, ["a", "b", "c"], op=["D", "I", None])

    assert [True, False, False] == found.is_deletion.tolist()


def test_whatever_the_rows_the_answer_is_that_of_one_by_one():
    numbers = np.random.default_rng(3)
    keys = [f"k{n}" for n in numbers.integers(0, 300, 2000)]
    paths = [f"p{n}" for n in numbers.integers(0, 3, 2000)]
    ts = numbers.integers(-2, 3, 2000).tolist()
    best = {}
    for row, place in enumerate(zip(keys, paths, strict=True)):
        if place not in best or ts[row] >= ts[best[place]]:
            best[place] = row

    assert (
        sorted(best.values())
        == left(DedupeRule(ordering=("ts",)), keys, paths, ts=ts).rows.tolist()
    )


def test_a_row_without_event_time_is_named():
    with pytest.raises(RowsError, match=r"ordering column ts: null in 1 of 2 rows, first in row 1"):
        left(DedupeRule(ordering=("ts",)), ["a", "b"], ts=[1, None])


def test_a_missing_ordering_column_is_named():
    with pytest.raises(RowsError, match="lack column ts"):
        left(DedupeRule(ordering=("ts",)), ["a"], x=[1])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (6, DedupeRule(ordering=("ts",))),
        (8, DedupeRule()),
        (9, DedupeRule(delete_marker=("op", "D"))),
    ],
)
def test_under_commit_time_event_times_and_markers_count_as_for_the_tables_hudi(version, expected):
    said = {"hoodie.table.precombine.field": "ts", **MARKER}
    if version == 9:
        said["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
    else:
        said["hoodie.compaction.payload.class"] = PAYLOAD

    assert expected == DedupeRule.from_properties(
        properties(version=version, **said), is_global=False
    )


def test_a_table_that_merges_in_a_way_of_its_own_is_refused_by_name():
    said = {"hoodie.record.merge.mode": "CUSTOM"}
    with pytest.raises(UnsupportedError, match=r"table t: .*CUSTOM"):
        DedupeRule.from_properties(properties(**said), is_global=False)
