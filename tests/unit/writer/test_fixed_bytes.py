"""A target that a file's bloom filter fills is a warning of the write."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from reconciler.spec.model import FileSizes
from reconciler.writer.request import WriteMode
from tests.table_sessions import write_spec
from tests.write_runs import SCHEMA, WriteRuns

KIB = 1024


def write_rows(folder, target, partitions, count=2000):
    sizes = FileSizes(target=target, small=target // 2, assign="steady", record_size=100)
    names = [str(partitions[n % len(partitions)]) for n in range(count)]
    columns = [list(range(count)), names, [1] * count, [f"{n:050}" for n in range(count)]]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    runs = WriteRuns(replace(write_spec(folder), files=sizes))
    return runs.write(rows, WriteMode.INSERT)


def test_a_target_below_the_bloom_filter_is_a_warning_with_what_to_declare(tmp_path):
    result = write_rows(tmp_path, 64 * KIB, ["a"])

    assert result.files > 1
    [note] = result.warnings
    assert note.rule == "files"
    assert note.because.startswith(
        "files.target: 64KiB has little room for rows: the bloom filter and footer of every file "
        f"take 431 KiB, and {result.files} new files have "
    )
    assert note.because.endswith("; declare files.target: 1MiB or more")


@pytest.mark.parametrize(
    ("target", "partitions", "count"),
    [
        (1024 * KIB, ["a"], 2000),  # what the warning proposes
        (64 * KIB, ["a", "b", "c"], 30),  # a larger target would not make fewer files
    ],
)
def test_other_targets_are_no_warning(tmp_path, target, partitions, count):
    result = write_rows(tmp_path, target, partitions, count)

    assert result.files == len(partitions)
    assert result.warnings == ()
