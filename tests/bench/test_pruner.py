"""Tests of the benchmarks' pruner and data."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bench.layout_files import write_layout_files
from tests.bench.pruner import read_file_ranges
from tests.bench.trip_files import COLUMNS, KEY, query_mix, trip_files


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    return trip_files(tmp_path_factory.mktemp("trips") / "rows", 20_000)


def test_a_query_reads_the_bytes_of_files_whose_ranges_it_meets(tmp_path):
    names = [str(tmp_path / f"{nth}.parquet") for nth in range(3)]
    for name, values in zip(names, ([1, 5], [5, 9], [20, 30]), strict=True):
        pq.write_table(pa.table({"x": values, "y": [0.5, 1.5]}), name, row_group_size=1)
    found = read_file_ranges(names, ["x", "y"])
    share = found.bytes / found.bytes.sum()
    queries = [
        {"x": (5, 5)},
        {"x": (10, 19)},
        {"x": (0, 100), "y": (1.5, 9)},
        {"x": (21, 22), "y": (2, 3)},
    ]

    assert [2, 2, 2] == found.rows.tolist()
    assert [share[0] + share[1], 0, 1, 0] == pytest.approx(found.shares_read(queries).tolist())


def test_files_without_statistics_are_refused(tmp_path):
    name = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"x": [1]}), name, write_statistics=False)

    with pytest.raises(SystemExit, match="no statistics of x"):
        read_file_ranges([name], ["x"])


def test_trips_come_in_files_in_order_of_time_and_a_mix_asks_for_them(trips):
    found = read_file_ranges(sorted(map(str, trips.glob("*"))), COLUMNS)
    mix = query_mix(trips)

    assert [2500] * 8 == found.rows.tolist()
    assert sorted(found.least["pickup_us"]) == list(found.least["pickup_us"])
    assert 100 == len(mix)
    assert 0.4 < found.shares_read(mix).mean() < 0.6


def test_rows_written_by_a_layout_are_all_there_and_are_read_less(trips, tmp_path):
    names = write_layout_files(trips, tmp_path / "out", COLUMNS, KEY, 16, [])
    found = read_file_ranges(names, COLUMNS)
    ids = pa.concat_tables(pq.read_table(name, columns=[KEY]) for name in names)[KEY]

    assert list(range(20_000)) == sorted(ids.to_pylist())
    assert 16 == len(names)
    assert found.shares_read(query_mix(trips)).mean() < 0.25
