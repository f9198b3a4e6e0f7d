"""A clustering that its writer left is finished as it was planned, wherever an apply dies."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import replace

import pytest

from reconciler.hudi.files.names import BaseName
from reconciler.hudi.timeline.commit import CommitMetadata, WriteFootprint
from reconciler.hudi.timeline.instant import Action, State
from reconciler.hudi.timeline.plans import SORT_COLUMNS, ClusteringPlan
from reconciler.plans.document import dump_plan, load_plan
from reconciler.plans.model import ResumeStep
from tests.crash.drill import Killed, list_data_files
from tests.crash.failed_write_drill import age, list_named, list_unlisted, list_visible
from tests.crash.finish_drill import (
    ATTEMPT,
    LISTED,
    TABLES,
    begin,
    find_timeline,
    get_pending,
    get_step,
    list_left,
    make_pending,
    touch_now,
)
from tests.crash.test_clustering_races import INSERTS, commit
from tests.crash.test_failed_write_damage import damage
from tests.crash.write_drill import act_after, die_at
from tests.selection import examples, long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

V6, V9 = TABLES
#: the time of a write that begins after all clusterings
LATER = "20261130000000000"
#: damaged files
DAMAGED = examples(6, many=1000)
STORIES = [
    *((name, True) for name in LISTED),
    (V6, False),
    long(V9, False),
    *(long(name, True) for name in TABLES),
    *(long(name, False) for name in LISTED),
]


def make(name, folder, *, is_begun, **said):
    """Unpack a table; ``is_begun``: with what a writer left that died while it executed it."""
    it = make_pending(name, folder, **said)
    return it, get_pending(it), begin(it) if is_begun else []


def list_written(it, instant):
    """Return the data files that are named by an instant."""
    named = ((path, BaseName.parse(path.rpartition("/")[2])) for path in list_data_files(it.table))
    return {path for path, name in named if name is not None and name.instant == instant}


def read_completed(it, instant):
    """Return the replaced groups and the new files of the completed clustering."""
    state = it.state()
    (file,) = (
        file
        for file in state.timeline.files
        if file.instant.requested == instant and file.instant.is_completed
    )
    data = (it.table / find_timeline(it) / file.name).read_bytes()
    return CommitMetadata.parse(data, file.name, replaces=True), {
        f"{partition}/{name}".lstrip("/")
        for partition, name in WriteFootprint.parse(data, file.name).files
    }


def assert_finished(it, instant, rows):
    """Check that the clustering is completed, its files are those that it names, rows are kept."""
    commit, files = read_completed(it, instant)
    assert list_written(it, instant) == files
    assert (rows, [], set()) == (it.rows(), list_left(it), list_unlisted(it))
    assert () == it.plan().tables[0].steps
    return commit


@pytest.mark.parametrize(("name", "is_begun"), STORIES)
def test_a_clustering_is_finished_as_its_writer_planned_it(tmp_path, name, is_begun):
    it, instant, attempt = make(name, tmp_path / "t", is_begun=is_begun)
    rows, (pending,) = it.rows(), it.state().pending_clusterings
    earlier = it.state().timeline.completed({Action.ROLLBACK})
    plan = it.plan()
    step = get_step(plan)

    assert (instant, "foreign") == (step.instant, step.writer)
    assert attempt == ([] if step.attempt is None else list_named(replace_files(step)))
    written = dump_plan(plan)
    edited = json.dumps(json.loads(written), indent=1).encode()
    assert [written] * 2 == [dump_plan(load_plan(data, "p")) for data in (written, edited)]

    result = it.apply(plan)

    (done,) = result.tables[0].outcomes
    assert (0, "resume", "completed", instant, len(attempt)) == (
        result.exit_code,
        done.kind,
        done.how,
        done.instant,
        done.removed,
    )
    commit = assert_finished(it, instant, rows)
    planned = Counter(
        (one.partition, one.file_id) for group in pending.plan.groups for one in group.slices
    )
    replaced = Counter((path, name) for path, ids in commit.replaced.items() for name in ids)
    assert planned == replaced
    outputs = sum(group.output_count for group in pending.plan.groups)
    assert outputs == len(list_written(it, instant))
    states = {f.instant.state for f in it.state().timeline.files if f.instant.requested == instant}
    inflight = {State.INFLIGHT} if it.state().table_version < 8 else set()
    assert {State.REQUESTED, State.COMPLETED} | inflight == states
    assert is_begun == (earlier != it.state().timeline.completed({Action.ROLLBACK}))
    again = it.apply(plan)
    assert (0, "nothing") == (again.exit_code, again.tables[0].outcomes[0].how)


def replace_files(step):
    """Return a step whose files are those of the attempt."""
    return replace(step, files=step.attempt)


@pytest.mark.parametrize(("name", "is_begun"), STORIES)
@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_an_apply_stops_the_next_one_finishes_it(tmp_path, name, is_begun, how):
    it, instant, _attempt = make(name, tmp_path / "first", is_begun=is_begun)
    rows, visible = it.rows(), list_visible(it)
    record = []
    copy = it.copy(tmp_path / "calls")
    copy.apply(copy.plan(), around=lambda s: record.append(RecordingStorage(s)) or record[-1])
    changes = sum(len(one.mutations) for one in record)
    assert changes >= (30 if is_begun else 15)
    for at in take_turn(range(1, changes + 1), of=30, turn=len(name) + is_begun):
        copy = it.copy(tmp_path / f"{at}")
        with pytest.raises(Killed):
            copy.apply(
                copy.plan(),
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )
        seen = list_visible(copy)
        assert seen == visible or not seen & list_written(copy, instant) ^ seen - visible, at
        assert rows == copy.rows(), at
        result = copy.apply(copy.plan())
        assert 0 == result.exit_code, (at, result.tables)
        copy.apply(copy.plan())
        assert_finished(copy, instant, rows)
        assert () == copy.state().timeline.pending({Action.ROLLBACK}), at
        shutil.rmtree(tmp_path / f"{at}")


@pytest.mark.parametrize("name", TABLES)
def test_a_writer_that_comes_back_finds_nothing_to_complete(tmp_path, name):
    it, instant, attempt = make(name, tmp_path / "t", is_begun=True)
    rows, partition = it.rows(), attempt[0].rpartition("/")[0]
    late = f"{ATTEMPT}7_{instant}.parquet"
    seen = []

    def come_back():
        seen.extend(path.name for path in (it.table / find_timeline(it)).glob(f"{instant}*"))
        it.storage.create(f".hoodie/.temp/{instant}/{partition}/{late}.marker.CREATE", b"")
        it.storage.create(f"{partition}/{late}", b"PAR1 late")

    waking = act_after(r"\.marker\.CREATE$", come_back)
    result = it.apply(it.plan(), around=waking)

    assert 0 == result.exit_code, result.tables
    assert [True] == ["requested" in name for name in seen if not name.endswith(".crc")]
    assert late not in {path.rpartition("/")[2] for path in list_data_files(it.table)}
    assert_finished(it, instant, rows)


@pytest.mark.parametrize("name", TABLES)
def test_no_marker_is_left_when_a_clustering_is_completed(tmp_path, name):
    """By them, a writer that comes back would remove our files."""
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    folder, left = it.table / ".hoodie/.temp" / instant, []
    look = act_after(rf"/{instant}[\d_]*\.replacecommit$", lambda: left.append(folder.exists()))
    result = it.apply(it.plan(), around=look)

    assert (0, [False]) == (result.exit_code, left)


@pytest.mark.parametrize("name", TABLES)
def test_files_that_a_writer_removes_as_it_comes_back_are_not_published(tmp_path, name):
    """Of what Hudi finds by marker it removes all that it did not write itself."""
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows, lost = it.rows(), []

    def come_back():
        lost.extend(it.table / path for path in list_written(it, instant))
        for path in lost:
            path.unlink()

    waking = act_after(rf"\.hoodie/\.temp/{instant}$", come_back)
    result = it.apply(it.plan(), around=waking)

    assert (6, True) == (result.exit_code, bool(lost))
    assert "another writer has taken over clustering" in result.tables[0].error
    assert (rows, set(), instant) == (it.rows(), list_written(it, instant), get_pending(it))
    assert 0 == it.apply(it.plan()).exit_code
    assert_finished(it, instant, rows)


@pytest.mark.parametrize("name", TABLES)
def test_a_writer_that_executes_it_meanwhile_is_left_to_it(tmp_path, name):
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows = it.rows()
    action = "clustering" if name == V9 else "replacecommit"
    inflight = f"{find_timeline(it)}/{instant}.{action}.inflight"
    waking = act_after(r"\.marker\.CREATE$", lambda: it.storage.create(inflight, b""))
    result = it.apply(it.plan(), around=waking)

    assert 6 == result.exit_code
    assert "another writer has taken over clustering" in result.tables[0].error
    assert (rows, set()) == (it.rows(), list_written(it, instant))
    touch_now(it, it.table / inflight)
    assert () == it.plan().tables[0].steps
    age(it.table / inflight, 7 * 3600)
    assert 0 == it.apply(it.plan()).exit_code
    assert_finished(it, instant, rows)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_writer_that_is_back_at_work_keeps_its_clustering(tmp_path, is_begun, is_late):
    it, instant, attempt = make(V9, tmp_path / "t", is_begun=is_begun)
    seen = list((it.table / ".hoodie/.temp").rglob("*.marker.*"))
    if not is_begun:
        seen = [it.table / ".hoodie/.heartbeat" / instant]
        seen[0].parent.mkdir()
        seen[0].touch()
        age(seen[0], 30 * 86400)
    plan, rows = it.plan(), it.rows()

    def work():
        for path in seen:
            touch_now(it, path)

    if not is_late:  # else after the fresh plan, once the apply has the lock
        work()
    waking = act_after(r"\.hoodie/lock", work)
    result = it.apply(plan, around=waking)

    assert 6 == result.exit_code, result.tables
    assert (rows, {*attempt}) == (it.rows(), list_written(it, instant))
    assert instant == get_pending(it)
    assert () == it.state().timeline.pending({Action.ROLLBACK})


def announce(it, time, stat):
    """Announce a pending write to the first partition of the clustering."""
    (pending,) = it.state().pending_clusterings
    partition = pending.plan.groups[0].slices[0].partition
    commit(it, {partition: [stat]}, done=False, time=time)
    return pending.plan.groups[0].slices[0].file_id


@pytest.mark.parametrize("name", TABLES)
def test_new_rows_that_a_later_write_adds_are_in_no_group_of_the_clustering(tmp_path, name):
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows = it.rows()
    announce(it, LATER, INSERTS)
    result = it.apply(it.plan())

    assert 0 == result.exit_code, result.tables
    assert list_written(it, instant) == read_completed(it, instant)[1]
    assert rows == it.rows()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("is_older", [True, False])
def test_a_write_that_may_change_a_group_keeps_the_clustering(tmp_path, name, is_older):
    """An older write knows nothing of it; a later one of updates was allowed to go on."""
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows, group = it.rows(), it.state().pending_clusterings[0].plan.groups[0].slices[0].file_id
    update = {"fileId": group, "numInserts": 0}
    announce(it, f"{int(instant) - 1}" if is_older else LATER, INSERTS if is_older else update)
    result = it.apply(it.plan())

    assert 6 == result.exit_code, result.tables
    assert f"clustering {instant} cannot be finished now" in result.tables[0].error
    assert (rows, set(), instant) == (it.rows(), list_written(it, instant), get_pending(it))


def test_an_apply_that_is_still_at_work_is_left_to_it(tmp_path):
    it, instant, _ = make(V9, tmp_path / "t", is_begun=True)
    reviewed = it.plan()
    dying = die_at(r"\.replacecommit$")
    with pytest.raises(Killed):
        it.apply(reviewed, around=dying, pid=77)
    result = it.apply(it.plan(), pid=78, living=frozenset({77}))

    assert 6 == result.exit_code
    assert "which still runs" in result.tables[0].error
    assert 0 == it.apply(it.plan(), pid=79).exit_code
    assert "an apply by ann" not in str(it.plan().tables[0].warnings)
    assert () == it.plan().tables[0].steps
    assert list_written(it, instant)


def test_a_file_that_no_review_has_named_keeps_the_clustering(tmp_path):
    it, instant, attempt = make(V9, tmp_path / "t", is_begun=True)
    plan, partition = it.plan(), attempt[0].rpartition("/")[0]
    new = it.table / partition / f"{ATTEMPT}5_{instant}.parquet"
    new.write_bytes(b"new")
    result = it.apply(plan)

    (done,) = result.tables[0].outcomes
    assert (4, "resume", "nothing", 2) == (
        result.exit_code,
        done.kind,
        done.how,
        len(done.left_out),
    )
    assert {*attempt, f"{partition}/{new.name}"} == list_written(it, instant)
    assert 0 == it.apply(it.plan()).exit_code


@pytest.mark.parametrize("name", TABLES)
def test_groups_that_have_changed_stay_as_they_are(tmp_path, name):
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows, (pending,) = it.rows(), it.state().pending_clusterings
    plan = it.plan()
    changed = pending.plan.groups[0].slices[0]
    amend(it, pending, replace_base(pending.plan))
    result = it.apply(plan)

    (done,) = result.tables[0].outcomes
    left = done.rewritten.left
    assert ([changed.partition], rows) == ([one.partition for one in left], it.rows())
    if len(pending.plan.groups) == 1:
        assert ("undone", ()) == (done.how, it.state().pending_clusterings)
        return
    assert "completed" == done.how
    commit, _files = read_completed(it, instant)
    assert changed.file_id not in {i for ids in commit.replaced.values() for i in ids}


def replace_base(plan):
    """Return a plan whose first slice has another base file than there is."""
    first, *groups = plan.groups
    slice_, *slices = first.slices
    time = slice_.base_file.rpartition("_")[2]
    changed = replace(slice_, base_file=slice_.base_file.replace(time, "19700101000000000.parquet"))
    return replace(plan, groups=(replace(first, slices=(changed, *slices)), *groups))


def amend(it, pending, plan: ClusteringPlan):
    """Write another plan into the requested file, and keep its time."""
    state = it.state()
    action = "clustering" if state.table_version >= 8 else "replacecommit"
    file = it.table / find_timeline(it) / f"{pending.instant}.{action}.requested"
    file.write_bytes(plan.encode(str(it.table), version=state.table_version))
    age(file, 30 * 86400)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"executor_class": "com.acme.MyStrategy"},
            "its plan wants to be executed by com.acme.MyStrategy, which is not done here",
        ),
        ({"keeps_commit_times": False}, "its plan wants new commit times of all rows"),
        (
            {
                "strategy": {
                    "hoodie.clustering.plan.strategy.sort.columns": "id",
                    "hoodie.layout.optimize.strategy": "SPIRAL",
                }
            },
            "its plan wants the layout SPIRAL",
        ),
    ],
)
def test_a_plan_that_is_not_executed_here_is_reported(tmp_path, change, text):
    it, _instant, _ = make(V9, tmp_path / "t", is_begun=False)
    (pending,) = it.state().pending_clusterings
    amend(it, pending, replace(pending.plan, **change))
    (table,) = it.plan().tables
    (note,) = [note for note in table.warnings if note.rule == "pendingClustering"]

    assert () == table.steps
    assert text in note.because


@pytest.mark.parametrize(
    ("pending", "lock", "text"),
    [
        ("{clustering: finish}", "none", "without a lock it cannot be known to be left behind"),
        ("{clustering: finish, after: 90d}", "filesystem", None),
    ],
)
def test_a_clustering_that_stays_is_only_reported(tmp_path, pending, lock, text):
    it, _instant, _ = make(V9, tmp_path / "t", is_begun=True, pending=pending, lock=lock)
    (table,) = it.plan().tables
    notes = [note.because for note in table.warnings if note.rule == "pendingClustering"]

    assert () == table.steps
    assert (text is not None) == bool(notes)
    assert all(text in note for note in notes)


def test_without_a_lock_a_reviewed_finish_is_refused(tmp_path):
    it, instant, _ = make(V9, tmp_path / "t", is_begun=True)
    reviewed = it.plan()
    unlocked = it.copy(tmp_path / "u", lock="none")
    (table,), (other,) = reviewed.tables, unlocked.plan().tables
    forged = replace(reviewed, tables=(replace(other, steps=table.steps),))
    result = unlocked.apply(forged)

    assert 6 == result.exit_code
    assert f"it cannot be known that clustering {instant} is left behind" in result.tables[0].error


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_that_cannot_be_executed_after_all_stays_pending(tmp_path, name):
    it, instant, _ = make(name, tmp_path / "t", is_begun=False)
    rows, (pending,) = it.rows(), it.state().pending_clusterings
    amend(it, pending, replace(pending.plan, strategy={SORT_COLUMNS: "nope"}))
    result = it.apply(it.plan())

    (done,) = result.tables[0].outcomes
    (note,) = done.warnings
    assert (5, "failed") == (result.exit_code, done.how)
    assert "has no column 'nope' to be clustered by" in note.because
    assert (rows, instant) == (it.rows(), get_pending(it))
    assert set() == list_written(it, instant)


def test_a_damaged_input_file_leaves_the_clustering_pending(tmp_path):
    it, instant, _ = make(V9, tmp_path / "t", is_begun=False)
    (pending,) = it.state().pending_clusterings
    file = pending.plan.groups[0].slices[0]
    path = it.table / file.partition / file.base_file
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    result = it.apply(it.plan())

    (done,) = result.tables[0].outcomes
    assert (5, "resume", "failed") == (result.exit_code, done.kind, done.how)
    assert file.base_file in done.rewritten.left[0].because
    assert (instant, set()) == (get_pending(it), list_written(it, instant))
    path.write_bytes(whole)
    rows = it.rows()
    assert 0 == it.apply(it.plan()).exit_code
    assert_finished(it, instant, rows)


def list_groups(step):
    """Return what a step rewrites."""
    groups = step.groups
    columns = (groups.partition, groups.file_id, groups.base)
    return [column.to_pylist() for column in columns], groups.outputs.tolist()


def test_a_damaged_file_of_a_clustering_is_named_or_loses_no_row(tmp_path):
    it, instant, _ = make(V9, tmp_path / "t", is_begun=True)
    rows, whole = it.rows(), get_step(it.plan())
    with pytest.raises(Killed):
        it.apply(it.plan(), around=die_at(r"\.replacecommit$"))
    it.clock.sleep(600)
    left = [
        path
        for path in it.table.rglob(f"{instant}*")
        if path.is_file() and path.stat().st_size and path.suffix != ".crc"
    ]
    assert 2 == len(left)  # the request, and the heartbeat
    rng = random.Random(24)
    for number in range(DAMAGED):
        path = rng.choice(left)
        data = path.read_bytes()
        path.write_bytes(damage(data, rng))
        (table,) = it.plan().tables
        steps = [step for step in table.steps if isinstance(step, ResumeStep)]
        said = " ".join([table.error or "", *(note.because for note in table.warnings)])
        if not steps and "heartbeat" not in str(path):
            assert instant in said, path
        if steps and list_groups(whole) != list_groups(steps[0]):  # letters of a name have changed
            copy = it.copy(tmp_path / f"{number}")
            result = copy.apply(copy.plan())
            assert "an error of this program" not in (result.tables[0].error or "")
            assert rows == copy.rows(), path
            shutil.rmtree(tmp_path / f"{number}")
        path.write_bytes(data)
