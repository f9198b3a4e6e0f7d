"""A compaction is left to others where they work on it, and is never completed twice."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace

import pytest

from reconciler.hudi.timeline.heartbeat import DEAD_AFTER_S
from tests.crash.compaction_drill import Overtaken, get_step, make_compacting
from tests.crash.drill import Killed, process
from tests.crash.failed_write_drill import list_unlisted
from tests.crash.write_drill import act_after
from tests.our_compaction import find_timeline
from tests.selection import long

REQUESTED = [".compaction.requested"]
BEGUN = [".compaction.inflight", ".compaction.requested"]
FINISHED = [".commit", ".compaction.requested"]
#: as Hudi finishes it
BY_HUDI = [".commit", ".compaction.inflight", ".compaction.requested"]
NOW_S = 1_796_083_200


@pytest.fixture(params=["0.15.0", long("1.2.0")])
def it(request, tmp_path):
    return make_compacting(request.param, tmp_path)


def touch(path, seconds=NOW_S):
    """Make an empty file that was written when the drill runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (seconds, seconds))


def complete_as_hudi(it, tmp_path):
    """Complete the compaction with the files of Hudi's own run of it."""
    version = "0.15.0" if not (it.table / ".hoodie/timeline").is_dir() else "1.2.0"
    done = make_compacting(version, tmp_path / "hudis", "done").table
    for file in done.rglob(f"*{it.instant}*"):
        relative = file.relative_to(done)
        if file.is_file() and ".temp" not in relative.parts and "metadata" not in relative.parts:
            shutil.copy2(file, it.table / relative)
    return sorted(path.name for path in done.rglob(f"*_{it.instant}.parquet"))


@pytest.mark.parametrize("sign", [long("heartbeat"), "marker"])
def test_a_compaction_whose_writer_works_on_it_is_not_taken(it, sign):
    plan = it.plan()
    hoodie = it.table / ".hoodie"
    path = hoodie / ".heartbeat" / it.instant
    if sign == "marker":
        path = hoodie / ".temp" / it.instant / "a" / "f_0-1-2_1.parquet.marker.MERGE"
    touch(path)

    result = it.apply(plan)

    assert (6, REQUESTED) == (result.exit_code, it.list_states())
    assert "compaction" in result.tables[0].error
    assert "plan again" in result.tables[0].error
    assert () == it.plan().tables[0].steps


def test_a_writer_that_begins_between_plan_and_apply_keeps_it(it):
    plan = it.plan()
    touch(find_timeline(it.table) / f"{it.instant}.compaction.inflight")

    result = it.apply(plan)

    assert (6, []) == (result.exit_code, it.list_written())
    assert not (it.table / ".hoodie/.heartbeat" / it.instant).exists()


def test_a_compaction_that_was_completed_meanwhile_is_nothing_to_do(it, tmp_path):
    plan = it.plan()
    hudis = complete_as_hudi(it, tmp_path)

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (0, "nothing") == (result.exit_code, outcome.how)
    assert hudis == sorted(path.rpartition("/")[2] for path in it.list_written())


def test_a_compaction_that_hudi_completes_while_we_work_is_adopted(it, tmp_path):
    rows, hudis = it.rows(), []
    result = it.apply(
        it.plan(), rewriter=Overtaken(lambda: hudis.extend(complete_as_hudi(it, tmp_path)))
    )

    (outcome,) = result.tables[0].outcomes
    assert (0, "adopted", ()) == (result.exit_code, outcome.how, outcome.differences)
    assert hudis == sorted(path.rpartition("/")[2] for path in it.list_written())
    assert (rows, BY_HUDI, []) == (it.rows(), it.list_states(), it.list_leftovers())


@pytest.mark.parametrize("fails", [False, long(True)])
def test_a_run_that_comes_back_publishes_nothing_after_another(it, fails):
    rows = it.rows()

    def run_other():
        silent_since = time.time() - DEAD_AFTER_S - 60
        os.utime(it.table / ".hoodie/.heartbeat" / it.instant, (silent_since, silent_since))
        (it.table / ".hoodie/lock").unlink(missing_ok=True)
        other = it.apply(it.plan(), process=replace(process(99), host="there"))
        assert 0 == other.exit_code, other.tables

    result = it.apply(it.plan(), rewriter=Overtaken(run_other, fails))

    assert (1 if fails else 0) == result.exit_code
    assert (rows, FINISHED, 3) == (it.rows(), it.list_states(), len(it.list_written()))
    assert ([], set()) == (it.list_leftovers(), list_unlisted(it))


