"""Writes to tables with an index that knows every key in any partition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from reconciler.errors import FormatError, NotFoundError, ReconcilerError
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.record_index import KeyLocations
from reconciler.writer import index_lookup, key_search
from reconciler.writer.job import RowOperation
from tests.unit.writer.ledger import Ledger, batch, few_a_file, row, wide


class Index:
    """An index of three file groups with the locations of a ledger's keys, or wrong ones."""

    slices = (0, 1, 2)

    def __init__(self, table, **otherwise):
        self.known = {
            one["_hoodie_record_key"]: (partition, file_id)
            for (partition, file_id), found in table.tables().items()
            for one in found.to_pylist()
        } | otherwise

    def find_groups(self, keys):
        return find_record_groups(keys, 3)

    def locate_keys(self, _source, group, keys):
        assert set(self.find_groups(keys).tolist()) <= {group}
        found = {at: self.known.get(key) for at, key in enumerate(keys.to_pylist())}
        found = {at: place for at, place in found.items() if place is not None}
        known = [*dict.fromkeys(found.values())]
        place = [known.index(one) for one in found.values()]
        return KeyLocations(
            key_index=np.array([*found], np.int64),
            location_code=np.array(place, np.int64),
            locations=tuple(known),
        )


class Indexed(Ledger):
    """A ledger with such an index as of every write."""

    says = Index

    def work(self, operation, **more):
        return super().work(operation, index=self.says(self), **more)


@pytest.fixture
def table(tmp_path):
    found = Indexed(tmp_path, is_global=True)
    found.insert(row(1), row(2), row(3, "b"))
    return found


def where(table):
    return {(p, key, ts): count for (p, key, ts, _name), count in table.rows().items()}


def test_a_key_that_is_brought_with_another_partition_moves(table):
    done = table.upsert(row(1, "b", ts=2), row(4, "c"))

    assert where(table) == {("b", 1, 2): 1, ("a", 2, 1): 1, ("b", 3, 1): 1, ("c", 4, 1): 1}
    assert (done.counts.inserts, done.counts.updates, done.counts.deletes) == (2, 0, 1)


def test_a_key_of_its_own_partition_is_changed_where_it_is(table):
    done = table.upsert(row(1, ts=2))

    assert where(table)["a", 1, 2] == 1
    assert (done.counts.inserts, done.counts.updates, done.counts.deletes) == (0, 1, 0)


@pytest.mark.parametrize(("ts", "moves"), [(4, False), (5, True), (6, True)])
def test_a_row_moves_unless_the_one_that_is_there_is_newer(table, ts, moves):
    table.upsert(row(1, ts=5))
    done = table.upsert(row(1, "b", ts=ts))

    assert where(table)[("b", 1, ts) if moves else ("a", 1, 5)] == 1
    assert sum(where(table).values()) == 3
    assert (done.counts.inserts, done.counts.deletes) == (int(moves), int(moves))


def test_no_event_time_saves_a_row_that_another_has_left_for_its_partition(table, monkeypatch):
    monkeypatch.setattr(
        index_lookup, "_find_older_rows", lambda keys, *_: np.zeros(len(keys), np.bool_)
    )
    table.upsert(row(1, "b", ts=0))

    assert where(table) == {("b", 1, 0): 1, ("a", 2, 1): 1, ("b", 3, 1): 1}


