"""A failed write of another writer is rolled back as it was reviewed, wherever an apply dies."""

from __future__ import annotations

import shutil

import pytest

from reconciler.file_slices.merge.committed_blocks import CommittedInstants, read_committed_blocks
from reconciler.hudi.timeline.instant import Action, Instant, State
from tests.crash.drill import Killed, list_data_files, list_traces
from tests.crash.failed_write_drill import (
    FAILED,
    age,
    declare_pending,
    get_step,
    list_instant_names,
    list_named,
    list_unlisted,
    list_visible,
    make_failed,
)
from tests.crash.write_drill import act_after, die_at
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.timeline_payloads import decode_instant_file

#: a table per version, type and way of a rollback; the others repeat one
COVERING = ("v6_failed_mor", "v6_lazy_mor_tls", "v6_cow_part", "v8_mor_part", "v9_lazy_cow_tls")
EVERY = [name if name in COVERING else long(name) for name in FAILED]


def list_rollbacks(it):
    """Return the files of rollbacks on the timeline by their state."""
    state = it.state()
    found = [f for f in state.timeline.files if f.instant.action is Action.ROLLBACK]
    newest = max(file.instant.requested for file in found)
    return {f.instant.state: f for f in found if f.instant.requested == newest}


def read_rollback(it, state):
    file = list_rollbacks(it)[state]
    folder = it.table / (".hoodie/timeline" if it.state().layout > 1 else ".hoodie")
    return decode_instant_file(file.instant, (folder / file.name).read_bytes(), file.name)


@pytest.mark.parametrize("name", EVERY)
def test_a_failed_write_is_rolled_back_and_planned_no_more(tmp_path, name):
    it = make_failed(name, tmp_path)
    visible, files = list_visible(it), list_data_files(it.table)
    plan = it.plan()
    step = get_step(plan)
    assert list_instant_names(it, step.instant)

    result = it.apply(plan)

    (done,) = [one for one in result.tables[0].outcomes if one.kind == "rollback"]
    assert (0, "completed", len(step.files), 0) == (
        result.exit_code,
        done.how,
        done.removed,
        done.gone,
    )
    assert [] == list_instant_names(it, step.instant)
    assert [] == [name for name in list_instant_names(it, done.instant) if ".temp" in name]
    commands = {f"{one.partition}/" for one in step.appends or ()}
    new = list_data_files(it.table) - files
    assert len(commands) == len(new)
    assert set(list_named(step)) == files - list_data_files(it.table)
    assert (visible, set()) == (list_visible(it), list_unlisted(it))
    assert [] == [trace for trace in list_traces(it.table) if "lock" in trace]
    assert () == it.plan().tables[0].steps
    again = it.apply(plan)
    assert (0, "nothing", 0) == (
        again.exit_code,
        again.tables[0].outcomes[0].how,
        again.tables[0].outcomes[0].removed,
    )


@pytest.mark.parametrize("name", EVERY)
def test_the_rollback_is_recorded_as_hudi_records_it(tmp_path, name):
    it = make_failed(name, tmp_path)
    step = get_step(it.plan())
    it.apply(it.plan())
    requested, completed = (read_rollback(it, s) for s in (State.REQUESTED, State.COMPLETED))

    target = {"commitTime": step.instant, "action": step.action}
    assert target == requested["instantToRollback"]
    assert ([target], [step.instant]) == (
        completed["instantsRollback"],
        completed["commitsRollback"],
    )
    planned = [path for r in requested["RollbackRequests"] for path in r["filesToBeDeleted"]]
    assert sorted(planned) == sorted(f"{it.table}/{path}" for path in list_named(step))
    deleted = [p for m in completed["partitionMetadata"].values() for p in m["successDeleteFiles"]]
    assert (sorted(planned), len(planned)) == (sorted(deleted), completed["totalFilesDeleted"])
    logs = [log for m in completed["partitionMetadata"].values() for log in m["rollbackLogFiles"]]
    assert len(step.appends or ()) == len(logs)
    assert 0 == list_rollbacks(it)[State.INFLIGHT].size


