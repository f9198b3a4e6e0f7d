"""A write that died is taken back by an apply, as it was reviewed, and nothing beside it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import reconciler
from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.plans.model import RollbackStep
from reconciler.writer.request import WriteMode
from tests.command import run
from tests.crash.dead_writes import (
    add_spec_line,
    apply_once,
    get_steps,
    list_instant_files,
    list_step_files,
    make_dead_write,
    make_plan,
    write_late_file,
)
from tests.crash.drill import Killed, process
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    copy_table,
    die_at,
    find_pending_instant,
    get_timeline_folder,
    list_leftovers,
    make_table,
)
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make_dead_write(tmp_path / "t", request.param)


# as it should be


def test_a_dead_write_is_named_taken_back_and_planned_no_more(it):
    instant = find_pending_instant(it)
    plan = make_plan(it)
    (step,) = get_steps(plan)

    assert isinstance(step, RollbackStep)
    assert (instant, "commit", list_instant_files(it, instant)) == (
        step.instant,
        step.action,
        list_step_files(step),
    )
    assert f"commit {instant} of ann on here, process 2 (reconciler test) was left" in step.because
    assert "its process is dead; apply rolls it back and deletes 2 files" in step.because
    assert (0, 0) == (plan.tables[0].impact.files_removed, plan.tables[0].impact.bytes_removed)

    result = apply_once(it, plan)

    (done,) = result.tables[0].outcomes
    assert (0, "rollback", "undone", 2) == (result.exit_code, done.kind, done.how, done.removed)
    assert (instant, ()) == (done.instant, result.tables[0].instants)
    assert done.bytes > 1000
    assert ([], [], sorted(BEFORE)) == (
        list_leftovers(it),
        list_instant_files(it, instant),
        it.read_rows(),
    )
    assert () == get_steps(make_plan(it))
    assert 0 == apply_once(it, plan).exit_code
    it.write(BATCH)
    assert (sorted(AFTER), []) == (it.read_rows(), list_leftovers(it))


def test_wherever_a_write_died_an_apply_takes_it_back(tmp_path):
    it = make_table(tmp_path / "t", 9)
    record = []
    copy_table(it, tmp_path / "calls").write(
        BATCH, around=lambda s: record.append(RecordingStorage(s)) or record[-1]
    )
    undone = 0
    for at in take_turn(range(1, len(record[0].mutations) + 1), of=3):
        run_ = copy_table(it, tmp_path / f"{at}")
        with pytest.raises(Killed):
            run_.write(
                BATCH, around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at), Killed())
            )
        plan = make_plan(run_)
        undone += len(get_steps(plan))

        result = apply_once(run_, plan)

        assert 0 == result.exit_code, (at, result.tables)
        assert run_.read_rows() in (sorted(BEFORE), sorted(AFTER)), at
        assert () == get_steps(make_plan(run_)), at
        shutil.rmtree(tmp_path / f"{at}")
    assert undone >= 3


@pytest.mark.parametrize("how", ["before", long("after")])  # dying before the next leaves the same
def test_wherever_the_apply_stops_the_next_one_ends_it(it, request, tmp_path, how):
    record = []
    copy = copy_table(it, tmp_path / "calls")
    apply_once(
        copy, make_plan(copy), around=lambda s: record.append(RecordingStorage(s)) or record[-1]
    )
    changes = sum(len(one.mutations) for one in record)
    assert changes >= 10
    for at in take_turn(range(1, changes + 1), of=4, turn=request.node.callspec.params["it"]):
        copy = copy_table(it, tmp_path / f"{at}")
        there = make_plan(copy)
        with pytest.raises(Killed):
            apply_once(
                copy,
                there,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        assert sorted(BEFORE) == copy.read_rows(), at

        by_write = copy_table(copy, tmp_path / f"{at}-write")
        result = apply_once(copy, there)
        assert 0 == result.exit_code, (at, result.tables)
        assert (sorted(BEFORE), []) == (copy.read_rows(), list_leftovers(copy)), at
        assert () == get_steps(make_plan(copy)), at
        by_write.write(BATCH)
        assert (sorted(AFTER), []) == (by_write.read_rows(), list_leftovers(by_write)), at
        shutil.rmtree(tmp_path / f"{at}")
        shutil.rmtree(tmp_path / f"{at}-write")


def test_a_clean_goes_on_beside_it_and_nothing_is_left_to_do_in_the_end(tmp_path):
    it = add_spec_line(make_table(tmp_path / "t", 9), "retention: {commits: 2}")
    for ts in range(2, 7):
        it.write(make_rows((1, "a", ts, f"{ts}")))
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.parquet$"))
    paused = frozenset({it.count})
    for ts in range(7, 10):
        it.write(make_rows((2, "b", ts, f"{ts}")), living=paused)
    before = it.read_rows()
    plan = make_plan(it)
    assert ["rollback", "clean"] == [step.kind for step in get_steps(plan)]

    result = apply_once(it, plan)

    assert (0, ["undone", "completed"]) == (
        result.exit_code,
        [one.how for one in result.tables[0].outcomes],
    )
    (rest,) = get_steps(make_plan(it))
    assert "clean" == rest.kind  # what the dead write held back
    assert 0 == apply_once(it, make_plan(it)).exit_code
    assert () == get_steps(make_plan(it))
    assert (before, []) == (it.read_rows(), list_leftovers(it))


class Bucket(RecordingStorage):
    """A store of objects, where a folder goes with its last file."""

    def list(self, folder):
        if not (found := super().list(folder)):
            raise NotFoundError(folder, "is not there")
        return found


@pytest.mark.parametrize("by", ["apply", "write"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_first_write_of_a_table_is_taken_back_and_done_again(tmp_path, version, by):
    (tmp_path / "t").mkdir()
    it = WriteRuns(write_spec(tmp_path / "t", version=version))
    with pytest.raises(Killed):
        it.write(make_rows(*BEFORE), around=die_at(r"\.parquet$"))
    if by == "apply":
        assert 0 == apply_once(it, make_plan(it), around=Bucket).exit_code

    it.write(make_rows(*BEFORE), around=Bucket)

    assert sorted(BEFORE) == it.read_rows()


def test_a_table_that_has_lost_its_timeline_is_not_taken_for_an_empty_one(tmp_path):
    it = make_table(tmp_path / "t", 9)
    shutil.rmtree(get_timeline_folder(it))

    with pytest.raises(
        FormatError, match="is missing; restore it from a copy, or write to the table once"
    ):
        it.write(BATCH)


def with_a_dead_overwrite(folder):
    it = make_table(folder, 9)
    with pytest.raises(Killed):
        it.write(
            make_rows((9, "b", 1, "nine")),
            WriteMode.INSERT_OVERWRITE,
            around=die_at(r"_\d+\.replacecommit$"),
        )
    return it


def test_an_overwrite_that_died_is_taken_back(tmp_path):
    it = with_a_dead_overwrite(tmp_path / "t")
    (step,) = get_steps(make_plan(it))

    assert "replacecommit" == step.action
    assert 0 == apply_once(it, make_plan(it)).exit_code
    assert (sorted(BEFORE), []) == (it.read_rows(), list_leftovers(it))


@pytest.mark.parametrize("by", ["apply", "write"])
def test_an_overwrite_whose_announcement_was_lost_with_its_machine_is_taken_back(tmp_path, by):
    it = with_a_dead_overwrite(tmp_path / "t")
    (announced,) = get_timeline_folder(it).glob("*.replacecommit.requested")
    announced.write_bytes(b"")
    assert ["rollback"] == [step.kind for step in get_steps(make_plan(it))]

    if by == "apply":
        assert 0 == apply_once(it, make_plan(it)).exit_code
    else:
        it.write(make_rows((1, "a", 1, "one")))

    assert (sorted(BEFORE), []) == (it.read_rows(), list_leftovers(it))


def test_without_a_lock_a_dead_write_does_not_stand_in_its_own_way(tmp_path):
    it = make_table(tmp_path / "t", 9)
    file = Path(it.spec.path).parent / "spec.yaml"
    file.write_text(file.read_text().replace("provider: filesystem", "provider: none"))
    it = WriteRuns(replace(spec_again(file), table=it.spec.table))
    it.count = 7
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"_\d+\.commit$"))

    assert 0 == apply_once(it, make_plan(it)).exit_code
    assert (sorted(BEFORE), []) == (it.read_rows(), list_leftovers(it))


def spec_again(file):
    (spec,) = reconciler.load_specs(file)
    return spec


def test_what_late_tasks_wrote_for_a_write_that_is_completed_goes(tmp_path):
    """Its run died before it tidied up; as files of a completed instant they would be read."""
    it = make_table(tmp_path / "t", 9)
    done = it.write(BATCH)
    late = write_late_file(it, done.instant)
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, done.instant)
    heart.write_bytes(process(77).make_owner("dead").encode())

    assert 0 == apply_once(it, make_plan(it)).exit_code

    assert (False, False) == (heart.exists(), Path(it.spec.path, late).exists())
    assert (sorted(AFTER), []) == (it.read_rows(), list_leftovers(it))


# as people run it

DIES = """\
import os, signal, sys
import pyarrow as pa
import reconciler
from reconciler import runtime
from tests.storage_wrappers import RecordingStorage
from reconciler.transaction.session import RunContext
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.local import LocalWriter
from reconciler.writer.table_opening import open_for_writing
from reconciler.writer.run import run_write

