"""What merging a slice counts, as its write statistics record it."""

from __future__ import annotations

import numpy as np

from reconciler.file_slices.base_file.write_stat import build_compacted_stat
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.merge_counts import MergeCounts

BASE = "f1_0-1-2_20260101000000000.parquet"


def make_counts(**more):
    counts = MergeCounts(
        blocks=4, corrupt_blocks=1, rollback_blocks=1, records=5, deletions=2, base_rows=10, **more
    )
    #: a record that wins, one that loses, one that is new; a deletion that wins, one of nothing
    outcome = np.array([1, 0, -1, 1, -1], np.int8)
    counts.add_outcome(np.array([0, 1, 2, -1, -1]), outcome, (outcome == 1).astype(np.int64))
    return counts


def make_stat(counts, version=9, previous=BASE):
    file = WrittenFile(
        name="f1_3-4-5_20260102000000000.parquet",
        rows=counts.rows,
        size=77,
        least_key=None,
        greatest_key=None,
    )
    return build_compacted_stat(
        file, "p", previous_file=previous, counts=counts, log_sizes=[30, 4], version=version
    )


def test_every_key_of_the_logs_is_counted_by_its_outcome():
    counts = make_counts()

    assert (5, 1, 1, 1) == (counts.keys, counts.updates, counts.deletes, counts.inserts)
    assert 10 == counts.rows


def test_every_row_of_a_key_that_is_there_twice_is_counted():
    counts = MergeCounts(base_rows=5)
    counts.add_outcome(np.array([0, -1]), np.array([1, 1], np.int8), np.array([2, 3]))

    assert (2, 3, 2) == (counts.updates, counts.deletes, counts.rows)


def test_the_statistic_of_a_compacted_slice_has_what_was_merged():
    stat = make_stat(make_counts())

    assert {
        "fileId": "f1",
        "path": "p/f1_3-4-5_20260102000000000.parquet",
        "prevCommit": "20260101000000000",
        "prevBaseFile": BASE,
        "numWrites": 10,
        "numInserts": 1,
        "numUpdateWrites": 1,
        "numDeletes": 1,
        "totalLogRecords": 7,
        "totalLogFilesCompacted": 2,
        "totalLogSizeCompacted": 34,
        "totalUpdatedRecordsCompacted": 5,
        "totalLogBlocks": 4,
        "totalCorruptLogBlock": 1,
        "totalRollbackBlocks": 1,
    }.items() <= stat.items()


def test_before_version_8_keys_of_delete_blocks_are_no_log_records():
    assert 5 == make_stat(make_counts(), version=6)["totalLogRecords"]


def test_a_slice_of_log_files_alone_has_no_previous_file():
    counts = MergeCounts(records=2)
    counts.add_outcome(np.array([0, 1]), np.array([-1, -1], np.int8), np.zeros(2, np.int64))
    stat = make_stat(counts, previous=None)

    assert ("null", 2, 2, 0) == (
        stat["prevCommit"],
        stat["numWrites"],
        stat["numInserts"],
        stat["numUpdateWrites"],
    )
    assert "prevBaseFile" not in stat