def test_a_row_moves_whatever_its_time_where_the_later_write_wins(tmp_path):
    table = Indexed(
        tmp_path, is_global=True, **{"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    )
    table.insert(row(1, ts=5))
    table.upsert(row(1, "b", ts=4))

    assert where(table) == {("b", 1, 4): 1}


def test_a_row_is_deleted_in_whatever_partition_it_is(table):
    done = table.delete(row(1, "b"), row(3, "new"), row(9, "a"))

    assert where(table) == {("a", 2, 1): 1}
    assert (done.counts.deletes, done.counts.absent_deletes) == (2, 1)


def test_a_marked_row_deletes_in_whatever_partition_it_is_unless_it_is_older(table):
    table.upsert(row(2, ts=5))
    done = table.upsert(row(1, "b", ts=2, deleted=True), row(2, "b", ts=4, deleted=True))

    assert where(table) == {("a", 2, 5): 1, ("b", 3, 1): 1}
    assert (done.counts.deletes, done.counts.absent_deletes, done.counts.inserts) == (1, 0, 0)


def test_of_the_rows_of_a_key_in_several_partitions_the_newest_is_written(table):
    done = table.upsert(row(1, "c", ts=3), row(1, "a", ts=2), row(7, "a"), row(7, "b"))

    assert where(table) == {("c", 1, 3): 1, ("a", 2, 1): 1, ("b", 3, 1): 1, ("b", 7, 1): 1}
    assert done.counts.dropped == 2


def test_a_key_is_deleted_once_however_many_partitions_it_comes_with(table):
    keys = batch(row(1), row(1, "b")).select(["id", "p"])
    done = table.write(RowOperation.DELETE, [keys])

    assert (done.counts.deletes, done.counts.dropped) == (1, 1)


def test_what_moves_counts_among_the_changes_of_the_file_that_it_leaves(table):
    told = []

    def hears(found):
        told.append(found.workload)

    table.upsert(row(1, "b", ts=2), assigned=hears)

    (workload,) = told
    assert workload.partitions == ("p=a", "p=b")
    assert (workload.inserts.tolist(), workload.updates.tolist()) == ([0, 1], [1])
    assert workload.growth.tolist() == [-100]


def test_a_row_that_would_leave_a_file_that_is_being_clustered_is_refused(table):
    (file_id,) = (file_id for partition, file_id in table.files if partition == "p=a")
    with pytest.raises(ReconcilerError, match=f"{file_id}.*pending clustering"):
        table.upsert(row(1, "b", ts=2), standing=table.standing(clustering=[file_id]))


@pytest.mark.parametrize("operation", [RowOperation.UPSERT, RowOperation.DELETE])
def test_a_key_that_the_index_has_where_no_reader_looks_is_an_error(table, operation):
    table.says = lambda it: Index(it, **{"2": ("p=a", "gone")})
    with pytest.raises(
        FormatError,
        match=r"record_index: wrong location of 1 key .first '2'.: .*'p=a', file "
        "group gone.*drop the index",
    ):
        table.write(operation, [batch(row(1), row(2))])
    assert where(table) == {("a", 1, 1): 1, ("a", 2, 1): 1, ("b", 3, 1): 1}


def test_a_key_that_the_index_has_in_a_file_that_has_it_not_is_an_error(table):
    (file,) = (key for key in table.files if key[0] == "p=b")
    table.says = lambda it: Index(it, **{"1": file, "9": file})
    with pytest.raises(FormatError, match=r"wrong location of 2 keys .first '[19]'.*in p=b/"):
        table.upsert(row(1), row(9), row(3, "b"))


def test_keys_that_several_partitions_have_are_no_keys_of_such_an_index(tmp_path):
    table = Indexed(tmp_path, is_global=True)
    table.insert(row(1), row(1, "b"))  # the index knows one of them

    with pytest.raises(FormatError, match=r"'1' in another partition, but p=a/.* has it too"):
        table.upsert(row(1, ts=2))
    assert where(table) == {("a", 1, 1): 1, ("b", 1, 1): 1}


def test_files_of_the_index_that_are_cleaned_meanwhile_make_the_write_give_way(table):
    class Cleaned(Index):
        def locate_keys(self, _source, _group, _keys):
            raise NotFoundError("a", "is not there")

    table.says = Cleaned
    with pytest.raises(ReconcilerError, match="cleaned during the read"):
        table.upsert(row(1))


def test_many_keys_are_looked_for_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(key_search, "_KEYS_AT_ONCE", 5)
    table = Indexed(tmp_path, few_a_file(10), is_global=True)
    table.insert(*(row(n, "ab"[n % 2], name=wide(n)) for n in range(60)))
    done = table.upsert(*(row(n, "abc"[n % 3], ts=2) for n in range(30, 90)))

    moved = sum("ab"[n % 2] != "abc"[n % 3] for n in range(30, 60))
    assert (done.counts.updates, done.counts.deletes) == (30 - moved, moved)
    assert done.counts.inserts == 30 + moved
    assert Counter(key for _p, key, _ts in where(table)) == Counter(range(90))