def test_command_blocks_cancel_the_rows_of_log_files_that_stay(tmp_path):
    it = make_failed("v6_lazy_mor_tls", tmp_path)
    step = get_step(it.plan())
    append = step.appends[0]

    def read_instants():
        folder = it.table / append.partition
        logs = sorted(folder.glob(f".{append.file_id}_{append.base_instant}.log.*"))
        paths = [str(path.relative_to(it.table)) for path in logs if path.suffix != ".crc"]
        everything = CommittedInstants()
        return [b.instant for b in read_committed_blocks(paths, it.storage.read, everything)]

    before = read_instants()
    it.apply(it.plan())

    assert step.instant in before
    assert [instant for instant in before if instant != step.instant] == read_instants()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_the_apply_stops_the_next_one_ends_it(tmp_path, name, how):
    it = make_failed(name, tmp_path / "first")
    visible = list_visible(it)
    record = []
    copy = it.copy(tmp_path / "calls")
    copy.apply(copy.plan(), around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    changes = sum(len(one.mutations) for one in record)
    assert changes >= 12
    for at in take_turn(range(1, changes + 1), of=12, turn=len(name)):
        copy = it.copy(tmp_path / f"{at}")
        plan = copy.plan()
        instant = get_step(plan).instant
        with pytest.raises(Killed):
            copy.apply(
                plan,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        assert visible == list_visible(copy), at

        result = copy.apply(plan if (at + len(how)) % 2 else copy.plan())
        assert 0 == result.exit_code, (at, result.tables)
        assert ([], set()) == (list_instant_names(copy, instant), list_unlisted(copy)), at
        assert visible == list_visible(copy), at
        copy.apply(copy.plan())
        assert [] == list_pending(copy), at
        assert () == copy.plan().tables[0].steps, at
        shutil.rmtree(tmp_path / f"{at}")


def list_pending(it):
    pending = it.state().timeline.pending({Action.ROLLBACK, Action.COMMIT, Action.DELTACOMMIT})
    return [f"{i.action} {i.requested}" for i in pending]


def test_a_writer_that_beats_again_is_not_rolled_back(tmp_path):
    it = make_failed("v9_lazy_cow_tls", tmp_path)
    plan = it.plan()
    instant = get_step(plan).instant
    beat(it, instant)

    result = it.apply(plan)

    assert (6, []) == (result.exit_code, list_rollback_names(it))
    assert "is not dead: its writer has a heartbeat" in result.tables[0].error
    assert () == it.plan().tables[0].steps


def list_rollback_names(it):
    return sorted(path.name for path in it.table.rglob("*.rollback*"))


def test_a_write_that_completes_before_the_lock_is_the_tables(tmp_path):
    it = make_failed("v9_lazy_cow_tls", tmp_path)
    plan = it.plan()
    step = get_step(plan)
    complete(it, step.instant)

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (4, "nothing", 3) == (result.exit_code, outcome.how, len(outcome.left_out))
    assert set(list_named(step)) <= list_data_files(it.table)


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_file_that_no_review_named_keeps_the_write_pending(tmp_path, is_marked):
    it = make_failed("v9_lazy_cow_tls", tmp_path)
    plan = it.plan()
    step = get_step(plan)
    name = f"99999999-9999-9999-9999-999999999999-0_9-9-9_{step.instant}.parquet"
    (it.table / "p0" / name).write_bytes(b"late")
    if is_marked:
        folder = it.table / ".hoodie/.temp" / step.instant / "p0"
        folder.mkdir(parents=True)
        marker = folder / f"{name}.marker.CREATE"
        marker.touch()
        age(marker, 30 * 86400)

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (4, "nothing", 0, 4) == (
        result.exit_code,
        outcome.how,
        outcome.removed,
        len(outcome.left_out),
    )
    assert set(list_named(step)) <= list_data_files(it.table)
    assert 0 == it.apply(it.plan()).exit_code
    assert [] == list_instant_names(it, step.instant)


def write_late(it, instant):
    """Write a marked file, as a task of the dead writer that still runs."""
    name = f"99999999-9999-9999-9999-999999999999-0_9-9-9_{instant}.parquet"
    marker = it.table / ".hoodie/.temp" / instant / "p0" / f"{name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    age(marker, 30 * 86400)
    (it.table / "p0" / name).write_bytes(b"late")


def beat(it, instant):
    file = it.table / ".hoodie/.heartbeat" / instant
    age(file, int(file.stat().st_mtime) - it.clock.now_ms() // 1000)


def complete(it, instant):
    done = Instant(instant, Action.COMMIT, State.COMPLETED, f"{instant[:-3]}999")
    newest = max((it.table / ".hoodie/timeline").glob("*_*.commit"))
    shutil.copy(newest, it.table / ".hoodie/timeline" / done.file_name)


@pytest.mark.parametrize(
    ("act", "code", "left"), [(write_late, 4, 4), (complete, 4, 3), (beat, 6, None)]
)
def test_what_happens_after_the_rollback_is_announced_takes_it_back(tmp_path, act, code, left):
    it = make_failed("v9_lazy_cow_tls", tmp_path)
    plan = it.plan()
    step = get_step(plan)

    def act_now():
        act(it, step.instant)

    result = it.apply(plan, around=act_after(r"\.rollback\.inflight$", act_now))

    outcomes = result.tables[0].outcomes
    assert (code, []) == (result.exit_code, list_rollback_names(it))
    assert [left] * (left is not None) == [len(one.left_out) for one in outcomes]
    assert set(list_named(step)) <= list_data_files(it.table)


def test_nothing_is_rolled_back_without_a_lock(tmp_path):
    it = make_failed("v9_lazy_cow_tls", tmp_path, lock="none")
    (table,) = it.plan().tables

    assert () == table.steps
    (note,) = [note for note in table.warnings if note.rule == "failedWrite"]
    assert "without a lock it cannot be known to be left behind" in note.because


def leave_rollback(it, pattern):
    """Have an apply die at a file of its rollback, and take it for that of another writer."""
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=die_at(pattern))
    (requested,) = (file for file in it.table.rglob("*.rollback.requested") if is_ours(it, file))
    (it.table / ".hoodie/.heartbeat" / requested.name.partition(".")[0]).unlink()
    (it.table / ".hoodie/lock").unlink(missing_ok=True)
    return get_step(plan), requested


def is_ours(it, file):
    done = [path.name for path in it.table.rglob("*.rollback") if "metadata" not in path.parts]
    instant = file.name.partition(".")[0]
    return "metadata" not in file.parts and not any(name.startswith(instant) for name in done)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("pattern", [r"\d\.rollback$", long(r"\.rollback\.inflight$")])
def test_a_rollback_that_another_writer_left_is_finished(tmp_path, name, pattern):
    it = make_failed(name, tmp_path)
    visible = list_visible(it)
    step, requested = leave_rollback(it, pattern)
    again = get_step(it.plan())

    assert (step.instant, "foreign") == (again.instant, again.writer)
    assert requested.name.startswith(f"{again.rollback}.")
    assert f"rollback {again.rollback} of {step.action} {step.instant} by another" in again.because

    result = it.apply(it.plan())

    (done,) = [one for one in result.tables[0].outcomes if one.kind == "rollback"]
    assert (0, "completed", again.rollback) == (result.exit_code, done.how, done.instant)
    assert ([], set(), visible) == (
        list_instant_names(it, step.instant),
        list_unlisted(it),
        list_visible(it),
    )
    logs = [path for path in it.table.rglob("*1-0-1") if ".hoodie" not in path.parts]
    assert len(step.appends or ()) == len(logs)
    assert () == it.plan().tables[0].steps


def test_a_rollback_of_a_completed_write_is_only_reported(tmp_path):
    it = make_failed("v9_lazy_cow_tls", tmp_path)
    step, _requested = leave_rollback(it, r"\.rollback\.inflight$")
    complete(it, step.instant)
    (table,) = it.plan().tables

    assert () == table.steps
    (note,) = [note for note in table.warnings if note.rule == "failedWrite"]
    assert "it undoes a completed write, whose rows readers see" in note.because


CLUSTERED = ("v6_cow_part", "v9_cow_part")


def make_clustering(name, folder):
    """Unpack a table with a pending clustering, and write a file of it as if it had begun."""
    it = make_failed(name, folder)
    (pending,) = it.state().pending_clusterings
    partition = pending.plan.groups[0].slices[0].partition
    file = f"99999999-9999-9999-9999-999999999999-0_9-9-9_{pending.instant}.parquet"
    marker = it.table / ".hoodie/.temp" / pending.instant / partition / f"{file}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    age(marker, 30 * 86400)
    (it.table / partition / file).write_bytes(b"new")
    return declare_pending(it), pending.instant


@pytest.mark.parametrize("name", CLUSTERED)
def test_a_clustering_that_nobody_finishes_is_rolled_back(tmp_path, name):
    it, instant = make_clustering(name, tmp_path)
    visible = list_visible(it)
    plan = it.plan()
    step = get_step(plan)

    assert (instant, "foreign", 1) == (step.instant, step.writer, len(step.files))
    assert "longer than concurrency.pending.after, 6h; it keeps 1 file group" in step.because
    assert [] == [n for n in plan.tables[0].warnings if n.rule == "pendingClustering"]

    result = it.apply(plan)

    (done,) = [one for one in result.tables[0].outcomes if one.kind == "rollback"]
    assert (0, "completed", 1) == (result.exit_code, done.how, done.removed)
    assert ([], visible) == (list_instant_names(it, instant), list_visible(it))
    assert () == it.state().pending_clusterings
    assert () == it.plan().tables[0].steps


@pytest.mark.parametrize("name", CLUSTERED)
@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_the_rollback_of_a_clustering_stops_the_next_apply_ends_it(tmp_path, name, how):
    it, instant = make_clustering(name, tmp_path / "first")
    visible = list_visible(it)
    record = []
    copy = declare_pending(it.copy(tmp_path / "calls"))
    copy.apply(copy.plan(), around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    changes = sum(len(one.mutations) for one in record)
    for at in take_turn(range(1, changes + 1), of=17, turn=len(name)):
        copy = declare_pending(it.copy(tmp_path / f"{at}"))
        with pytest.raises(Killed):
            copy.apply(
                copy.plan(),
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        result = copy.apply(copy.plan())
        assert 0 == result.exit_code, (at, result.tables)
        copy.apply(copy.plan())
        assert ([], visible) == (list_instant_names(copy, instant), list_visible(copy)), at
        assert () == copy.state().timeline.pending({Action.ROLLBACK}), at
        assert () == copy.plan().tables[0].steps, at
        shutil.rmtree(tmp_path / f"{at}")


@pytest.mark.parametrize(
    ("pending", "lock", "text"),
    [
        ("{clustering: report}", "filesystem", "concurrency.pending.clustering: report leaves it"),
        ("{clustering: rollback}", "none", "without a lock it cannot be known to be left behind"),
        ("{clustering: rollback, after: 90d}", "filesystem", None),
    ],
)
def test_a_clustering_that_stays_is_only_reported(tmp_path, pending, lock, text):
    it = declare_pending(make_failed("v9_cow_part", tmp_path, lock=lock), pending)
    (table,) = it.plan().tables
    notes = [note.because for note in table.warnings if note.rule == "pendingClustering"]

    assert () == table.steps
    assert (text is not None) == bool(notes)
    assert all(text in note for note in notes)
