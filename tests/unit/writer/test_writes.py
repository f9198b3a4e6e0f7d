"""Writes from rows to files in this process: the table's contents after each."""

from __future__ import annotations

import pytest

from reconciler.errors import ReconcilerError, RowsError
from reconciler.hudi.files.names import BaseName
from reconciler.writer import stages
from reconciler.writer.bucket_routes import route_rows
from reconciler.writer.job import RowOperation
from tests.unit.writer.ledger import Ledger, batch, few_a_file, row, wide


@pytest.fixture
def table(tmp_path):
    return Ledger(tmp_path)


def test_rows_are_inserted_into_their_partitions(table):
    done = table.insert(row(1), row(2, "b"), row(3))

    assert table.rows() == {("a", 1, 1, "n"): 1, ("b", 2, 1, "n"): 1, ("a", 3, 1, "n"): 1}
    assert (done.counts.incoming, done.counts.inserts) == (3, 3)
    assert len(done.files) == 2


def test_the_next_rows_fill_the_small_file_that_is_there(table):
    table.insert(row(1))
    (made,) = table.insert(row(2)).files

    assert made.previous_name is not None
    assert made.counts.inserts == 1
    assert len(table.files) == 1
    assert len(table.rows()) == 2


def test_an_insert_keeps_rows_of_one_key_unless_it_is_asked_not_to(table):
    table.insert(row(1), row(1))
    table.insert(row(1, ts=2), row(1, ts=3), dedupes=True)

    assert table.rows() == {("a", 1, 1, "n"): 2, ("a", 1, 3, "n"): 1}


def test_an_insert_keeps_the_order_of_its_rows(table):
    parts = [[batch(row(9), row(4)), batch(row(7))], [batch(row(1), row(8))]]
    table.write(RowOperation.INSERT, *parts)

    ((_, found),) = table.tables().items()
    assert found.column("id").to_pylist() == [9, 4, 7, 1, 8]


def test_an_upsert_replaces_rows_where_they_are_and_adds_the_others(table):
    table.insert(row(1), row(2), row(3, "b"))
    before = {key: name for key, (name, _) in table.files.items()}

    done = table.upsert(row(1, ts=2, name="new"), row(5, ts=2))

    assert table.rows() == {
        ("a", 1, 2, "new"): 1,
        ("a", 2, 1, "n"): 1,
        ("b", 3, 1, "n"): 1,
        ("a", 5, 2, "n"): 1,
    }
    (made,) = done.files
    assert made.previous_name == before["p=a", BaseName.parse(made.previous_name).file_id]
    assert (done.counts.inserts, done.counts.updates) == (1, 1)


def test_of_the_rows_of_a_key_the_newest_is_written(table):
    done = table.upsert(row(1, ts=5, name="late"), row(1, ts=3), row(1, ts=4), row(2))

    assert table.rows() == {("a", 1, 5, "late"): 1, ("a", 2, 1, "n"): 1}
    assert (done.counts.incoming, done.counts.dropped) == (4, 2)


def test_an_update_that_is_older_than_the_row_changes_nothing(table):
    table.insert(row(1, ts=9))
    done = table.upsert(row(1, ts=3, name="old"))

    assert table.rows() == {("a", 1, 9, "n"): 1}
    assert (done.counts.updates, done.counts.inserts) == (0, 0)
    assert 1 == done.lookup.searched


def test_one_key_in_two_partitions_is_two_rows(table):
    table.insert(row(1), row(1, "b"))
    table.upsert(row(1, "b", ts=2))

    assert table.rows() == {("a", 1, 1, "n"): 1, ("b", 1, 2, "n"): 1}


def test_a_key_that_several_files_hold_is_replaced_in_all_of_them(tmp_path):
    table = Ledger(tmp_path, few_a_file(4))
    table.insert(*(row(n, name=wide(n)) for n in range(4)))
    table.insert(*(row(n, name=wide(n)) for n in range(4)))
    assert len(table.files) == 2

    table.upsert(row(2, ts=2))

    assert table.rows()["a", 2, 2, "n"] == 2


def test_rows_are_deleted_by_key_and_partition_alone(table):
    table.insert(row(1), row(2), row(1, "b"))
    keys = batch(row(1), row(7), row(1)).select(["id", "p"])
    done = table.write(RowOperation.DELETE, [keys])

    assert table.rows() == {("a", 2, 1, "n"): 1, ("b", 1, 1, "n"): 1}
    assert (done.counts.deletes, done.counts.absent_deletes, done.counts.dropped) == (1, 1, 1)


