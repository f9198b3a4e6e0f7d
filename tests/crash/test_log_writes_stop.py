"""A write of log files that stops anywhere is in the table as a whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.errors import BusyError, StorageError
from reconciler.hudi.codecs.avro_container import encode_container
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from tests.crash.dead_writes import apply_once, get_steps, list_step_files, make_plan
from tests.crash.drill import Killed
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    act_after,
    copy_table,
    die_at,
    list_leftovers,
    make_table,
    put_timeline_file,
    write_in_between,
)
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

KIND = "MERGE_ON_READ"
STORIES = {
    "upsert": (WriteMode.UPSERT, BATCH, AFTER),
    "delete": (WriteMode.DELETE, make_rows((2, "b", 9, None)), [BEFORE[0], BEFORE[2]]),
    "overwrite": (
        WriteMode.INSERT_OVERWRITE,
        make_rows((9, "b", 1, "nine")),
        [BEFORE[0], (9, "b", 1, "nine")],
    ),
}
VERSIONS = (6, 8, 9)
USUAL = {(6, "upsert"), (9, "delete"), (9, "overwrite")}
STOPS = [
    (version, story) if (version, story) in USUAL else long(version, story)
    for version in VERSIONS
    for story in STORIES
]


def number(calls, turn):
    """Number the calls from 1, and take some: those of other versions and stories differ."""
    return take_turn(enumerate(calls, 1), of=36, turn=turn)


def record_calls(it, folder, batch, way):
    """Return the calls that change storage in a write that nothing stops."""
    record = []
    other = copy_table(it, folder)
    other.write(batch, way, around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    return other, record[0].mutations


@pytest.mark.parametrize(("version", "story"), STOPS)
def test_wherever_a_write_of_logs_stops_the_next_one_goes_on(tmp_path, version, story):
    way, batch, after = STORIES[story]
    it = make_table(tmp_path / "t", version, KIND)
    whole, calls = record_calls(it, tmp_path / "calls", batch, way)
    assert (sorted(after), []) == (whole.read_rows(), list_leftovers(whole))
    turn = VERSIONS.index(version) * len(STORIES) + list(STORIES).index(story)
    for at, call in number(calls, turn):
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
        run.write(batch, way)
        assert (sorted(after), []) == (run.read_rows(), list_leftovers(run)), (at, call)
        shutil.rmtree(tmp_path / f"{at}")


@pytest.mark.parametrize("version", [6, long(9)])
def test_a_write_of_logs_that_fails_anywhere_is_taken_back_at_once(tmp_path, version):
    it = make_table(tmp_path / "t", version, KIND)
    _whole, calls = record_calls(it, tmp_path / "calls", BATCH, WriteMode.UPSERT)
    for at, call in number(calls, version):
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
            assert sorted(BEFORE) == run.read_rows(), (at, call)
            left = [one for one in list_leftovers(run) if not one.startswith("lock")]
            assert [] == left, (at, call)
        else:
            assert sorted(AFTER) == run.read_rows(), (at, call)
        shutil.rmtree(tmp_path / f"{at}")


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_names_the_log_files_of_a_dead_write_and_an_apply_removes_them(tmp_path, version):
    it = make_table(tmp_path / "t", version, KIND)
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.hoodie/metadata/.*\.log\."))
    before = set(Path(it.spec.path).glob("p=*/*"))

    plan = make_plan(it)
    (step,) = get_steps(plan)
    named = {path.rpartition("/")[2] for path in list_step_files(step)}

    assert 2 == len(named)
    assert 1 == sum(".log." in name for name in named)
    result = apply_once(it, plan)
    assert 0 == result.exit_code, result.tables
    assert named == {path.name for path in before - set(Path(it.spec.path).glob("p=*/*"))}
    assert (sorted(BEFORE), []) == (it.read_rows(), list_leftovers(it))


def test_a_dead_write_to_whose_log_file_another_has_appended_is_left_to_hudi(tmp_path):
    """Off the timeline, its blocks would be read once the timeline begins after it."""
    it = make_table(tmp_path / "t", 6, KIND)
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.hoodie/metadata/.*\.log\."))
    (marker, *_) = sorted(Path(it.spec.path, MARKER_FOLDER).rglob("*.log.*.APPEND"))
    name = marker.name.removesuffix(".marker.APPEND")
    (path,) = Path(it.spec.path).glob(f"p=*/{name}")
    other = encode_block(BlockType.DELETE, [(HeaderKey.INSTANT_TIME, "20200101000000000")], b"")
    path.write_bytes(path.read_bytes() + other)
    plan = make_plan(it)

    result = apply_once(it, plan)
    it.write(make_rows((5, "c", 1, "five")))

    (outcome,) = result.tables[0].outcomes
    assert ("failed", 5) == (outcome.how, result.exit_code)
    assert "only a rollback of Hudi cancels its rows" in outcome.warnings[0].because
    assert path.exists()
    assert get_steps(plan)[0].instant in " ".join(list_leftovers(it))


def test_of_two_writes_to_the_same_slice_the_second_gives_up(tmp_path):
    it = make_table(tmp_path / "t", 9, KIND)
    between = write_in_between(it, tmp_path / "unused", make_rows((1, "a", 7, "other")))

    with pytest.raises(BusyError, match=r"has written to its file group .* run it again"):
        it.write(BATCH, around=between)

    assert [(1, "a", 7, "other"), *BEFORE[1:]] == it.read_rows()
    assert [] == list_leftovers(it)


def schedule_compaction(it, instant="20261201000000900"):
    """Plan a compaction of every slice, as a writer of Hudi does."""
    state = observe(open_storage(it.spec.path), None, observed_ms=0)
    operations = [
        {
            "baseInstantTime": BaseName.parse(name).instant,
            "deltaFilePaths": [],
            "dataFilePath": name,
            "fileId": BaseName.parse(name).file_id,
            "partitionPath": state.files.partitions[state.files.partition[row]],
            "metrics": None,
            "bootstrapFilePath": None,
        }
        for row, name in enumerate(state.files.name.to_pylist())
        if BaseName.parse(name) is not None
    ]
    plan = {"operations": operations, "extraMetadata": None, "version": 2}
    put_timeline_file(
        it,
        f"{instant}.compaction.requested",
        encode_container("HoodieCompactionPlan.avsc", plan),
    )


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_that_is_planned_meanwhile_loses_no_log_file(tmp_path, version):
    """Before version 8 the name of a log file ties it to the slice that the compaction reads."""
    it = make_table(tmp_path / "t", version, KIND)
    between = act_after(r"p=a/.*\.marker\.", lambda: schedule_compaction(it))
    update = make_rows((1, "a", 2, "ONE"))

    if version < 8:
        with pytest.raises(BusyError, match=r"compaction .* is pending and writes to its file"):
            it.write(update, around=between)
        assert sorted(BEFORE) == it.read_rows()
    else:
        it.write(update, around=between)
        assert sorted([(1, "a", 2, "ONE"), *BEFORE[1:]]) == it.read_rows()


def test_a_compaction_that_is_planned_meanwhile_hides_no_new_base_file(tmp_path):
    it = WriteRuns(write_spec(tmp_path, version=9, kind=KIND))
    it.write(make_rows(BEFORE[0]))
    between = act_after(r"p=a/.*\.marker\.", lambda: schedule_compaction(it))

    with pytest.raises(BusyError, match=r"compaction .* is pending and writes to its file"):
        it.write(make_rows((2, "a", 1, "new")), around=between)

    assert [BEFORE[0]] == it.read_rows()


@pytest.mark.parametrize("version", [6, 9])
def test_updates_beside_a_pending_compaction_are_read(tmp_path, version):
    it = make_table(tmp_path / "t", version, KIND)
    schedule_compaction(it, "20261201000000500")

    outcome = it.write(BATCH)

    assert sorted(AFTER) == it.read_rows()
    assert (1, 1) == (outcome.appended_groups, outcome.created_groups)
