"""What queries read of files, by their statistics and their partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.index.model import ColumnStats, FileIndex
from reconciler.index.predicate_columns import find_query_columns
from reconciler.planners.prediction.file_reads import add_partition_values, find_reads

SCHEMA = pa.schema({"x": pa.int64(), "dt": pa.string(), "s": pa.struct({"a": pa.int32()})})
SIZES = np.array([100, 20, 3])


def index_of(least, greatest):
    count = len(least)
    return FileIndex(
        partition=pa.array([""] * count).dictionary_encode(),
        name=pa.array([str(nth) for nth in range(count)]),
        size=SIZES,
        rows=np.full(count, 10),
        columns={
            "x": ColumnStats(
                least=pa.array(least, pa.int64()),
                greatest=pa.array(greatest, pa.int64()),
                nulls=np.zeros(count, np.int64),
                values=np.full(count, 10),
                is_exact_least=np.ones(count, np.bool_),
                is_exact_greatest=np.ones(count, np.bool_),
                is_nan_free=np.ones(count, np.bool_),
            )
        },
    )


INDEX = index_of([0, 10, None], [9, 19, None])


def test_a_query_reads_the_files_that_nothing_rules_out():
    found = find_reads(["x = 5", "x > 9", "x < 0", "f(x) = 1"], INDEX, SIZES, schema=SCHEMA)

    assert [[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]] == found.kept.astype(int).tolist()
    assert [2, 2, 1, 3] == found.files.tolist()
    assert [103, 23, 3, 123] == found.bytes.tolist()


def test_what_a_partition_says_of_its_rows_counts():
    index = add_partition_values(INDEX, {"dt": pa.array(["2026-01-01", "2026-01-02", None])})
    where = ["dt = '2026-01-02'", "dt is null", "x = 5 and dt > '2026-01-01'"]
    found = find_reads(where, index, SIZES, schema=SCHEMA)

    assert [[0, 1, 0], [0, 0, 1], [0, 0, 0]] == found.kept.astype(int).tolist()


def test_a_value_that_is_nan_has_no_bounds_and_is_read():
    index = add_partition_values(INDEX, {"d": pa.array([float("nan"), 1.0, 2.0])})
    found = find_reads(["d > 1.5", "d = 1"], index, SIZES, schema=pa.schema({"d": pa.float64()}))

    assert [[1, 0, 1], [1, 1, 0]] == found.kept.astype(int).tolist()


def test_what_files_say_of_a_column_that_folders_say_does_not_count():
    index = add_partition_values(INDEX, {"x": pa.array([[1], [2], [3]])})

    assert "x" in INDEX.columns
    assert [[1, 1, 1]] == find_reads(["x = 1"], index, SIZES, schema=SCHEMA).kept.astype(
        int
    ).tolist()


def test_the_columns_of_queries_are_spelled_as_the_table_does():
    where = ["X = 1 or not S.A in (1, 2)", "dt like '2026%' and nowhere = 1"]

    assert ("x", "s.a", "dt") == find_query_columns(where, SCHEMA)
