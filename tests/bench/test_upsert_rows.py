"""The rows of upserts, and the sums that a table has after them."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.trip_files import KEY
from tests.bench.upsert_rows import FIRST_KEY, Batch, batch_file, expected_sums, table_files


def test_a_batch_changes_rows_of_its_first_files_alone(tmp_path):
    file = batch_file(tmp_path / "batch", Batch(name="few", rows=50, among=100), table_rows=400)

    keys = pq.read_table(file)[KEY]
    assert pc.count_distinct(keys).as_py() == 50
    assert pc.max(keys).as_py() < FIRST_KEY + 100


def test_sums_are_those_of_the_batch_and_of_the_rows_that_stay(tmp_path):
    rows = table_files(tmp_path / "rows", 400)
    file = batch_file(tmp_path / "batch", Batch(name="few", rows=50, among=400), table_rows=400)

    count, keys, changed, *_ = expected_sums(rows, file)

    assert (count, changed) == (400, 50)
    assert keys == sum(range(FIRST_KEY, FIRST_KEY + 400))
