"""What no apply takes back: what lives, what is another's, and what nobody has reviewed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.names import BaseName
from reconciler.plan.decode import no_names
from reconciler.planners.rollback import plan_rollbacks
from reconciler.render.applied import result_markdown
from reconciler.render.notice import of_result
from reconciler.render.result import result_text
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.storage.wrappers import Recording
from reconciler.transaction import undo
from reconciler.transaction.store_clock import CLOCK_FILE
from tests.crash.drill import Killed, process
from tests.crash.rolling import (
    PLANNER,
    applied,
    declared,
    died,
    everything,
    files_of,
    named,
    named_by,
    planned,
    steps_of,
    writes_late,
)
from tests.crash.writing import (
    AFTER,
    BATCH,
    BEFORE,
    LATE,
    at_time,
    begun,
    completed_name,
    dies_at,
    instant_now,
    left,
    put,
    rolls_back,
    said_by,
)
from tests.written import rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return died(tmp_path / "t", request.param)


def test_a_write_that_lives_has_no_step(it):
    assert () == steps_of(planned(it, living=frozenset({2})))


def test_a_write_of_another_host_has_a_step_when_it_was_not_heard_of_for_five_minutes(it):
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, instant_now(it))
    heart.write_bytes(heart.read_bytes().replace(b'"here"', b'"there"'))
    beat_ms = open_storage(it.spec.path).stat(f"{HEARTBEAT_FOLDER}/{heart.name}").modified_ms

    it.clock.ms = beat_ms + 299_000
    assert () == of_the_writes(it)
    it.clock.ms = beat_ms + 301_000
    (step,) = of_the_writes(it)
    assert " of ann on there, process 2 (reconciler test) was left inflight: " in step.because
    assert "nothing was heard of it since " in step.because


def of_the_writes(it):
    """The rollbacks of a plan, whatever the table's clock says of its timeline."""
    state = observe(
        open_storage(it.spec.path),
        it.spec,
        observed_ms=it.clock.now_ms(),
        lives=process(PLANNER).lives,
    )
    return plan_rollbacks(state)


def test_a_pending_write_of_another_tool_has_no_step(it):
    Path(it.spec.path, HEARTBEAT_FOLDER, instant_now(it)).write_bytes(b"")

    assert () == steps_of(planned(it))


@pytest.mark.parametrize("version", [6, 9])
def test_of_a_write_that_lives_after_all_it_is_said_whose_it_is(tmp_path, version):
    it = begun(tmp_path / "t", version)
    with pytest.raises(Killed):
        it.write(BATCH, around=dies_at(r"\.parquet$"))
    plan, before = planned(it), everything(it)

    result = applied(it, plan, living=frozenset({2}))

    assert 6 == result.exit_code
    assert "is the work of ann on here, process 2 (reconciler test), which still runs" in (
        result.tables[0].error
    )
    assert before == everything(it)


@pytest.mark.parametrize("version", [6, 9])
def test_a_clock_that_is_fast_takes_no_living_write_back(tmp_path, version):
    it = begun(tmp_path / "t", version)
    with pytest.raises(Killed):
        it.write(BATCH, around=dies_at(r"\.parquet$"))
    plan = planned(it)
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, instant_now(it))
    beat_ms = open_storage(it.spec.path).stat(f"{HEARTBEAT_FOLDER}/{heart.name}").modified_ms
    it.clock.ms = max(it.clock.ms, beat_ms) + 3_600_000
    before = everything(it)

    busy = applied(it, plan, host="elsewhere", around=at_time(beat_ms + 299_000))
    assert (6, before) == (busy.exit_code, everything(it))
    assert "is the work of ann on here, process 2" in busy.tables[0].error

    done = applied(it, plan, host="elsewhere", around=at_time(beat_ms + 301_000))
    assert (0, []) == (done.exit_code, left(it))
    assert not Path(it.spec.path, CLOCK_FILE).exists()


@pytest.mark.parametrize(
    ("folder", "is_marked"), [("p=b", True), ("p=b", False), ("p=new", True), ("p=new", False)]
)
def test_a_file_that_came_after_the_review_keeps_the_write_until_it_is_reviewed(
    it, folder, is_marked
):
    plan, instant = planned(it), instant_now(it)
    late = writes_late(it, instant, folder, is_marked=is_marked)
    before = everything(it)

    result = applied(it, plan)

    (done,) = result.tables[0].outcomes
    assert (4, "nothing", None) == (result.exit_code, done.how, done.instant)
    assert {late} | set(files_of(it, instant)) == set(named_by(done.left_out))
    assert any("the plan does not name it" in because for because, _ in done.left_out.reasons())
    assert before == everything(it)

    anew = planned(it)
    assert late in named(steps_of(anew)[0])
    assert 0 == applied(it, anew).exit_code
    assert ([], [], sorted(BEFORE)) == (left(it), files_of(it, instant), it.rows())


def test_a_file_that_comes_while_the_write_is_taken_back_keeps_it_pending(it):
    plan, instant = planned(it), instant_now(it)
    late = []

    class Late(Recording):
        def delete_many(self, paths):
            if not late and any(path.endswith(".parquet") for path in paths):
                late.append(writes_late(it, instant))
            return super().delete_many(paths)

    result = applied(it, plan, around=Late)

    (done,) = result.tables[0].outcomes
    assert (4, "nothing", 2) == (result.exit_code, done.how, done.removed)
    assert (late, late) == (named_by(done.left_out), files_of(it, instant))
    assert sorted(BEFORE) == it.rows()
    assert 0 == applied(it, planned(it)).exit_code
    assert ([], []) == (left(it), files_of(it, instant))


