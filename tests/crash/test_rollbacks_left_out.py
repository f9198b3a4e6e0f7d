"""What no apply takes back: what lives, what is another's, and what nobody has reviewed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.planners.recovery.rollback_write import plan_rollbacks
from reconciler.plans.decode import empty_named_files
from reconciler.render.result import result_text
from reconciler.render.result_markdown import result_markdown
from reconciler.render.terminal import Terminal
from reconciler.render.webhook_notice import result_notices
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.process import CLOCK_FILE
from reconciler.transaction.recovery import pending_instants
from tests.crash.dead_writes import (
    PLANNER,
    add_spec_line,
    apply_once,
    get_steps,
    list_instant_files,
    list_names,
    list_step_files,
    make_dead_write,
    make_plan,
    read_all_files,
    write_late_file,
)
from tests.crash.drill import Killed, process
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    LATE,
    die_at,
    encode_completed,
    find_pending_instant,
    list_leftovers,
    make_completed_name,
    make_table,
    put_timeline_file,
    set_store_clock,
    write_rollback,
)
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make_dead_write(tmp_path / "t", request.param)


def test_a_write_that_lives_has_no_step(it):
    assert () == get_steps(make_plan(it, living=frozenset({2})))


def test_a_write_of_another_host_has_a_step_when_it_was_not_heard_of_for_five_minutes(it):
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, find_pending_instant(it))
    heart.write_bytes(heart.read_bytes().replace(b'"here"', b'"there"'))
    beat_ms = open_storage(it.spec.path).stat(f"{HEARTBEAT_FOLDER}/{heart.name}").modified_ms

    it.clock.ms = beat_ms + 299_000
    assert () == of_the_writes(it)
    it.clock.ms = beat_ms + 301_000
    (step,) = of_the_writes(it)
    assert " of ann on there, process 2 (reconciler test) was left inflight: " in step.because
    assert "its last heartbeat was at " in step.because


def of_the_writes(it):
    """The rollbacks of a plan, whatever the table's clock says of its timeline."""
    state = observe(
        open_storage(it.spec.path),
        it.spec,
        observed_ms=it.clock.now_ms(),
        check_process=process(PLANNER).is_alive,
    )
    return plan_rollbacks(state)


def test_a_pending_write_of_another_tool_has_no_step(it):
    Path(it.spec.path, HEARTBEAT_FOLDER, find_pending_instant(it)).write_bytes(b"")

    assert () == get_steps(make_plan(it))


@pytest.mark.parametrize("version", [6, 9])
def test_of_a_write_that_lives_after_all_it_is_said_whose_it_is(tmp_path, version):
    it = make_table(tmp_path / "t", version)
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.parquet$"))
    plan, before = make_plan(it), read_all_files(it)

    result = apply_once(it, plan, living=frozenset({2}))

    assert 6 == result.exit_code
    assert "is the work of ann on here, process 2 (reconciler test), which still runs" in (
        result.tables[0].error
    )
    assert before == read_all_files(it)


@pytest.mark.parametrize("version", [6, 9])
def test_a_clock_that_is_fast_takes_no_living_write_back(tmp_path, version):
    it = make_table(tmp_path / "t", version)
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.parquet$"))
    plan = make_plan(it)
    heart = Path(it.spec.path, HEARTBEAT_FOLDER, find_pending_instant(it))
    beat_ms = open_storage(it.spec.path).stat(f"{HEARTBEAT_FOLDER}/{heart.name}").modified_ms
    it.clock.ms = max(it.clock.ms, beat_ms) + 3_600_000
    before = read_all_files(it)

    busy = apply_once(it, plan, host="elsewhere", around=set_store_clock(beat_ms + 299_000))
    assert (6, before) == (busy.exit_code, read_all_files(it))
    assert "is the work of ann on here, process 2" in busy.tables[0].error

    done = apply_once(it, plan, host="elsewhere", around=set_store_clock(beat_ms + 301_000))
    assert (0, []) == (done.exit_code, list_leftovers(it))
    assert not Path(it.spec.path, CLOCK_FILE).exists()


