"""The rows of one slice of a scan."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.reader.model import PATH, SLICES, Scan
from reconciler.reader.slice_rows import SliceRowReader, check_mergeable, get_slice_files
from tests.memory_slices import MemoryFiles, parquet_bytes

BASE = "p=1/f1-0_0-1-1_20260101000000000.parquet"
SKELETON = "p=1/f1_0-1-1_00000000000001.parquet"
TABLE = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        ("v", pa.int64()),
        ("p", pa.int32()),
    ]
)
FILE = pa.table(
    [["1", "1", "2"], ["a", "b", "c"], pa.array([1, 2, 3], pa.int32()), ["x", "x", "x"]],
    names=TABLE.names,
)


def scan(columns=TABLE.names, *, base=BASE, logs=(), rules=None, restored=("p",), **more):
    return Scan(
        location="/t",
        as_of="2",
        schema=pa.schema([TABLE.field(name) for name in columns]),
        table_schema=TABLE,
        partition_schema=pa.schema([TABLE.field(name) for name in restored]),
        partitions=pa.table({PATH: ["p=0", "p=1"], "p": pa.array([None, 1], pa.int32())}),
        slices=pa.Table.from_pylist(
            [
                {
                    "partition": 1,
                    "base": base,
                    "base_size": len(parquet_bytes(FILE)),
                    "logs": list(logs),
                    "log_size": 0,
                    "evolves": False,
                }
            ],
            SLICES,
        ),
        rules=rules or MergeRules(),
        committed=CommittedInstants(),
        **more,
    )


def read(found):
    reading = pickle.loads(pickle.dumps(SliceRowReader.from_scan(found)))
    source = MemoryFiles({BASE: parquet_bytes(FILE)})
    batches = list(reading.read(get_slice_files(found, 0), found.get_partition_values(1), source))
    assert all(batch.schema == found.schema for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_partition_columns_are_what_the_folder_says():

    assert [("1", "a", 1, 1), ("1", "b", 2, 1), ("2", "c", 3, 1)] == read(scan())


def test_columns_come_in_the_order_asked_for():

    assert [(1, 1), (1, 2), (1, 3)] == read(scan(["p", "v"]))
    assert [(1,), (1,), (1,)] == read(scan(["p"]))


def test_rows_without_columns_are_counted():
    found = scan([])
    batches = SliceRowReader.from_scan(found).read(
        get_slice_files(found, 0), {}, MemoryFiles({BASE: parquet_bytes(FILE)})
    )

    assert 3 == sum(len(batch) for batch in batches)


def test_an_incremental_read_gives_the_rows_of_its_writes():

    assert [("2", "c", 3, 1)] == read(scan(commit_times=("2", "3")))
    assert [(3,)] == read(scan(["v"], commit_times=("2",)))
    assert [] == read(scan(["v"], commit_times=()))


def test_a_skeleton_is_refused_by_name():

    with pytest.raises(UnsupportedError, match=rf"{SKELETON}: is a bootstrap skeleton"):
        check_mergeable(scan(base=SKELETON))
    assert check_mergeable(scan()) is None
    assert check_mergeable(scan(base=None, logs=["p=1/.f1-0_2.log.1_0-0-0"])) is None


def test_records_that_cannot_be_merged_are_refused_where_there_are_logs():
    rules = MergeRules(refusal="table t: partial updates (KEEP_VALUES) are not supported")

    with pytest.raises(UnsupportedError, match=r"t: partial updates .*; its log files cannot be"):
        check_mergeable(scan(logs=["p=1/.f1-0_2.log.1_0-0-0"], rules=rules))
    assert check_mergeable(scan(rules=rules)) is None


def test_what_is_pruned_is_not_refused():
    found = scan(base=SKELETON)

    assert 0 == len(found.select_slices(np.array([False])).slices)
    assert check_mergeable(found.select_slices(np.array([False]))) is None
    assert 1 == len(found.select_slices(np.array([True])).slices)
