"""Whole runs that write to a table with a record index: a key is in one partition, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import BusyError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.layout.sizing.assignment_rules import MergeOnRead
from reconciler.storage.open import open_storage
from reconciler.writer import facts
from reconciler.writer.request import WriteMode
from tests.crash.write_drill import act_after, write_in_between
from tests.record_indexes import add_record_index, find_places, read_indexed_places
from tests.selection import long
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

MERGED = "MERGE_ON_READ"
TABLES = [
    (6, "COPY_ON_WRITE"),
    (8, "COPY_ON_WRITE"),
    (9, "COPY_ON_WRITE"),
    long((6, MERGED)),
    long((8, MERGED)),
    (9, MERGED),
]


@pytest.fixture(params=TABLES, ids=lambda table: "{}-{}".format(*table))
def it(request, tmp_path):
    (tmp_path / "t").mkdir()
    version, kind = request.param
    found = WriteRuns(write_spec(tmp_path / "t", version=version, kind=kind))
    found.write(make_rows((1, "a", 1, "one"), (2, "b", 1, "two")))
    add_record_index(found.spec.path)
    return found


def assert_placed(it):
    """The index is live, and says of every key where it is, and of no other."""
    assert "record_index" in load_properties(open_storage(it.spec.path)).metadata_partitions
    keys = [str(number) for number in range(12)]
    assert find_places(it.spec.path) == read_indexed_places(it.spec.path, keys)


def test_a_key_that_comes_with_another_partition_moves_there(it):
    assert_placed(it)
    done = it.write(make_rows((1, "b", 2, "ONE"), (3, "a", 1, "three")))

    assert (2, 0, 1) == (done.counts.inserts, done.counts.updates, done.counts.deletes)
    assert [(1, "b", 2, "ONE"), (2, "b", 1, "two"), (3, "a", 1, "three")] == it.read_rows()
    assert_placed(it)


def test_a_key_goes_there_and_back(it):
    for number, folder in enumerate("bcab"):
        it.write(make_rows((1, folder, 2 + number, folder)))
        assert_placed(it)

    assert [(1, "b", 5, "b"), (2, "b", 1, "two")] == it.read_rows()


def test_a_key_is_deleted_wherever_it_is(it):
    it.write(make_rows((1, "c", 9, None), (2, "b", 9, None)), WriteMode.DELETE)
    assert [] == it.read_rows()
    assert_placed(it)

    it.write(make_rows((1, "b", 1, "again")))
    assert [(1, "b", 1, "again")] == it.read_rows()
    assert_placed(it)


def test_a_row_that_is_older_moves_nothing_and_leaves_nothing(it):
    before = len(load_timeline(*opened(it)).commits)
    done = it.write(make_rows((1, "b", 0, "older")))

    assert "nothing" == done.status
    assert before == len(load_timeline(*opened(it)).commits)
    assert [(1, "a", 1, "one"), (2, "b", 1, "two")] == it.read_rows()


def opened(it):
    storage = open_storage(it.spec.path)
    return storage, load_properties(storage)


def test_an_insert_that_dedupes_keeps_one_row_a_key_of_all_partitions(it):
    it.write(make_rows((5, "a", 3, "new"), (5, "b", 2, "old")), WriteMode.INSERT, dedupes=True)

    assert [(1, "a", 1, "one"), (2, "b", 1, "two"), (5, "a", 3, "new")] == it.read_rows()
    assert_placed(it)


@pytest.mark.parametrize("version", [long(6), 9])
def test_rows_that_only_log_files_have_are_found_by_the_index(tmp_path, monkeypatch, version):
    """Writers whose index finds rows in log files have put them there before."""
    it = WriteRuns(write_spec(tmp_path, version=version, kind=MERGED))
    with monkeypatch.context() as patched:
        patched.setattr(facts, "find_table_kind", lambda *_, **__: MergeOnRead(indexes_logs=True))
        it.write(make_rows((1, "a", 1, "one"), (2, "a", 1, "two"), (3, "b", 1, "three")))
        it.write(make_rows((4, "a", 1, "four"), (1, "a", 2, "ONE")))
    assert not [*Path(it.spec.path).glob("p=*/*.parquet")]
    add_record_index(it.spec.path)
    assert_placed(it)

    it.write(make_rows((1, "a", 3, "one"), (3, "a", 2, "moved"), (4, "b", 0, "older")))
    it.write(make_rows((2, "a", 1, None)), WriteMode.DELETE)

    assert [(1, "a", 3, "one"), (3, "a", 2, "moved"), (4, "a", 1, "four")] == it.read_rows()
    assert_placed(it)


def test_an_index_by_partition_leaves_keys_to_their_partitions(tmp_path):
    it = WriteRuns(write_spec(tmp_path, version=9))
    it.write(make_rows((1, "a", 1, "one")))
    add_record_index(it.spec.path, by_partition=True)
    it.write(make_rows((1, "b", 2, "other")))

    assert [(1, "a", 1, "one"), (1, "b", 2, "other")] == it.read_rows()


def test_a_write_of_the_same_new_key_into_another_partition_makes_one_give_way(it, tmp_path):
    between = write_in_between(it, tmp_path / "unused", make_rows((8, "d", 1, "first")))

    with pytest.raises(BusyError, match=r"perhaps the same new keys.*run it again"):
        it.write(make_rows((8, "e", 1, "second")), around=between)

    assert [(1, "a", 1, "one"), (2, "b", 1, "two"), (8, "d", 1, "first")] == it.read_rows()
    it.write(make_rows((8, "e", 1, "second")))
    assert [(1, "a", 1, "one"), (2, "b", 1, "two"), (8, "e", 1, "second")] == it.read_rows()
    assert_placed(it)


def test_a_write_that_brings_no_new_key_stands_beside_others(it, tmp_path):
    between = write_in_between(it, tmp_path / "unused", make_rows((8, "d", 1, "first")))
    it.write(make_rows((1, "a", 5, "changed")), around=between)

    assert [(1, "a", 5, "changed"), (2, "b", 1, "two"), (8, "d", 1, "first")] == it.read_rows()
    assert_placed(it)


def test_an_index_that_begins_meanwhile_makes_a_write_give_way(tmp_path):
    it = WriteRuns(write_spec(tmp_path, version=9))
    it.write(make_rows((1, "a", 1, "one")))
    begins = act_after(r"\.parquet$", lambda: add_record_index(it.spec.path))

    with pytest.raises(BusyError, match=r"record index .*run it again"):
        it.write(make_rows((1, "b", 2, "ONE")), around=begins)
    assert [(1, "a", 1, "one")] == it.read_rows()
    it.write(make_rows((1, "b", 2, "ONE")))
    assert [(1, "b", 2, "ONE")] == it.read_rows()
    assert_placed(it)


@pytest.mark.parametrize("way", [WriteMode.DELETE_PARTITION, WriteMode.INSERT_OVERWRITE])
def test_a_key_that_an_insert_brought_again_stays_known_when_its_older_row_goes(it, way):
    it.write(make_rows((1, "b", 2, "again")), WriteMode.INSERT)
    partitions = ["p=a"] if way is WriteMode.DELETE_PARTITION else None
    it.write(make_rows((5, "a", 1, "five")), way, partitions=partitions)
    assert_placed(it)

    it.write(make_rows((1, "b", 3, "newer")))
    others = [] if partitions else [(5, "a", 1, "five")]
    assert [(1, "b", 3, "newer"), (2, "b", 1, "two"), *others] == it.read_rows()
    assert_placed(it)
