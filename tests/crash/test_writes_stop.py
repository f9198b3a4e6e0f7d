"""A write that stops anywhere is in the table as a whole or not at all; the next run tidies up."""

from __future__ import annotations

import shutil
from copy import copy
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import BusyError, StorageError
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.storage.open import open_storage
from reconciler.transaction.instants import parse_instant_ms
from reconciler.writer.request import WriteMode
from tests.crash.drill import Killed, process
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    copy_table,
    list_leftovers,
    make_table,
    write_in_between,
)
from tests.moving_tables import MovingTable, make_row, move_soon
from tests.selection import take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.write_runs import SCHEMA, make_rows

#: a plan of a clustering, as table version 6 has it
CLUSTERS = {
    "operationType": "CLUSTER",
    "clusteringPlan": {
        "inputGroups": [],
        "strategy": None,
        "extraMetadata": None,
        "version": 1,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": None,
    },
    "extraMetadata": None,
    "version": 1,
}
STORIES = {
    "upsert": (WriteMode.UPSERT, BATCH, AFTER),
    "delete": (WriteMode.DELETE, make_rows((2, "b", 9, None)), [BEFORE[0], BEFORE[2]]),
    "overwrite": (
        WriteMode.INSERT_OVERWRITE,
        make_rows((9, "b", 1, "nine")),
        [BEFORE[0], (9, "b", 1, "nine")],
    ),
}