class Dies(RecordingStorage):
    def create(self, path, data):
        if path.endswith('.commit'):
            os.kill(os.getpid(), signal.SIGKILL)
        super().create(path, data)

(spec,) = reconciler.load_specs(sys.argv[1])
storage = Dies(runtime.open_storage(spec.path))
context = RunContext(open_storage=lambda *_: storage, clock=runtime.SystemClock(),
                     process=runtime.current_process(), report_wait=lambda *_: None,
                     check_stop=lambda: None)
batch = pa.RecordBatch.from_pylist([{'id': 1, 'p': 'a', 'ts': 2, 'x': 'ONE'},
                                    {'id': 4, 'p': 'c', 'ts': 1, 'x': 'four'}])
request = WriteRequest(mode=WriteMode.UPSERT, rows=[[batch]], schema=batch.schema)
session, announced = open_for_writing(spec, storage, context, runtime.new_token(), request)
run_write(session, spec, request, LocalWriter(storage), announced=announced)
"""


def test_a_killed_process_has_its_write_taken_back_by_the_command(tmp_path, capfd):
    (tmp_path / "t").mkdir()
    it = WriteRuns(write_spec(tmp_path / "t"))
    it.clock.ms = 1_700_000_000_000
    it.write(make_rows(*BEFORE))
    spec = tmp_path / "t" / "spec.yaml"
    died = subprocess.run([sys.executable, "-c", DIES, spec], check=False)
    assert -signal.SIGKILL == died.returncode
    instant = find_pending_instant(it)

    assert 2 == run("plan", spec, "--detailed-exitcode")
    shown = capfd.readouterr().out
    assert "Applying rolls back 1 dead write and removes no other files." in shown
    assert f"- rollback commit {instant}, 2 files: commit {instant} of " in " ".join(shown.split())
    assert 0 == run("status", spec)
    assert "its process is dead" in " ".join(capfd.readouterr().out.split())

    assert 0 == run("apply", spec, "--auto-approve", "--master", "no Spark is needed")

    shown = capfd.readouterr().out
    assert f"rollback {instant}" in shown
    assert "rolled back the dead write" in " ".join(shown.split())
    assert ([], [], sorted(BEFORE)) == (
        list_leftovers(it),
        list_instant_files(it, instant),
        it.read_rows(),
    )
    assert not list(get_timeline_folder(it).glob(f"{instant}*"))
    assert 0 == run("plan", spec, "--detailed-exitcode")