@pytest.mark.long
def test_a_run_that_comes_back_leaves_the_files_of_one_that_took_over(it):
    def die():
        raise Killed

    def take_over():
        silent_since = time.time() - DEAD_AFTER_S - 60
        os.utime(it.table / ".hoodie/.heartbeat" / it.instant, (silent_since, silent_since))
        with pytest.raises(Killed):
            it.apply(it.plan(), rewriter=Overtaken(die), process=replace(process(99), host="there"))
        theirs.extend(it.list_written())

    rows, theirs = it.rows(), []
    result = it.apply(it.plan(), rewriter=Overtaken(take_over))

    assert (6, 3, theirs) == (result.exit_code, len(theirs), it.list_written())
    assert REQUESTED == it.list_states()
    assert rows == it.rows()


def test_a_writer_that_begins_while_we_wait_for_the_lock_keeps_it(it):
    path = it.table / ".hoodie/.heartbeat" / it.instant

    result = it.apply(it.plan(), around=act_after(r"hoodie/lock$", lambda: touch(path)))

    assert (6, REQUESTED, []) == (result.exit_code, it.list_states(), it.list_written())
    assert "is not left behind: its writer changes the table" in result.tables[0].error
    assert b"" == path.read_bytes()


def test_no_marker_is_left_when_a_compaction_is_completed(it):
    """By them, a writer that comes back would remove our files."""
    folder, left = it.table / ".hoodie/.temp" / it.instant, []
    look = act_after(r"/[\d_]+\.commit$", lambda: left.append(folder.exists()))
    result = it.apply(it.plan(), around=look)

    assert (0, [False]) == (result.exit_code, left)


def test_files_that_a_writer_removes_as_it_comes_back_are_not_published(it):
    """Of what Hudi finds by marker it removes all that it did not write itself."""
    rows, lost = it.rows(), []

    def come_back():
        lost.extend(it.table / path for path in it.list_written())
        for path in lost:
            path.unlink()

    waking = act_after(rf"\.hoodie/\.temp/{it.instant}$", come_back)
    result = it.apply(it.plan(), around=waking)

    assert (6, 3, REQUESTED, []) == (
        result.exit_code,
        len(lost),
        it.list_states(),
        it.list_written(),
    )
    assert rows == it.rows()
    assert 0 == it.apply(it.plan()).exit_code
    assert (rows, FINISHED, 3) == (it.rows(), it.list_states(), len(it.list_written()))


@pytest.mark.parametrize("fails", [False, long(True)])
def test_a_writer_that_begins_while_we_work_keeps_it(it, fails):
    """The writer's inflight file stays, and nothing of ours: it is not taken over again at once."""
    inflight = find_timeline(it.table) / f"{it.instant}.compaction.inflight"
    rows = it.rows()
    result = it.apply(it.plan(), rewriter=Overtaken(lambda: touch(inflight), fails))

    assert (1 if fails else 6, BEGUN, []) == (
        result.exit_code,
        it.list_states(),
        it.list_written(),
    )
    assert fails or "another writer has taken over compaction" in result.tables[0].error
    assert (rows, ()) == (it.rows(), it.plan().tables[0].steps)
    os.utime(inflight, (NOW_S - 7 * 3600, NOW_S - 7 * 3600))
    assert "of another writer was left inflight" in get_step(it.plan()).because
    assert 0 == it.apply(it.plan()).exit_code
    assert (rows, FINISHED, 3) == (it.rows(), it.list_states(), len(it.list_written()))


@pytest.mark.parametrize("state", ["requested", long("inflight")])
def test_a_writer_that_begins_as_we_have_taken_it_over_keeps_it(tmp_path, state):
    it = make_compacting("0.15.0", tmp_path, state)
    inflight = find_timeline(it.table) / f"{it.instant}.compaction.inflight"
    before = it.list_written()
    begin = act_after(rf"heartbeat/{it.instant}$", lambda: touch(inflight))
    result = it.apply(it.plan(), around=begin)

    assert (6, BEGUN, before) == (result.exit_code, it.list_states(), it.list_written())
    assert "another writer has taken over compaction" in result.tables[0].error


