"""A write beside other writers: it gives way to what it has not seen, and to nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.errors import AlreadyExistsError, BusyError, UnsupportedError
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.storage.open import open_storage
from reconciler.transaction.metadata.clean_sync import find_missing_files
from reconciler.transaction.recovery import dead_writes, finished_runs, pending_instants
from reconciler.writer.request import WriteMode
from reconciler.writer.stream_batches import make_batch_extra
from tests.crash.drill import Killed, process
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    LATE,
    act_after,
    copy_table,
    die_at,
    encode_completed,
    find_pending_instant,
    get_timeline_folder,
    make_completed_name,
    make_table,
    put_timeline_file,
    write_rollback,
)
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import open_test_session, write_spec
from tests.write_runs import WriteRuns, make_rows

#: what Hudi requests an insert-overwrite with
OVERWRITES = encode_container(
    "HoodieRequestedReplaceMetadata.avsc",
    {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": 1},
)


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make_table(tmp_path / "t", request.param)


def files_of(it, instant):
    return sorted(path.name for path in Path(it.spec.path).glob(f"*/*_{instant}.parquet"))


# rollbacks


def test_a_rollback_that_is_pending_keeps_the_instant_that_it_undoes(it):
    begins = act_after(r"\.parquet$", lambda: write_rollback(it, find_pending_instant(it)))

    with pytest.raises(BusyError, match="has rolled back commit"):
        it.write(BATCH, around=begins)

    instant = find_pending_instant(it)
    assert {"commit.requested", "inflight"} == {
        path.name.partition(".")[2] for path in get_timeline_folder(it).glob(f"{instant}.*")
    }
    assert ([], sorted(BEFORE)) == (files_of(it, instant), it.read_rows())
    it.write(BATCH)
    assert (get_timeline_folder(it) / f"{instant}.inflight").exists()
    assert ([], sorted(AFTER)) == (files_of(it, instant), it.read_rows())


def test_a_rollback_that_is_pending_keeps_the_instant_of_a_write_with_nothing_to_write(it):
    taken = []

    def begins():
        taken.append(find_pending_instant(it))
        write_rollback(it, taken[0])

    done = it.write(
        make_rows((99, "a", 9, None)), WriteMode.DELETE, around=act_after(r"\d\.inflight$", begins)
    )

    assert "nothing" == done.status
    assert (get_timeline_folder(it) / f"{taken[0]}.inflight").exists()


def test_what_the_metadata_table_heard_of_a_write_after_its_rollback_is_taken_back(it):
    """A rolled back commit's blocks count, and so would list files that nobody has."""
    told = act_after(
        r"\.hoodie/metadata/\.hoodie/.*\d\.deltacommit$",
        lambda: write_rollback(it, find_pending_instant(it), is_done=True),
    )

    with pytest.raises(BusyError, match="has rolled back commit"):
        it.write(BATCH, around=told)

    storage = open_storage(it.spec.path)
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    assert {} == find_missing_files(storage, properties, timeline, ["p=a", "p=b", "p=c"])
    assert sorted(BEFORE) == it.read_rows()


def test_files_that_came_after_a_rollback_go_whatever_becomes_of_the_metadata_table(
    it, monkeypatch
):
    def shared(*_):
        raise UnsupportedError("a log file holds blocks of other instants, too")

    instants = []

    def rolled_back():
        instants.append(find_pending_instant(it))
        write_rollback(it, instants[0], is_done=True)

    monkeypatch.setattr(pending_instants, "remove_attempt", shared)
    with pytest.raises(BusyError, match="has rolled back commit"):
        it.write(BATCH, around=act_after(r"\.parquet$", rolled_back))

    assert ([], sorted(BEFORE)) == (files_of(it, instants[0]), it.read_rows())


# what is left of runs


