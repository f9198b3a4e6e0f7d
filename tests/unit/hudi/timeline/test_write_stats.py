"""Read the write statistics of commits of real Hudi."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import FormatError
from reconciler.hudi.timeline.commit import WriteStats


def commit(*stats, **more):
    found = {"partitionToWriteStats": {"p": list(stats)}, "operationType": "UPSERT"}
    return json.dumps(found | more).encode()


def stat(path, rows, size):
    return {"path": path, "numWrites": rows, "totalWriteBytes": size}


def parsed(data):
    return WriteStats.parse(data, "t.commit")


def test_rows_and_bytes_are_columns():
    found = parsed(commit(stat("p/f_0_1.parquet", 10, 900), stat("p/.f_1.log.1_0-1-1", 3, 80)))

    assert ("UPSERT", {}) == (found.operation, found.extra)
    assert [10, 3] == found.rows.tolist()
    assert [900, 80] == found.bytes.tolist()
    assert [True, False] == found.is_base.tolist()


def test_new_rows_are_counted_by_partition():
    stats = {"p=1": [{"numInserts": 3}, {"numInserts": 4}], "p=2": [{}], "p=3": None}
    found = parsed(commit(partitionToWriteStats=stats))

    assert ("p=1", "p=2", "p=3") == found.partitions
    assert [0, 0, 1] == found.partition.tolist()
    assert [3, 4, 0] == found.inserts.tolist()
    assert {"p=1": 7} == found.count_new_rows()


def test_a_commit_that_wrote_nothing_has_no_new_rows():
    assert {} == parsed(commit(partitionToWriteStats={})).count_new_rows()


def test_statistics_without_a_path_are_not_of_base_files():
    assert [False] == parsed(commit({"numWrites": 1})).is_base.tolist()


def test_an_empty_file_is_refused():
    with pytest.raises(
        FormatError, match=r"t\.commit: is empty, so the files it wrote are unknown"
    ):
        parsed(b"")


@pytest.mark.parametrize("count", [-1, 2**63, "7", 1.5, True])
def test_a_value_that_is_not_a_count_is_refused(count):
    with pytest.raises(FormatError, match="a numWrites is not a count"):
        parsed(commit({"path": "p/f_0_1.parquet", "numWrites": count}))


def test_a_file_with_another_record_is_refused():
    with pytest.raises(FormatError, match="neither Avro nor JSON"):
        parsed(b"PAR1")
