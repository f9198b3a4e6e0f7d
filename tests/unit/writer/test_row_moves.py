"""Buckets whose old rows join the file of another bucket."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reconciler.errors import ReconcilerError
from reconciler.layout.sizing.key_routing import hash_record_keys
from reconciler.layout.sizing.tiers import FileTiers
from reconciler.writer import bucket, stages
from tests.selection import long
from tests.unit.writer.ledger import Ledger, few_a_file, row, wide

RULE = few_a_file(60, tiers=FileTiers(free_bytes=0))


def rows(count, first, partition="a", ts=1):
    return [row(key, partition, ts, wide(key)) for key in range(first, first + count)]


def make_table(path, *counts, **more):
    """Return a table with a small file of so many rows for each count."""
    table = Ledger(path, rule=RULE, **more)
    for number, count in enumerate(counts):
        table.insert(*rows(count, 100 * number))
    assert len(counts) == len(table.files)
    return table


def places(table):
    return {
        key: file_id
        for (_, file_id), found in table.tables().items()
        for key in found.column("id").to_pylist()
    }


@pytest.mark.parametrize(
    ("operation", "count"),
    [("insert", 12), ("upsert", 2), ("insert", 1), long("upsert", 12), long("upsert", 1)],
)
def test_rows_of_small_files_become_one_file(tmp_path, count, operation):
    """Also if there are fewer new rows than files; every row is there once."""
    table = make_table(tmp_path, count, count, count)
    before = places(table)
    done = getattr(table, operation)(*rows(count, 900))
    after = places(table)

    assert 4 * count == len(after) == table.rows().total()
    assert len({after[key] for key in before}) == (1 if count > 1 else 2)
    assert count == done.counts.inserts == sum(file.counts.inserts for file in done.files)
    assert (0, 0) == (done.counts.updates, done.counts.deletes)
    assert all(file.previous_name for file in done.files)
    assert all(file.file.rows for file in done.files)
    assert all(file.file.rows == file.stat["numWrites"] for file in done.files)


def test_a_file_whose_share_of_the_batch_goes_elsewhere_has_no_rows(tmp_path):
    """Keys of one bin of the hash range stay together. Later writes fill the empty file."""
    ids = np.arange(10_000, 20_000)
    bins = hash_record_keys(pa.array(map(str, ids))) >> np.uint64(52)
    _, first, counts = np.unique(bins, return_index=True, return_counts=True)
    two = ids[bins == bins[first[counts > 1][0]]][:2].tolist()
    table = make_table(tmp_path, 2, 2, 2)
    done = table.insert(*(row(key, name=wide(key)) for key in two))

    assert [0, 2, 6] == sorted(file.file.rows for file in done.files)
    assert 8 == table.rows().total()
    for first_key in (500, 600):
        table.upsert(*rows(2, first_key))
    assert 12 == table.rows().total()
    assert 3 == len(table.files)


def test_rows_that_move_keep_their_meta_columns_and_order(tmp_path):
    table = make_table(tmp_path, 12, 12, 12)
    old = pa.concat_tables(table.tables().values()).to_pylist()
    table.insert(*rows(12, 900))
    (joined,) = (found for found in table.tables().values() if found.num_rows > 12)
    found = {one["id"]: one for one in joined.to_pylist()}

    for one in old:
        assert found[one["id"]] == one | {
            "_hoodie_file_name": found[one["id"]]["_hoodie_file_name"]
        }
    ids = joined.column("id").to_pylist()
    assert all(ids[at : at + 12] == sorted(ids[at : at + 12]) for at in (0, 12, 24))


def test_rows_of_other_partitions_stay(tmp_path):
    table = make_table(tmp_path, 12, 12, 12)
    table.insert(*rows(12, 500, "b"))
    before = places(table)
    table.insert(*rows(12, 900), *rows(12, 1000, "b"))
    after = places(table)

    assert all(after[key] == before[key] for key in range(500, 512))
    assert 1 == len({after[key] for key in before if key < 500})


def test_a_deletion_or_an_update_moves_no_rows(tmp_path):
    table = make_table(tmp_path, 12, 12, 12)
    before = places(table)
    table.upsert(*rows(2, 100, ts=2))
    table.delete(*rows(1, 0))

    assert {key: place for key, place in before.items() if key} == places(table)


def test_a_row_that_is_lost_on_its_way_fails_the_write(tmp_path, monkeypatch):
    table = make_table(tmp_path, 12, 12, 12)
    read = bucket.read_slice

    def read_less(files, *args, **more):
        for batch in read(files, *args, **more):
            yield batch.slice(1)

    monkeypatch.setattr(bucket, "read_slice", read_less)
    with pytest.raises(ReconcilerError, match="36 rows of 3 files were to become one file, which"):
        table.insert(*rows(12, 900))


def test_a_file_that_does_not_arrive_fails_the_write(tmp_path, monkeypatch):
    table = make_table(tmp_path, 12, 12, 12)
    make = stages._move_rows

    def forget(buckets, assignment):
        return tuple(replace(one, joining=one.joining[:1]) for one in make(buckets, assignment))

    monkeypatch.setattr(stages, "_move_rows", forget)
    with pytest.raises(ReconcilerError, match="have not come to the file that was to take them"):
        table.insert(*rows(12, 900))


def test_a_repeated_write_moves_the_same_rows(tmp_path):
    one = make_table(tmp_path / "one", 12, 12, 12)
    other = make_table(tmp_path / "other", 12, 12, 12)
    for table in (one, other):
        table.insert(*rows(12, 900))

    def keys(table):
        return sorted(found.column("id").to_pylist() for found in table.tables().values())

    assert keys(one) == keys(other)