def number(calls, *turns):
    """Number the calls from 1, and take each sixth one, beginning as the turns say.

    A call of one kind of write to one version is stopped at with its other kinds and versions too.
    """
    return take_turn(enumerate(calls, 1), of=6, turn=sum(turns))


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("version", [6, 9])
def test_wherever_a_write_stops_the_next_one_goes_on(tmp_path, version, story):
    way, batch, after = STORIES[story]
    it = make_table(tmp_path / "t", version)
    record = []
    calls_of = copy_table(it, tmp_path / "calls")
    calls_of.write(batch, way, around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    assert (sorted(after), []) == (calls_of.read_rows(), list_leftovers(calls_of))
    calls = record[0].mutations
    assert len(calls) >= 10
    stopped = 0
    for at, call in number(calls, 3 * (version == 9), list(STORIES).index(story)):
        run = copy_table(it, tmp_path / f"{at}")
        with pytest.raises(Killed):
            run.write(
                batch,
                way,
                around=lambda s, at=at: FaultyStorage(
                    s, StorageFault(at=at, mode="before"), Killed()
                ),
            )

        assert run.read_rows() in (sorted(BEFORE), sorted(after)), (at, call)
        stopped += run.read_rows() == sorted(BEFORE)
        run.write(batch, way)
        assert (sorted(after), []) == (run.read_rows(), list_leftovers(run)), (at, call)
        shutil.rmtree(tmp_path / f"{at}")
    assert stopped >= 2


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_fails_anywhere_is_taken_back_at_once(tmp_path, version):
    it = make_table(tmp_path / "t", version)
    record = []
    copy_table(it, tmp_path / "calls").write(
        BATCH, around=lambda s: record.append(RecordingStorage(s)) or record[-1]
    )
    failed = 0
    for at, call in number(record[0].mutations, 3 * (version == 9)):
        run = copy_table(it, tmp_path / f"{at}")
        problem = StorageError(call.paths[0], "the disk is full")
        try:
            run.write(
                BATCH,
                around=lambda s, at=at, p=problem: FaultyStorage(
                    s, StorageFault(at=at, is_permanent=False), p
                ),
            )
        except StorageError:
            failed += 1
            assert sorted(BEFORE) == run.read_rows(), (at, call)
            assert [] == [one for one in list_leftovers(run) if not one.startswith("lock")], (
                at,
                call,
            )
        else:
            assert sorted(AFTER) == run.read_rows(), (at, call)
        shutil.rmtree(tmp_path / f"{at}")
    assert failed >= 2


def test_of_two_writes_to_the_same_rows_the_second_gives_up(tmp_path):
    it = make_table(tmp_path / "t", 9)
    between = write_in_between(it, tmp_path / "unused", make_rows((1, "a", 7, "other")))

    with pytest.raises(BusyError, match=r"has written to its file group .* run it again"):
        it.write(BATCH, around=between)

    assert [(1, "a", 7, "other"), *BEFORE[1:]] == it.read_rows()
    assert [] == list_leftovers(it)


def test_of_two_writes_of_the_same_new_key_the_second_gives_up(tmp_path):
    it = make_table(tmp_path / "t", 9)
    between = write_in_between(it, tmp_path / "unused", make_rows((8, "d", 1, "first")))

    with pytest.raises(BusyError, match="perhaps the same new keys"):
        it.write(make_rows((8, "d", 1, "second")), around=between)

    assert [*BEFORE, (8, "d", 1, "first")] == it.read_rows()
    assert [] == list_leftovers(it)


@pytest.mark.parametrize("action", ["clustering", "clean", "replacecommit"])
def test_what_an_apply_has_left_is_the_next_applys(tmp_path, action):
    it = make_table(tmp_path / "t", 9)
    time = "20261201235959000"
    plan = (
        encode_container("HoodieRequestedReplaceMetadata.avsc", CLUSTERS)
        if action != "clean"
        else b""
    )
    storage = open_storage(it.spec.path)
    storage.create(f".hoodie/timeline/{time}.{action}.requested", plan)
    heart = f"{HEARTBEAT_FOLDER}/{time}"
    storage.create(heart, process(77).make_owner("dead").encode())

    it.clock.ms += 86_400_000
    it.write(BATCH)

    assert storage.stat(heart) is not None
    assert storage.stat(f".hoodie/timeline/{time}.{action}.requested") is not None
    assert sorted(AFTER) == it.read_rows()


def test_an_overwrite_gives_way_to_rows_that_came_into_its_partition(tmp_path):
    it = make_table(tmp_path / "t", 9)
    between = write_in_between(
        it, tmp_path / "unused", make_rows((9, "a", 1, "nine")), WriteMode.BULK_INSERT
    )

    with pytest.raises(BusyError, match="nothing of this write is in the table"):
        it.write(make_rows((5, "a", 1, "five")), WriteMode.INSERT_OVERWRITE, around=between)

    assert [*BEFORE, (9, "a", 1, "nine")] == it.read_rows()
    assert [] == list_leftovers(it)


def test_a_column_that_another_write_brings_meanwhile_is_not_lost(tmp_path):
    it = make_table(tmp_path / "t", 9)
    wider = pa.schema([*SCHEMA, ("z", pa.int64())])
    between = write_in_between(
        it, tmp_path / "unused", make_rows((7, "c", 1, "x", 5), schema=wider)
    )

    with pytest.raises(BusyError, match="has changed the columns of the table meanwhile"):
        it.write(make_rows((1, "a", 2, "ONE")), around=between)
    it.write(make_rows((1, "a", 2, "ONE", 6), schema=wider))

    assert [(1, "a", 2, "ONE"), *BEFORE[1:], (7, "c", 1, "x")] == it.read_rows()


def test_what_is_written_after_another_took_the_write_back_goes_too(tmp_path):
    it = make_table(tmp_path / "t", 9)
    taken = []

    class Taken(RecordingStorage):
        """Somebody undoes the write, markers and all, as its first file is on its way."""

        def create_from(self, path, file):
            if not taken:
                taken.append(path)
                for pending in [*Path(it.spec.path, ".hoodie/timeline").glob("*.inflight")]:
                    if not list(pending.parent.glob(f"{pending.name[:17]}_*")):
                        pending.unlink()
                        next(pending.parent.glob(f"{pending.name[:17]}*.requested")).unlink()
            super().create_from(path, file)

    with pytest.raises(BusyError, match="another writer has rolled back"):
        it.write(BATCH, around=Taken)

    assert sorted(BEFORE) == it.read_rows()
    assert [] == list_leftovers(it)
    assert not Path(it.spec.path, taken[0]).exists()


def test_a_commit_of_which_the_store_only_says_that_it_failed_is_completed(tmp_path):
    it = make_table(tmp_path / "t", 9)

    class Denying(RecordingStorage):
        def create(self, path, data):
            super().create(path, data)
            if path.endswith(".commit"):
                raise StorageError(path, "timed out")

    done = it.write(BATCH, around=Denying)

    assert ("completed", ["store"]) == (done.status, [note.rule for note in done.warnings])
    assert sorted(AFTER) == it.read_rows()


def test_an_overwrite_takes_the_time_that_it_is(tmp_path):
    it = make_table(tmp_path / "t", 9)
    it.clock.ms += 30 * 60_000
    before = it.clock.ms

    done = it.write(make_rows((5, "a", 1, "five")), WriteMode.INSERT_OVERWRITE)

    assert parse_instant_ms(done.instant, UTC) >= before


def test_markers_that_stay_after_a_completed_write_are_removed_by_the_next_run(tmp_path):
    it = make_table(tmp_path / "t", 9)

    class Keeping(RecordingStorage):
        def delete_many(self, paths):
            if any(path.startswith(MARKER_FOLDER) for path in paths):
                raise StorageError(paths[0], "access denied")
            return super().delete_many(paths)

    done = it.write(BATCH, around=Keeping)
    assert ("completed", ["markers"]) == (done.status, [note.rule for note in done.warnings])
    assert done.instant in list_leftovers(it)

    it.write(make_rows((4, "c", 2, "FOUR")))
    assert [] == list_leftovers(it)
    assert sorted([*AFTER[:3], (4, "c", 2, "FOUR")]) == it.read_rows()


def test_wherever_a_write_that_moves_rows_stops_each_row_is_there_once(tmp_path, monkeypatch):
    """All files are written again by it, two of them without their old rows."""
    move_soon(monkeypatch)
    table = MovingTable(tmp_path / "t")
    for _ in range(3):
        table.insert()
    places = table.places()
    record = []
    calls_of = _copy_moving(table, tmp_path / "calls")
    calls_of.insert(around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    after = calls_of.places()
    assert places.keys() < after.keys()
    assert any(after[key] != place for key, place in places.items())
    assert [] == list_leftovers(calls_of)
    for at, call in take_turn(enumerate(record[0].mutations, 1), of=20):
        run = _copy_moving(table, tmp_path / f"{at}")
        fault = StorageFault(at=at, mode="before")
        with pytest.raises(Killed):
            run.insert(around=lambda s, fault=fault: FaultyStorage(s, fault, Killed()))
        found = run.places()
        assert found == places or found.keys() == after.keys(), (at, call)
        run.key = table.key
        if found == places:
            run.insert()
        else:
            run.write(make_rows(make_row(1, ts=3)))  # removes what the stopped one left
        assert (after.keys(), []) == (run.places().keys(), list_leftovers(run)), (at, call)
        shutil.rmtree(tmp_path / f"{at}")


def _copy_moving(table, folder):
    """Copy a table to another folder."""
    shutil.copytree(Path(table.spec.path).parent, folder)
    found = MovingTable(folder)
    found.clock, found.count, found.key = copy(table.clock), table.count, table.key
    return found