def test_a_row_that_is_marked_as_deleted_deletes(table):
    table.insert(row(1), row(2))
    done = table.upsert(row(1, ts=2, deleted=True), row(3, deleted=True), row(2, deleted=False))

    assert list(table.rows()) == [("a", 2, 1, "n")]
    assert (done.counts.deletes, done.counts.absent_deletes, done.counts.updates) == (1, 1, 1)


def test_updates_and_deletions_of_one_file_come_together(table):
    table.insert(*(row(n) for n in range(12)))
    table.upsert(*(row(n, ts=2, name=f"new {n}", deleted=n % 3 == 0) for n in range(10)))

    new = {("a", n, 2, f"new {n}"): 1 for n in range(10) if n % 3}
    assert table.rows() == {**new, ("a", 10, 1, "n"): 1, ("a", 11, 1, "n"): 1}


def test_a_row_that_is_marked_as_deleted_is_not_inserted(table):
    done = table.insert(row(1), row(2, deleted=True))

    assert list(table.rows()) == [("a", 1, 1, "n")]
    assert done.counts.absent_deletes == 1


def test_a_file_whose_rows_are_all_deleted_is_empty(table):
    table.insert(row(1), row(2))
    table.delete(row(1), row(2))

    assert table.rows() == {}
    assert len(table.files) == 1


def test_a_bulk_insert_leaves_small_files_alone(table):
    table.insert(row(1))
    (made,) = table.write(RowOperation.BULK_INSERT, [batch(row(2))]).files

    assert made.previous_name is None
    assert len(table.files) == 2


def test_no_rows_make_no_files(table):
    for operation in RowOperation:
        assert table.write(operation, [], []).files == ()


def test_many_rows_make_files_of_the_size_that_is_wanted(tmp_path):
    table = Ledger(tmp_path, few_a_file(50))
    rows = [row(n, "ab"[n % 2], name=wide(n)) for n in range(700)]
    done = table.write(RowOperation.INSERT, [batch(*rows[:300]), batch(*rows[300:])])

    assert len(done.files) == 14
    assert {made.counts.inserts for made in done.files} <= {48, 49, 50, 51, 52}
    assert all(BaseName.parse(made.file.name).file_id.endswith("-0") for made in done.files)
    assert max(size for _, size in table.files.values()) <= 1.15 * table.rule.sizes.target
    assert sum(table.rows().values()) == 700


def test_what_is_assigned_is_told_before_the_first_file_is_written(table):
    table.insert(row(1))
    told = []

    def hears(found):
        told.append((found.assignment.inserts.tolist(), found.workload.updates.tolist()))
        markers = list(table.storage.walk(lambda _path: True))
        assert not any("002" in folder.path for folder in markers)

    table.upsert(row(1, ts=2), row(2), assigned=hears)

    assert told == [([1], [1])]


def test_updates_of_a_group_that_is_being_clustered_are_refused(table):
    table.insert(row(1))
    ((_, file_id),) = table.files
    held = table.standing(clustering=[file_id])

    said = f"{file_id}: a pending clustering will rewrite it; let"
    with pytest.raises(ReconcilerError, match=said):
        table.upsert(row(1, ts=2), standing=held)
    table.upsert(row(2), standing=held)
    assert len(table.files) == 2


def test_rows_for_a_bucket_with_files_are_announced_as_its_updates(tmp_path):
    table = Ledger(tmp_path, buckets=1)
    table.insert(row(1))
    told = []

    table.insert(row(2), row(3), row(4, "b"), assigned=lambda found: told.append(found.workload))

    (work,) = told
    assert (("p=a", "p=b"), [0, 1]) == (work.partitions, work.inserts.tolist())
    assert ([0], [2]) == (work.group.tolist(), work.updates.tolist())


def test_inserts_into_a_bucket_that_is_being_clustered_are_refused(tmp_path):
    table = Ledger(tmp_path, buckets=1)
    table.insert(row(1))
    ((_, file_id),) = table.files
    assert file_id.startswith("00000000-")

    with pytest.raises(ReconcilerError, match=f"{file_id}: a pending clustering will rewrite it"):
        table.insert(row(2), standing=table.standing(clustering=[file_id]))
    table.insert(row(2))
    assert len(table.files) == 1


def test_a_row_without_a_key_is_an_error(table):
    with pytest.raises(RowsError, match="record key id"):
        table.insert(row(None))


def test_rows_that_change_between_two_stages_are_an_error(table, monkeypatch):
    def loses(*arguments):
        yield from list(route_rows(*arguments))[1:]

    monkeypatch.setattr(stages, "route_rows", loses)
    with pytest.raises(ReconcilerError, match="the rows changed"):
        table.insert(row(1), row(2, "b"))