@pytest.mark.parametrize(
    ("folder", "is_marked"), [("p=b", True), ("p=b", False), ("p=new", True), ("p=new", False)]
)
def test_a_file_that_came_after_the_review_keeps_the_write_until_it_is_reviewed(
    it, folder, is_marked
):
    plan, instant = make_plan(it), find_pending_instant(it)
    late = write_late_file(it, instant, folder, is_marked=is_marked)
    before = read_all_files(it)

    result = apply_once(it, plan)

    (done,) = result.tables[0].outcomes
    assert (4, "nothing", None) == (result.exit_code, done.how, done.instant)
    assert {late} | set(list_instant_files(it, instant)) == set(list_names(done.left_out))
    assert any(
        "the plan does not name it" in because for because, _ in done.left_out.count_reasons()
    )
    assert before == read_all_files(it)

    anew = make_plan(it)
    assert late in list_step_files(get_steps(anew)[0])
    assert 0 == apply_once(it, anew).exit_code
    assert ([], [], sorted(BEFORE)) == (
        list_leftovers(it),
        list_instant_files(it, instant),
        it.read_rows(),
    )


def test_a_file_that_comes_while_the_write_is_taken_back_keeps_it_pending(it):
    plan, instant = make_plan(it), find_pending_instant(it)
    late = []

    class Late(RecordingStorage):
        def delete_many(self, paths):
            if not late and any(path.endswith(".parquet") for path in paths):
                late.append(write_late_file(it, instant))
            return super().delete_many(paths)

    result = apply_once(it, plan, around=Late)

    (done,) = result.tables[0].outcomes
    assert (4, "nothing", 2) == (result.exit_code, done.how, done.removed)
    assert (late, late) == (list_names(done.left_out), list_instant_files(it, instant))
    assert sorted(BEFORE) == it.read_rows()
    assert 0 == apply_once(it, make_plan(it)).exit_code
    assert ([], []) == (list_leftovers(it), list_instant_files(it, instant))


def test_a_write_that_was_completed_after_the_review_stays(it):
    plan, instant = make_plan(it), find_pending_instant(it)
    files = list_instant_files(it, instant)
    stats = {
        path.partition("/")[0]: [{"fileId": BaseName.parse(Path(path).name).file_id, "path": path}]
        for path in files
    }
    record = {"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": {}}
    put_timeline_file(
        it,
        make_completed_name(it, instant, "commit"),
        encode_completed(it, record, "HoodieCommitMetadata"),
    )

    result = apply_once(it, plan)

    (done,) = result.tables[0].outcomes
    assert (4, files) == (result.exit_code, list_instant_files(it, instant))
    assert [("its write was completed after the review, so it is the table's", 2)] == [
        *done.left_out.count_reasons()
    ]


def test_what_a_rollback_of_hudi_is_about_to_undo_is_left_to_it(it):
    plan = make_plan(it)
    write_rollback(it, find_pending_instant(it))
    before = read_all_files(it)

    result = apply_once(it, plan)

    assert 6 == result.exit_code
    assert "a rollback of commit" in result.tables[0].error
    assert before == read_all_files(it)


def test_what_a_rollback_of_hudi_is_about_to_undo_is_not_planned(it):
    write_rollback(it, find_pending_instant(it))

    plan = make_plan(it)

    assert () == get_steps(plan)
    assert "pendingRollback" in [note.rule for note in plan.tables[0].warnings]


def test_a_rollback_of_another_write_is_no_reason_to_leave_one(it):
    write_rollback(it, "20261130000000000")

    assert ["rollback"] == [step.kind for step in get_steps(make_plan(it))]


def test_a_rollback_that_does_not_say_what_it_undoes_does_not_stop_the_plan(it):
    write_rollback(it, find_pending_instant(it))
    put_timeline_file(it, f"{LATE}.rollback.requested")

    assert ["rollback"] == [step.kind for step in get_steps(make_plan(it))]


