"""The expected result of the writer benchmarks matches their steps."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tests.bench.trip_files import KEY
from tests.bench.write_rows import ORDERING, PARTITION, REGIONS, History, history_files
from tests.bench.write_tables import Sums, expected_sums

SMALL = History(rows=200, inserts=3, upserts=2)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return history_files(tmp_path_factory.mktemp("history") / "rows", SMALL)


def rows_of(files, name):
    return pq.read_table(files / name).to_pylist()


def test_every_batch_brings_new_keys_into_all_partitions(files):
    seen = set()
    for name in ["seed", *(name for operation, name in SMALL.steps if operation == "insert")]:
        keys = {row[KEY] for row in rows_of(files, name)}
        assert not keys & seen
        assert len({row[PARTITION] for row in rows_of(files, name)}) == REGIONS
        seen |= keys
    assert len(seen) == SMALL.total + REGIONS


def test_an_upsert_changes_rows_where_they_are(files):
    where = {}
    for _operation, name in [("", "seed"), *SMALL.steps]:
        for row in rows_of(files, name):
            assert where.setdefault(row[KEY], row[PARTITION]) == row[PARTITION]
    assert len(where) == SMALL.total + REGIONS


def test_the_last_change_of_a_row_is_what_is_expected(files):
    last = {}
    for _operation, name in [("", "seed"), *SMALL.steps]:
        last |= {row[KEY]: row for row in rows_of(files, name)}

    found = expected_sums(files, SMALL)

    assert found.rows == len(last) == SMALL.total + REGIONS
    assert found.columns[:2] == (
        sum(row[ORDERING] for row in last.values()),
        sum(round(row["total"] * 100) for row in last.values()),
    )
    whole = pq.read_table(files / "insert-00")
    assert Sums.of(whole, KEY, PARTITION) != Sums.of(whole.slice(1), KEY, PARTITION)