def test_files_of_a_write_that_was_archived_from_behind_a_savepoint_stay(it, monkeypatch):
    """The savepointed commit before it is on the timeline still; its run died before it tidied."""
    done = it.write(BATCH)
    storage = open_storage(it.spec.path)
    for partition in ("p=a", "p=c"):
        for path in Path(it.spec.path, partition).glob(f"*_{done.instant}.parquet"):
            marker = f".hoodie/.temp/{done.instant}/{partition}/{path.name}.marker.CREATE"
            storage.create(marker, b"")
    storage.create(f"{HEARTBEAT_FOLDER}/{done.instant}", process(77).make_owner("dead").encode())
    for path in get_timeline_folder(it).glob(f"{done.instant}*"):
        path.unlink()
    archived = (Instant(done.instant, Action.COMMIT, State.COMPLETED, done.instant),)
    monkeypatch.setattr(finished_runs, "load_archived_instants", lambda *_: archived)

    it.write(make_rows((2, "b", 5, "TWO")))

    assert 2 == len(files_of(it, done.instant))


def test_files_of_the_first_write_of_a_table_that_hudi_rolled_back_go_after_later_ones(tmp_path):
    """Nothing is before them on the timeline, and nothing was ever archived."""
    (tmp_path / "t").mkdir()
    it = WriteRuns(write_spec(tmp_path / "t"))
    with pytest.raises(Killed):
        it.write(make_rows(*BEFORE), around=die_at(r"_\d+\.commit$"))
    first = find_pending_instant(it)
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, first).read_bytes()
    for path in get_timeline_folder(it).glob(f"{first}*"):
        path.unlink()
    Path(it.spec.path, HEARTBEAT_FOLDER, first).unlink()
    it.write(BATCH)
    Path(it.spec.path, HEARTBEAT_FOLDER, first).write_bytes(heart)
    assert 2 == len(files_of(it, first))

    it.write(make_rows((2, "b", 5, "TWO")))

    assert [] == files_of(it, first)


def test_what_a_completed_clean_told_the_metadata_table_stays(it):
    """Its run died before it removed the heartbeat. Only names tell here that it is a clean."""
    told = it.write(BATCH).instant
    for path in get_timeline_folder(it).glob(f"{told}*"):
        path.unlink()
    for name in (f"{told}.clean.requested", make_completed_name(it, told, "clean")):
        put_timeline_file(it, name)
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, f"{told}")
    heart.write_bytes(process(77).make_owner("dead").encode())
    metadata = Path(it.spec.path, ".hoodie/metadata")
    before = sorted(metadata.rglob("*"))

    dead_writes.undo_dead_writes(open_test_session(it.spec, pid=3, clock=it.clock))

    assert (False, before) == (heart.exists(), sorted(metadata.rglob("*")))


# what is pending when a write begins


def test_an_overwrite_of_hudi_that_is_pending_is_named_before_anything_is_written(it):
    put_timeline_file(it, f"{LATE}.replacecommit.requested", OVERWRITES)
    put_timeline_file(it, f"{LATE}.replacecommit.inflight")
    record = []

    with pytest.raises(BusyError, match=rf"replacecommit {LATE} .* let Hudi roll it back"):
        it.write(BATCH, around=lambda s: record.append(RecordingStorage(s)) or record[-1])

    changed = {path for call in record[0].mutations for path in call.paths}
    assert {".hoodie/lock"} == changed
    it.write(make_rows((8, "c", 1, "eight")), WriteMode.BULK_INSERT)
    assert [*BEFORE, (8, "c", 1, "eight")] == it.read_rows()


def test_a_rollback_of_what_a_write_would_read_is_named_before_anything_is_written(it):
    (known,) = [path.name[:17] for path in get_timeline_folder(it).glob("*.commit.requested")]
    write_rollback(it, known)

    with pytest.raises(BusyError, match=f"rollback {LATE} is pending"):
        it.write(make_rows((8, "c", 1, "eight")), WriteMode.BULK_INSERT)
    assert sorted(BEFORE) == it.read_rows()


# what others have completed meanwhile


def clusters(it, path):
    """A clustering of Hudi that moves the rows of one file."""
    old = BaseName.parse(path.name)
    new = f"77777777-0_0-0-0_{LATE}.parquet"
    path.with_name(new).write_bytes(path.read_bytes())
    stat = {"fileId": "77777777-0", "path": f"{path.parent.name}/{new}", "numInserts": 0}
    record = {
        "partitionToWriteStats": {path.parent.name: [stat]},
        "partitionToReplaceFileIds": {path.parent.name: [old.file_id]},
        "operationType": "CLUSTER",
        "extraMetadata": {},
    }
    put_timeline_file(it, f"{LATE}.replacecommit.requested", OVERWRITES)
    put_timeline_file(it, f"{LATE}.replacecommit.inflight")
    put_timeline_file(
        it, make_completed_name(it, LATE, "replacecommit"), encode_completed(it, record)
    )