def test_a_write_that_was_completed_after_the_review_stays(it):
    plan, instant = planned(it), instant_now(it)
    files = files_of(it, instant)
    stats = {
        path.partition("/")[0]: [{"fileId": BaseName.parse(Path(path).name).file_id, "path": path}]
        for path in files
    }
    record = {"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": {}}
    put(it, completed_name(it, instant, "commit"), said_by(it, record, "HoodieCommitMetadata"))

    result = applied(it, plan)

    (done,) = result.tables[0].outcomes
    assert (4, files) == (result.exit_code, files_of(it, instant))
    assert [("its write was completed after the review, so it is the table's", 2)] == [
        *done.left_out.reasons()
    ]


def test_what_a_rollback_of_hudi_is_about_to_undo_is_left_to_it(it):
    plan = planned(it)
    rolls_back(it, instant_now(it))
    before = everything(it)

    result = applied(it, plan)

    assert 6 == result.exit_code
    assert "a rollback of commit" in result.tables[0].error
    assert before == everything(it)


def test_what_a_rollback_of_hudi_is_about_to_undo_is_not_planned(it):
    rolls_back(it, instant_now(it))

    plan = planned(it)

    assert () == steps_of(plan)
    assert "pendingRollback" in [note.rule for note in plan.tables[0].warnings]


def test_a_rollback_of_another_write_is_no_reason_to_leave_one(it):
    rolls_back(it, "20261130000000000")

    assert ["rollback"] == [step.kind for step in steps_of(planned(it))]


def test_a_rollback_that_does_not_say_what_it_undoes_does_not_stop_the_plan(it):
    rolls_back(it, instant_now(it))
    put(it, f"{LATE}.rollback.requested")

    assert ["rollback"] == [step.kind for step in steps_of(planned(it))]


def test_what_came_after_a_rollback_of_hudi_goes_before_nothing_tells_of_it(it):
    """Once the timeline begins after it, files of an instant that nobody knows would be read."""
    instant = instant_now(it)
    rolls_back(it, instant, is_done=True)
    late = writes_late(it, instant)
    assert {late} == set(files_of(it, instant))

    result = applied(it, planned(it))

    assert (0, [], sorted(BEFORE)) == (result.exit_code, files_of(it, instant), it.rows())
    assert [] == left(it)  # the metadata table had heard of the write


def test_what_came_after_a_rollback_of_hudi_waits_for_the_lock(it):
    instant = instant_now(it)
    rolls_back(it, instant, is_done=True)
    writes_late(it, instant)
    plan = planned(it)
    Path(it.spec.path, ".hoodie/lock").write_bytes(b"")
    before = everything(it)

    result = applied(it, plan)

    assert (6, before) == (result.exit_code, everything(it))


def test_a_write_whose_heartbeat_is_gone_is_nobodys_to_take_back(it):
    plan = planned(it)
    Path(it.spec.path, HEARTBEAT_FOLDER, instant_now(it)).unlink()
    before = everything(it)

    result = applied(it, plan)

    assert (6, before) == (result.exit_code, everything(it))
    assert "has no heartbeat of ours any more" in result.tables[0].error


def test_a_write_that_the_metadata_table_cannot_forget_stops_no_other_step(tmp_path, monkeypatch):
    it = declared(begun(tmp_path / "t", 9), "retention: {commits: 1}")
    for ts in range(2, 5):
        it.write(rows((1, "a", ts, f"{ts}")))
    with pytest.raises(Killed):
        it.write(BATCH, around=dies_at(r"_\d+\.commit$"))
    instant, files = instant_now(it), files_of(it, instant_now(it))
    said = "a log file holds blocks of other instants, too"

    def shared(*_, **__):
        raise UnsupportedError(said)

    monkeypatch.setattr(undo, "earlier_attempt", shared)
    result = applied(it, planned(it))

    rollback, clean = result.tables[0].outcomes
    assert (5, "failed", None) == (result.exit_code, rollback.how, rollback.instant)
    assert [said] == [note.because for note in rollback.warnings]
    assert ("clean", "completed") == (clean.kind, clean.how)
    assert files == files_of(it, instant)
    for shown in (result_text(result, color=False), result_markdown(result)):
        assert said in " ".join(shown.split())
    assert any(said in sentence for sentence in of_result(result)[0].because)
    assert "rollback" in [step.kind for step in steps_of(planned(it))]


def test_what_a_write_has_taken_back_meanwhile_is_done(it):
    plan = planned(it)
    it.write(BATCH)

    result = applied(it, plan)

    (done,) = result.tables[0].outcomes
    assert (0, "nothing", 2) == (result.exit_code, done.how, done.gone)
    assert (sorted(AFTER), []) == (it.rows(), left(it))


def test_a_plan_that_names_files_of_others_deletes_none_of_them(it):
    """Somebody has edited and sealed it again."""
    plan, instant = planned(it), instant_now(it)
    (step,) = steps_of(plan)
    committed = next(path for path in Path(it.spec.path, "p=b").glob("*.parquet"))
    names = [*step.files.name.to_pylist(), committed.name]
    partitions = [*step.files.partition.to_pylist(), "p=b"]
    edited = replace(step, files=sorted_names(partitions, names))
    table = replace(plan.tables[0], steps=(edited,))

    result = applied(it, replace(plan, tables=(table,)))

    assert (0, True) == (result.exit_code, committed.exists())
    assert ([], [], sorted(BEFORE)) == (left(it), files_of(it, instant), it.rows())


def sorted_names(partitions, names):
    pairs = sorted(zip(partitions, names, strict=True))
    empty = no_names()
    return replace(
        empty,
        partition=pa.array([path for path, _ in pairs], pa.string()).dictionary_encode(),
        name=pa.array([name for _, name in pairs], pa.string()),
    )
