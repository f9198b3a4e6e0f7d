"""Inserts that move old rows into larger files, where readers, indexes and writers find them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import reconciler
from reconciler import runtime
from reconciler.errors import BusyError
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.layout.sizing.simulate_inserts import NextInsert
from reconciler.plans.model import ClusterStep
from reconciler.rewrite.local import LocalRewriter
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.rewrite_sync import find_listing_differences
from reconciler.writer.request import WriteMode
from tests.applying import admit_and_apply
from tests.crash.drill import process
from tests.moving_tables import BATCH, MovingTable, make_row, move_soon
from tests.record_indexes import add_record_index, find_places, read_indexed_places
from tests.selection import long
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import make_rows


@pytest.fixture(autouse=True)
def moves(monkeypatch):
    move_soon(monkeypatch)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (9, "COPY_ON_WRITE"),
        long(6, "MERGE_ON_READ"),
        long(6, "COPY_ON_WRITE"),
        long(9, "MERGE_ON_READ"),
    ],
)
def test_rows_move_and_every_read_finds_each_of_them_once(tmp_path, version, kind):
    """As of every instant, and between every two of them; they keep their commit times."""
    table = MovingTable(tmp_path / "t", version=version, kind=kind)
    before = {}
    for number in range(1, 7):
        table.insert()
        after = table.read_rows_by_key()
        assert [*range(1, number * BATCH + 1)] == sorted(table.places())
        assert len(table.read_slices()) <= 3
        for key, row in before.items():
            assert row == after[key] | {"_hoodie_file_name": row["_hoodie_file_name"]}
        before = after

    storage = open_storage(table.spec.path)
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    assert not find_listing_differences(storage, properties, timeline, {"p=a": []})
    commits = timeline.commits
    bounds = [(one.completed if version >= 8 else one.requested) for one in commits]
    for end, commit in enumerate(commits, 1):
        assert [*range(1, end * BATCH + 1)] == table.keys(as_of=commit.requested)
        for begin in range(1, end):
            expected = [*range(begin * BATCH + 1, end * BATCH + 1)]
            bound = {"begin": bounds[begin - 1], "end": bounds[end - 1]}
            assert expected == table.keys(kind="incremental", **bound)


@pytest.mark.long
def test_statistics_count_new_rows_as_inserts_and_moved_ones_as_written(tmp_path):
    table = MovingTable(tmp_path / "t")
    table.insert()
    table.insert()
    table.insert()
    done = table.insert()

    assert (BATCH, 0, 0) == (done.counts.inserts, done.counts.updates, done.counts.deletes)
    assert (0, 3) == (done.created_groups, done.rewritten_groups)


@pytest.mark.parametrize("version", [9, long(6)])
def test_the_record_index_finds_moved_rows_and_upserts_change_them(tmp_path, version):
    table = MovingTable(tmp_path / "t", version=version)
    table.insert()
    add_record_index(table.spec.path)
    before, after = table.insert_until_rows_move()

    assert "record_index" in load_properties(open_storage(table.spec.path)).metadata_partitions
    assert_indexed(table)
    moved = next(key for key, place in before.items() if after[key] != place)
    done = table.write(make_rows(make_row(moved, ts=9)))
    assert (0, 1) == (done.counts.inserts, done.counts.updates)
    assert_indexed(table)


def assert_indexed(table):
    places = find_places(table.spec.path)
    assert places == read_indexed_places(table.spec.path, list(places))


def test_a_row_that_moves_does_not_hide_a_later_one_of_its_key(tmp_path):
    """An insert has brought the key again into another partition; the index has it there."""
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert()
    add_record_index(table.spec.path)
    table.write(make_rows(make_row(1, "b"), make_row(BATCH + 1, "b")), WriteMode.INSERT)
    keys = [str(key) for key in range(1, 3 * BATCH + 1)]
    indexed = read_indexed_places(table.spec.path, keys)
    table.insert()

    found = read_indexed_places(table.spec.path, keys)
    assert any(found[key] != place for key, place in indexed.items())
    for key in (1, BATCH + 1):
        assert indexed[str(key)] == found[str(key)]


def test_a_row_that_moves_does_not_hide_one_that_the_same_write_brings(tmp_path):
    """Each file has a share of the batch, and so a new row of a key that moves to another file."""
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert()
    add_record_index(table.spec.path)
    again = [key for key in range(1, 2 * BATCH + 3) if key % BATCH < 4]
    before = table.places()
    table.write(make_rows(*(make_row(key, ts=2) for key in again)), WriteMode.INSERT)

    found = {}
    for path, rows in table.read_slices("ts").items():
        file_id = BaseName.parse(path.rpartition("/")[2]).file_id
        found |= {(row["id"], row["ts"]): file_id for row in rows}
    moved = [key for key in again if found[key, 1] != before[key]]
    assert any(found[key, 2] != found[key, 1] for key in moved)
    indexed = read_indexed_places(table.spec.path, [str(key) for key in again])
    for key in moved:
        assert ("p=a", found[key, 2]) == indexed[str(key)]


@pytest.mark.parametrize("is_flink", [True, long(False)])
def test_small_files_of_a_flink_table_are_filled_as_a_simulation_says(tmp_path, is_flink):
    """Also while there are fewer than three; other tables get one more."""
    table = MovingTable(tmp_path / "t")
    table.insert()
    if is_flink:
        (tmp_path / "t/table/.hoodie/.aux/ckp_meta").mkdir(parents=True)
    plan = reconciler.plan([table.spec], insert=NextInsert(rows=BATCH, partition="p=a"))
    done = table.insert()

    (table_plan,) = plan.tables
    simulated = table_plan.file_sizes.next_insert.total
    assert (simulated.filled, simulated.new) == (done.rewritten_groups, done.created_groups)
    assert ((1, 0) if is_flink else (0, 1)) == (done.rewritten_groups, done.created_groups)


@pytest.mark.long
def test_an_upsert_moves_rows_of_files_that_it_does_not_change(tmp_path):
    """Files with changes take the new rows instead, because they are rewritten anyway."""
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert(way=WriteMode.UPSERT)
    before = table.places()
    changed = make_rows(make_row(1, ts=5), *(make_row(key) for key in range(100, 104)))
    table.write(changed)
    after = table.places()

    assert before == {key: after[key] for key in before}
    assert {before[1]} == {after[key] for key in range(100, 104)}
    table.insert(way=WriteMode.UPSERT)
    places = table.places()
    assert any(places[key] != place for key, place in after.items())


@pytest.mark.long
def test_a_flink_job_finds_its_rows_where_they_were(tmp_path):
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert()
    (tmp_path / "t/table/.hoodie/.aux/ckp_meta").mkdir(parents=True)
    before = table.places()
    table.insert()

    assert before == {key: table.places()[key] for key in before}


@pytest.mark.long
def test_a_write_gives_up_if_another_one_has_changed_rows_that_it_moves(tmp_path):
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert()
    other = MovingTable(tmp_path / "t")
    other.count, seen = 50, []

    class Between(RecordingStorage):
        def create_from(self, path, file):
            if not seen:
                seen.append(path)
                other.write(make_rows(make_row(2, ts=7)), living=frozenset({table.count}))
            super().create_from(path, file)

    with pytest.raises(BusyError, match="has written to its file group"):
        table.insert(around=Between)
    assert {*range(1, 3 * BATCH + 1)} == set(table.places())


@pytest.mark.parametrize("quiet", [60, long(None)])
def test_a_plan_with_files_packs_what_a_quiet_partition_keeps(tmp_path, quiet):
    """Without ``quiet`` one small file of the rows that are left stays beside the full one."""
    table = MovingTable(tmp_path / "t")
    for _ in range(6):
        table.insert()
    before = {path: len(rows) for path, rows in table.read_slices().items()}
    full = max(before, key=before.get)
    spec = replace(table.spec, files=replace(table.spec.files, quiet=quiet))
    later = datetime.fromtimestamp(table.clock.now_ms() / 1000, UTC) + timedelta(hours=1)
    plan = reconciler.plan([spec], now=later)
    result = admit_and_apply(
        plan,
        open_storage=lambda ref, _options=None: open_storage(ref),
        deleter=LocalDeleter(open_storage),
        rewriter=LocalRewriter(open_storage),
        clock=table.clock,
        new_token=runtime.new_token,
        process=process(99),
        now=later,
    )

    assert [ClusterStep] == [type(step) for step in plan.tables[0].steps]
    assert "completed" in str(result.tables[0])
    after = {path: len(rows) for path, rows in table.read_slices().items()}
    assert (3, 1 if quiet else 2) == (len(before), len(after))
    assert (full in after) == (not quiet)
    assert [*range(1, 6 * BATCH + 1)] == sorted(table.places())
    assert () == reconciler.plan([spec], now=later + timedelta(hours=1)).tables[0].steps