def in_the_others(it, act):
    """Storage in which somebody acts on a file of another group as one is written to p=b."""
    (mine, *others) = sorted(Path(it.spec.path, "p=b").glob("*.parquet"), key=size_and_name)
    assert len(others) == 1
    return act_after(rf"^p=b/{BaseName.parse(mine.name).file_id}_", lambda: act(it, others[0]))


def size_and_name(path):
    return path.stat().st_size, path.name


def test_a_clustering_that_brings_no_new_keys_does_not_stop_an_upsert_that_does(it):
    more = [(4, "b", 1, "four" * 99), (5, "b", 1, "five" * 999)]
    it.write(make_rows(*more), WriteMode.BULK_INSERT)

    it.write(make_rows((9, "b", 1, "nine")), around=in_the_others(it, clusters))

    assert sorted([*BEFORE, *more, (9, "b", 1, "nine")]) == it.read_rows()


def test_a_clustering_of_the_file_group_that_an_upsert_fills_stops_it(it):
    (file,) = Path(it.spec.path, "p=b").glob("*.parquet")

    with pytest.raises(BusyError, match="has written to its file group"):
        it.write(
            make_rows((9, "b", 1, "nine")), around=act_after(r"^p=b/", lambda: clusters(it, file))
        )
    assert sorted(BEFORE) == it.read_rows()


def test_what_was_pending_and_may_be_archived_now_stops_a_write(it):
    earlier = "20200101000000000"
    put_timeline_file(it, f"{earlier}.commit.requested")
    put_timeline_file(it, f"{earlier}.inflight")
    (known,) = [path.name[:17] for path in get_timeline_folder(it).glob("2*.commit.requested")
                if not path.name.startswith(earlier)]  # fmt: skip

    def archives():
        for instant in (earlier, known):
            for path in get_timeline_folder(it).glob(f"{instant}*"):
                path.unlink()

    with pytest.raises(BusyError, match=f"commit {earlier}, which was pending .* archived"):
        it.write(BATCH, around=act_after(r"\.parquet$", archives))


def test_a_batch_that_another_run_brought_before_this_one_was_announced_is_not_doubled(it):
    """Both have asked before whether it is there."""
    batch = make_batch_extra("orders", 7)
    it.write(make_rows((9, "d", 1, "nine")), WriteMode.INSERT, extra=batch)

    with pytest.raises(BusyError, match="another run has written batch 7 of stream orders"):
        it.write(make_rows((9, "d", 1, "nine")), WriteMode.INSERT, extra=batch)
    assert sorted([*BEFORE, (9, "d", 1, "nine")]) == it.read_rows()


def test_a_schema_that_is_only_spelled_in_another_way_has_the_same_columns(tmp_path):
    it = make_table(tmp_path / "t", 6)
    other = copy_table(it, tmp_path / "unused")
    other.spec, other.count = it.spec, 50

    def writes():
        done = other.write(make_rows((9, "d", 1, "nine")), living=frozenset({it.count}))
        file = get_timeline_folder(it) / f"{done.instant}.commit"
        said = json.loads(file.read_bytes())
        schema = json.loads(said["extraMetadata"]["schema"])
        schema |= {"name": "another_record", "namespace": "of.another", "doc": "by another"}
        said["extraMetadata"]["schema"] = json.dumps(schema)
        file.write_text(json.dumps(said))

    it.write(BATCH, around=act_after(r"\.parquet$", writes))

    assert sorted([*AFTER, (9, "d", 1, "nine")]) == it.read_rows()


def test_an_instant_that_another_writer_has_just_taken_is_left_to_it(it):
    taken = []

    class Taken(RecordingStorage):
        def create(self, path, data):
            if not taken and path.startswith(HEARTBEAT_FOLDER):
                taken.append(path)
                super().create(path, b"")
                raise AlreadyExistsError(path, "exists already")
            super().create(path, data)

    done = it.write(BATCH, around=Taken)

    assert not taken[0].endswith(done.instant)
    assert b"" == Path(it.spec.path, taken[0]).read_bytes()
    assert sorted(AFTER) == it.read_rows()
