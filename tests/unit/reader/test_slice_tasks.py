"""A Python worker reads its slices, in this process."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, StorageError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.reader.model import PATH, SLICES, PythonReason, Scan, find_python_reasons
from reconciler.reader.pruning import keep_all, widen_to_scan
from reconciler.reader.read_report import make_read_report
from reconciler.reader.request import ReadArguments
from reconciler.reader.skipping import SkipDecision
from reconciler.reader.slice_rows import SliceReadTask, pack_slices
from reconciler.storage.api import StorageRef

SCHEMA = pa.schema([pa.field("id", pa.int32()), pa.field("base", pa.string())])


def scan_of(folder, slices, schema=SCHEMA):
    """Make a scan; ``base`` is also the name of a partition column."""
    return Scan(
        location=str(folder),
        as_of="20260101000000000",
        schema=schema,
        table_schema=SCHEMA,
        partition_schema=pa.schema([SCHEMA.field("base")]),
        partitions=pa.table({PATH: ["x", "y", "z"], "base": ["X", None, "Z"]}),
        slices=pa.Table.from_pylist(slices, SLICES),
        rules=MergeRules(),
        committed=CommittedInstants(),
    )


def slice_of(partition, base, *, size=0, logs=(), log_size=0, evolves=False):
    return {
        "partition": partition,
        "base": base,
        "base_size": size,
        "logs": list(logs),
        "log_size": log_size,
        "evolves": evolves,
    }


@pytest.fixture
def scan(tmp_path):
    slices = []
    for partition, folder in enumerate("xy"):
        for number in range(2):
            path = tmp_path / folder / f"{number}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": pa.array([10 * partition + number], pa.int32())}), path)
            size = path.stat().st_size
            slices.append(slice_of(partition, f"{folder}/{number}.parquet", size=size))
    return scan_of(tmp_path, slices)


def rows(worker, *numbers):
    batches = list(worker([pa.record_batch({"id": pa.array(numbers, pa.int64())})]))
    assert all(batch.schema == worker.reading.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_worker_reads_the_slices_of_the_tasks_it_is_given(scan):
    packs = pack_slices(scan, [np.array([3, 0]), np.array([1, 2])])
    worker = pickle.loads(
        pickle.dumps(SliceReadTask.from_scan(scan, StorageRef(scan.location), packs))
    )

    assert [{"id": 11, "base": None}, {"id": 0, "base": "X"}] == rows(worker, 0)
    assert [{"id": 1, "base": "X"}, {"id": 10, "base": None}] == rows(worker, 1)
    assert 4 == len(rows(worker, 1, 0))


def test_a_file_that_went_away_says_so(scan, tmp_path):
    (tmp_path / "y" / "0.parquet").unlink()
    worker = SliceReadTask.from_scan(
        scan, StorageRef(scan.location), pack_slices(scan, [np.array([2])])
    )

    with pytest.raises(StorageError, match=r"0\.parquet: was removed by a clean"):
        rows(worker, 0)


def test_a_damaged_file_is_named(scan, tmp_path):
    file = tmp_path / "y" / "0.parquet"
    file.write_bytes(b"x" * file.stat().st_size)
    worker = SliceReadTask.from_scan(
        scan, StorageRef(scan.location), pack_slices(scan, [np.array([2])])
    )

    with pytest.raises(FormatError, match=r"^y/0\.parquet: cannot be read as parquet"):
        rows(worker, 0)


def test_what_tasks_are_sent_does_not_grow_with_the_table(tmp_path):
    slices = [slice_of(0, f"x/{number}.parquet", size=1) for number in range(10_000)]
    packs = pack_slices(scan_of(tmp_path, slices), np.split(np.arange(10_000), 100))

    assert 100 == len(packs)
    assert max(map(len, packs)) < 3000


ODD = [
    slice_of(0, "x/a", size=9),
    slice_of(0, None, logs=["x/.l1", "x/.l2"], log_size=5),
    slice_of(2, "z/b", size=9, logs=["z/.l"], log_size=1, evolves=True),
    slice_of(2, "z/c", size=9, evolves=True),
    slice_of(2, "z/d"),
]


def test_only_whole_base_files_of_the_tables_types_are_read_by_spark_itself(tmp_path):
    scan = scan_of(tmp_path, ODD)
    every = tuple(PythonReason)

    assert ["-", "logs", "logs", "evolves", "empty"] == [
        "-" if at < 0 else every[at].key for at in find_python_reasons(scan)
    ]
    assert ["store", "logs", "logs", "evolves", "empty"] == [
        every[at].key for at in find_python_reasons(scan, spark_reaches=False)
    ]


def test_an_explanation_counts_what_is_left_of_what_there_is(tmp_path):
    scan = scan_of(tmp_path, ODD)
    mask = np.array([False, False, True, True, True])
    pruned = widen_to_scan(
        scan, mask, keep_all(scan.select_slices(mask), SkipDecision.SWITCHED_OFF)
    )
    found = make_read_report(pruned, ReadArguments(), where="base = 'Z'").to_document()

    assert {
        "format": 1,
        "table": str(tmp_path),
        "kind": "snapshot",
        "asOf": "20260101000000000",
        "begin": None,
        "end": None,
        "where": "base = 'Z'",
        "columns": [{"name": "id", "type": "int"}, {"name": "base", "type": "string"}],
        "partitions": 2,
        "keptPartitions": 1,
        "directSlices": 0,
        "pythonSlices": 3,
        "throughPython": [
            {
                "reason": "logs",
                "because": "log files are merged with the base file",
                "slices": 1,
            },
            {
                "reason": "evolves",
                "because": "the base file holds a column in another type than the table",
                "slices": 1,
            },
            {
                "reason": "empty",
                "because": "the base file is empty, which Spark would skip",
                "slices": 1,
            },
        ],
        "baseFiles": 3,
        "baseBytes": 18,
        "logFiles": 1,
        "logBytes": 1,
        "stages": [
            stage("all", (4, 27), (3, 6)),
            stage("partitions", (3, 18), (1, 1)),
            stage("index", (3, 18), (1, 1)),
        ],
        "decided": [
            {
                "decision": "partition",
                "because": "the partition holds no row that can match",
                "isRead": False,
                "slices": 2,
                "bytes": 14,
                "files": ["x/a", "x/.l1"],
            },
            {
                "decision": "switchedOff",
                "because": "skipping is switched off",
                "isRead": True,
                "slices": 3,
                "bytes": 19,
                "files": ["z/b", "z/c", "z/d"],
            },
        ],
        "rowGroups": None,
        "index": None,
        "problems": [],
        "damaged": [],
    } == found


def stage(name, base, logs):
    files = {"baseFiles": base[0], "baseBytes": base[1]}
    return {"stage": name, **files, "logFiles": logs[0], "logBytes": logs[1]}
