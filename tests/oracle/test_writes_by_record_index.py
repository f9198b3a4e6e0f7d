"""Keys that move between partitions where a record index knows them all: by us and by real Hudi."""

from __future__ import annotations

import os
from random import Random

import pytest

from reconciler.writer.request import WriteMode
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.our_writer import make_spec, read_rows, write
from tests.oracle.test_writes import ALL, FOLDERS, LATE, ROUNDS, VERSIONS, Both
from tests.record_indexes import find_places, load_record_index, read_indexed_places
from tests.selection import long

pytestmark = pytest.mark.oracle
BY_INDEX = ALL | {"hoodie.index.type": "RECORD_INDEX"}
MOVING = BY_INDEX | {"hoodie.record.index.update.partition.path": "true"}
BY_PARTITION = {"hoodie.metadata.record.level.index.enable": "true"}


@pytest.fixture(params=VERSIONS)
def it(request, real_hudi, tmp_path):
    """A table of six rows with every index, which real Hudi made."""
    hudi, seed = real_hudi(request.param), os.environ.get("SEED", "1")
    table = hudi.table(tmp_path / "t", options=LATE | ALL)
    spec = make_spec(table, TABLE_VERSION[request.param])
    found = Both(hudi=hudi, table=table, spec=spec, random=Random(f"{request.param} {seed}"))
    rows = found.new(6)
    hudi.write(table, rows)
    found.put(rows)
    return found


def moved(it, count):
    """Rows of keys that are there, newer, each for another folder than it is in."""
    for key in it.random.sample(sorted(it.model), min(count, len(it.model))):
        others = [folder for folder in FOLDERS if folder != it.model[key][1]]
        yield it.row(key, it.random.choice(others))


def older(rows):
    return [[key, folder, ts - 1000, *rest] for key, folder, ts, *rest in rows]


def assert_right(it):
    """Both read the rows, each key once; the index says of each where it is, and of no other."""
    it.assert_right()
    assert "record_index" in it.table.metadata_partitions()
    every = [f"{folder}{number}" for folder in FOLDERS for number in range(it.number + 1)]
    places = find_places(it.table.path)
    assert sorted(it.model) == sorted(places)
    assert places == read_indexed_places(it.table.path, every)


def test_keys_move_by_our_writes_and_by_hudis(it):
    for _ in range(ROUNDS):
        rows = [*moved(it, 3), *it.new(1)]
        write(it.spec, [*rows, *older(moved(it, 2))])
        it.put(rows)
        assert_right(it)

        rows = [*moved(it, 2), *it.new(1)]
        it.hudi.write(it.table, rows, options=MOVING)
        it.put(rows)
        assert_right(it)

        rows = [*moved(it, 1)]
        write(it.spec, rows, WriteMode.DELETE)
        it.drop(rows)
        assert_right(it)

        rows = [it.row(key, it.model[key][1]) for key in sorted(it.model)]
        it.hudi.write(it.table, rows, options=BY_INDEX)
        it.put(rows)
        assert_right(it)


@pytest.mark.parametrize("it", ["0.15.0", long("1.0.2"), "1.2.0"], indirect=True)
def test_what_hudi_leaves_in_its_old_folder_by_default_is_moved_by_us(it):
    (row,) = moved(it, 1)
    folder = it.model[row[0]][1]
    it.hudi.write(it.table, [row], options=BY_INDEX)
    it.put([row])

    assert find_places(it.table.path)[row[0]][0] == folder  # although its column says another
    row = it.row(row[0], row[1])
    write(it.spec, [row])
    it.put([row])
    assert_right(it)
    assert find_places(it.table.path)[row[0]][0] == row[1]


@pytest.mark.parametrize("it", [long("0.15.0"), "1.0.2", long("1.2.0")], indirect=True)
def test_an_insert_looks_no_key_up_and_the_index_knows_the_newer_row(it):
    """As Hudi's: both rows stay, and who upserts by the index changes the newer one alone."""
    (row,) = moved(it, 1)
    first = it.model[row[0]]
    it.hudi.write(it.table, [row], "insert", BY_INDEX)
    by_hudi = read_indexed_places(it.table.path, [row[0]])
    assert {row[0]: row[1]} == {key: path for key, (path, _id) in by_hudi.items()}
    assert 2 == sum(one[0] == row[0] for one in read_rows(it.table))

    third = [folder for folder in FOLDERS if folder not in (first[1], row[1])]
    write(it.spec, [it.row(row[0], third[0])], WriteMode.INSERT)
    assert third[0] == read_indexed_places(it.table.path, [row[0]])[row[0]][0]
    assert 3 == sum(one[0] == row[0] for one in read_rows(it.table))


def test_an_index_that_hudi_keeps_by_partition_leaves_keys_to_their_partitions(real_hudi, tmp_path):
    hudi = real_hudi("1.2.0")
    table = hudi.table(tmp_path / "t", options=LATE | BY_PARTITION)
    hudi.write(table, [["k1", "a", 1, "one", 1.0], ["k2", "b", 1, "two", 2.0]])
    assert "record_index" in table.metadata_partitions()
    assert load_record_index(table.path) is None

    done = write(make_spec(table, TABLE_VERSION["1.2.0"]), [["k1", "b", 2, "other", 3.0]])
    rows = [["k1", "a", 1, "one", 1.0], ["k1", "b", 2, "other", 3.0], ["k2", "b", 1, "two", 2.0]]
    assert rows == read_rows(table) == hudi.rows(table, metadata=True)
    assert "record_index" not in table.metadata_partitions()
    (note,) = done.warnings
    assert "record_index was dropped: the record index keeps keys per partition" in note.because


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.2.0")])
def test_rows_that_hudi_has_put_into_log_files_alone_are_found_by_the_index(
    real_hudi, tmp_path, version
):
    """As writers do whose index finds rows in log files; the record index tells where they are."""
    hudi = real_hudi(version)
    logging = ALL | {"hoodie.index.type": "INMEMORY"}
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | logging)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(version), options=logging)
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)
    assert not [*table.path.glob("[abc]/*.parquet")]

    rows = [*it.old(3), *it.new(1)]
    done = write(it.spec, rows)
    it.put(rows)
    assert (1, 3) == (done.counts.inserts, done.counts.updates)
    it.assert_right()
    rows = it.old(2)
    write(it.spec, rows, WriteMode.DELETE)
    it.drop(rows)
    assert_right(it)