def test_a_run_beside_a_living_one_is_turned_away(it):
    codes = []

    def run_other():
        other = it.apply(it.plan(), pid=99, living=frozenset({7}))
        codes.append((other.exit_code, other.tables[0].error))

    result = it.apply(it.plan(), pid=7, rewriter=Overtaken(run_other))

    assert 0 == result.exit_code
    assert [6] == [code for code, _error in codes]


def test_files_that_another_writer_has_removed_are_not_published(it):
    def take_over():
        for path in it.list_written():
            (it.table / path).unlink()

    result = it.apply(it.plan(), rewriter=Overtaken(take_over))

    assert (6, REQUESTED) == (result.exit_code, it.list_states())
    assert "taken over" in result.tables[0].error
    assert 0 == it.apply(it.plan()).exit_code


def test_a_failure_takes_the_compaction_back_to_requested(it):
    rows = it.rows()
    result = it.apply(it.plan(), rewriter=Overtaken(lambda: None, fails=True))

    assert (1, REQUESTED, []) == (result.exit_code, it.list_states(), it.list_written())
    assert rows == it.rows()
    assert 0 == it.apply(it.plan()).exit_code
    assert (rows, FINISHED) == (it.rows(), it.list_states())


@pytest.mark.parametrize("how", ["cut", long("missing")])
def test_a_damaged_or_missing_input_is_named_and_nothing_is_published(it, how):
    plan = it.plan()
    name = get_step(plan).groups.base.to_pylist()[0]
    path = it.table / "a" / name
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        path.unlink()

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (5, "failed") == (result.exit_code, outcome.how)
    (warning,) = outcome.warnings
    assert ("compaction", True) == (warning.rule, f"a/{name}: " in warning.because)
    assert (REQUESTED, [], []) == (it.list_states(), it.list_written(), it.list_leftovers())


def test_no_plan_promises_to_finish_a_compaction_without_its_input(it):
    name = get_step(it.plan()).groups.base.to_pylist()[0]
    (it.table / "a" / name).unlink()
    (table,) = it.plan().tables

    (note,) = [note.because for note in table.warnings if note.rule == "pendingCompaction"]
    assert () == table.steps
    assert f"it cannot be finished here: a/{name}: is missing" in note
    assert note.endswith("(1 file in all); restore it, or roll the compaction back")


def test_a_log_file_that_was_cut_off_is_named_before_its_rows_are_lost(it):
    name = get_step(it.plan()).groups.logs.to_pylist()[0][0]
    path = it.table / "a" / name
    path.write_bytes(path.read_bytes()[:-100])

    result = it.apply(it.plan())

    (outcome,) = result.tables[0].outcomes
    (warning,) = outcome.warnings
    assert (5, "failed", True) == (result.exit_code, outcome.how, name in warning.because)
    assert (REQUESTED, []) == (it.list_states(), it.list_written())


def test_an_attempt_of_ours_is_finished_whatever_the_spec_says(it, tmp_path):
    def die():
        raise Killed

    with pytest.raises(Killed):
        it.apply(it.plan(), rewriter=Overtaken(die))
    assert 3 == len(it.list_written())
    later = it.copy(tmp_path / "later", pending="{}")

    step = get_step(later.plan())
    result = later.apply(later.plan())

    assert "by an earlier apply" in step.because
    assert (0, FINISHED, 3) == (
        result.exit_code,
        later.list_states(),
        len(later.list_written()),
    )


def test_the_next_plan_cleans_what_the_compaction_has_released(it, tmp_path):
    few = it.copy(tmp_path / "few", commits="1")
    rows, plan = few.rows(), few.plan()
    assert ["resume"] == [step.kind for step in plan.tables[0].steps]
    few.apply(plan)

    result = few.apply(few.plan())

    (outcome,) = result.tables[0].outcomes
    assert (0, "clean", True) == (result.exit_code, outcome.kind, outcome.removed >= 6)
    assert (rows, 3, set()) == (few.rows(), len(few.list_written()), list_unlisted(few))


def test_without_a_lock_a_compaction_stays(it, tmp_path):
    unlocked = it.copy(tmp_path / "unlocked", lock="none")
    (table,) = unlocked.plan().tables

    assert () == table.steps
    (warning,) = (note for note in table.warnings if note.rule == "pendingCompaction")
    assert "without a lock it cannot be known to be left behind" in warning.because
