"""Build the write statistics of new base files."""

from __future__ import annotations

import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.write_stat import build_created_stat
from reconciler.file_slices.base_file.writer import WrittenFile

NAME = "6f7b3a71-31e5-4c46-b329-a84dbac6e0aa-0_0-221-339_20261121045646282.parquet"
#: statistic of a clustering by Hudi 1.2.0, without null fields and durations
HUDIS = {
    "fileId": "6f7b3a71-31e5-4c46-b329-a84dbac6e0aa-0",
    "path": f"p0/{NAME}",
    "prevCommit": "null",
    "numWrites": 12,
    "numDeletes": 0,
    "numUpdateWrites": 0,
    "totalWriteBytes": 434748,
    "totalWriteErrors": 0,
    "partitionPath": "p0",
    "totalLogRecords": 0,
    "totalUpdatedRecordsCompacted": 0,
    "numInserts": 12,
    "totalLogBlocks": 0,
    "totalCorruptLogBlock": 0,
    "totalRollbackBlocks": 0,
    "fileSizeInBytes": 434748,
    "totalLogFilesCompacted": 0,
    "totalLogSizeCompacted": 0,
}


def written(name):
    return WrittenFile(
        name=name, rows=12, size=434748, least_key="a", greatest_key="b", footer=None
    )


def test_the_statistic_of_a_new_file_equals_that_of_hudi():
    assert build_created_stat(written(NAME), "p0") == HUDIS


def test_a_table_without_partitions_has_the_file_at_its_root():
    found = build_created_stat(written(NAME), "")

    assert ("", NAME) == (found["partitionPath"], found["path"])


def test_another_name_is_refused():
    with pytest.raises(FormatError, match="is not the name of a base file"):
        build_created_stat(written("part-0.parquet"), "")