def test_what_came_after_a_rollback_of_hudi_goes_before_nothing_tells_of_it(it):
    """Once the timeline begins after it, files of an instant that nobody knows would be read."""
    instant = find_pending_instant(it)
    write_rollback(it, instant, is_done=True)
    late = write_late_file(it, instant)
    assert {late} == set(list_instant_files(it, instant))

    result = apply_once(it, make_plan(it))

    assert (0, [], sorted(BEFORE)) == (
        result.exit_code,
        list_instant_files(it, instant),
        it.read_rows(),
    )
    assert [] == list_leftovers(it)  # the metadata table had heard of the write


def test_what_came_after_a_rollback_of_hudi_waits_for_the_lock(it):
    instant = find_pending_instant(it)
    write_rollback(it, instant, is_done=True)
    write_late_file(it, instant)
    plan = make_plan(it)
    Path(it.spec.path, ".hoodie/lock").write_bytes(b"")
    before = read_all_files(it)

    result = apply_once(it, plan)

    assert (6, before) == (result.exit_code, read_all_files(it))


def test_a_write_whose_heartbeat_is_gone_is_nobodys_to_take_back(it):
    plan = make_plan(it)
    Path(it.spec.path, HEARTBEAT_FOLDER, find_pending_instant(it)).unlink()
    before = read_all_files(it)

    result = apply_once(it, plan)

    assert (6, before) == (result.exit_code, read_all_files(it))
    assert "has no heartbeat of ours any more" in result.tables[0].error


def test_a_write_that_the_metadata_table_cannot_forget_stops_no_other_step(tmp_path, monkeypatch):
    it = add_spec_line(make_table(tmp_path / "t", 9), "retention: {commits: 1}")
    for ts in range(2, 5):
        it.write(make_rows((1, "a", ts, f"{ts}")))
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"_\d+\.commit$"))
    instant, files = find_pending_instant(it), list_instant_files(it, find_pending_instant(it))
    said = "a log file holds blocks of other instants, too"

    def shared(*_, **__):
        raise UnsupportedError(said)

    monkeypatch.setattr(pending_instants, "find_earlier_attempt", shared)
    result = apply_once(it, make_plan(it))

    rollback, clean = result.tables[0].outcomes
    assert (5, "failed", None) == (result.exit_code, rollback.how, rollback.instant)
    assert [said] == [note.because for note in rollback.warnings]
    assert ("clean", "completed") == (clean.kind, clean.how)
    assert files == list_instant_files(it, instant)
    for shown in (result_text(result, Terminal()), result_markdown(result)):
        assert said in " ".join(shown.split())
    assert any(said in sentence for sentence in result_notices(result)[0].because)
    assert "rollback" in [step.kind for step in get_steps(make_plan(it))]


def test_what_a_write_has_taken_back_meanwhile_is_done(it):
    plan = make_plan(it)
    it.write(BATCH)

    result = apply_once(it, plan)

    (done,) = result.tables[0].outcomes
    assert (0, "nothing", 2) == (result.exit_code, done.how, done.gone)
    assert (sorted(AFTER), []) == (it.read_rows(), list_leftovers(it))


def test_a_plan_that_names_files_of_others_deletes_none_of_them(it):
    """Somebody has edited and sealed it again."""
    plan, instant = make_plan(it), find_pending_instant(it)
    (step,) = get_steps(plan)
    committed = next(path for path in Path(it.spec.path, "p=b").glob("*.parquet"))
    names = [*step.files.name.to_pylist(), committed.name]
    partitions = [*step.files.partition.to_pylist(), "p=b"]
    edited = replace(step, files=sorted_names(partitions, names))
    table = replace(plan.tables[0], steps=(edited,))

    result = apply_once(it, replace(plan, tables=(table,)))

    assert (0, True) == (result.exit_code, committed.exists())
    assert ([], [], sorted(BEFORE)) == (
        list_leftovers(it),
        list_instant_files(it, instant),
        it.read_rows(),
    )


def sorted_names(partitions, names):
    pairs = sorted(zip(partitions, names, strict=True))
    empty = empty_named_files()
    return replace(
        empty,
        partition=pa.array([path for path, _ in pairs], pa.string()).dictionary_encode(),
        name=pa.array([name for _, name in pairs], pa.string()),
    )
