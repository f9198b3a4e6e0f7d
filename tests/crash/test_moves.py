"""The table moves between review and apply, and while an apply runs."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reconciler.errors import StaleError
from reconciler.executor.freshness import take_files
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.clean import CleanerPlan, CleanMetadata
from reconciler.plans.model import CleanStep
from reconciler.plans.plan import Plan
from reconciler.storage.api import Storage
from tests.crash.drill import (
    CASES,
    Drill,
    Killed,
    list_data_files,
    list_newest_files,
    list_traces,
    make_drill,
    process,
)
from tests.crash.write_drill import set_store_clock
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import unpack

OLD = "cow_basic__0.15.0"
NEW = "cow_basic__1.2.0"


@pytest.fixture(params=[OLD, NEW])
def it(request, tmp_path) -> Drill:
    """A table with two partitions and history to remove."""
    return make_drill(CASES / request.param / "table.zip", tmp_path / "t", retention="commits: 2")


def planned(plan: Plan) -> set[str]:
    (step,) = (s for s in plan.tables[0].steps if isinstance(s, CleanStep))
    rows = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    return {f"{partition}/{name}" for partition, name in rows}


def timeline_folder(it: Drill) -> Path:
    return it.table / load_properties(it.storage).timeline_folder


def commits(it: Drill) -> list[str]:
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return [instant.requested for instant in timeline.commits]


def put(it: Drill, name: str, data: bytes = b"") -> None:
    (timeline_folder(it) / name).write_bytes(data)


def write_commit(it: Drill, time: str) -> None:
    """A commit that rewrites one file group: its files and a copy of an earlier payload."""
    timeline = load_timeline(it.storage, load_properties(it.storage))
    last = timeline.commits[-1]
    layout_2 = last.completed is not None
    for state in ("commit.requested", "inflight"):
        put(it, f"{time}.{state}")
    done = f"{time}_{int(time) + 1}.commit" if layout_2 else f"{time}.commit"
    put(it, done, (timeline_folder(it) / last.file_name).read_bytes())
    base = min(list_newest_files(it.state()))
    folder, _, name = base.rpartition("/")
    group = name.split("_")[0]
    (it.table / folder / f"{group}_0-0-0_{time}.parquet").write_bytes(b"PAR1")


def savepoint(it: Drill, instant: str, names: dict[str, list[str]]) -> None:
    """A completed savepoint of an instant that pins these names by partition."""
    record = {
        "savepointedBy": "ann",
        "savepointedAt": 0,
        "comments": "",
        "partitionMetadata": {
            path: {"partitionPath": path, "savepointDataFile": found}
            for path, found in names.items()
        },
        "version": 1,
    }
    put(it, f"{instant}.savepoint.inflight")
    layout_2 = timeline_folder(it).name == "timeline"
    name = f"{instant}_20261130000000000.savepoint" if layout_2 else f"{instant}.savepoint"
    put(it, name, avro_container.encode_container("HoodieSavepointMetadata.avsc", record))


def of(path: str) -> str:
    """The instant in a base file's name."""
    return path.rpartition("_")[2].partition(".")[0]


def age(it: Drill, path: Path, *, seconds: float) -> None:
    """Make a file as old as that on the drill's clock."""
    when = it.clock.ms / 1000 - seconds
    os.utime(path, (when, when))


class Hook(RecordingStorage):
    """Calls back once, before or after the first mutation of a path that ends so."""

    def __init__(
        self, inner: Storage, ending: str, act: Callable[[], None], *, after: bool
    ) -> None:
        super().__init__(inner)
        self.ending, self.act, self.after, self.done = ending, act, after, False

    def _intercept(self, call, act, torn=None):
        is_it = not self.done and call.mutates and call.paths[0].endswith(self.ending)
        if is_it:
            self.done = True
        if is_it and not self.after:
            self.act()
        found = super()._intercept(call, act, torn)
        if is_it and self.after:
            self.act()
        return found


def hooked(ending: str, act: Callable[[], None], *, after: bool = True):
    return lambda storage: Hook(storage, ending, act, after=after)


def reasons(result) -> str:
    left = [o.left_out for t in result.tables for o in t.outcomes if o.left_out]
    return "; ".join(why for rows in left for why, _count in rows.count_reasons())


def test_new_commits_make_no_plan_stale(it):
    plan = it.plan()
    write_commit(it, "20261122000000000")
    before = list_newest_files(it.state())
    result = it.apply(plan)

    assert result.exit_code == 0
    assert not planned(plan) & list_data_files(it.table)
    assert list_newest_files(it.state()) == before


def test_what_a_new_commit_expires_waits_for_a_review(it):
    plan = it.plan()
    write_commit(it, "20261122000000000")
    unreviewed = planned(it.plan()) - planned(plan)
    it.apply(plan)

    assert unreviewed
    assert unreviewed <= list_data_files(it.table)


def test_a_savepoint_made_before_the_apply_protects(it):
    plan = it.plan()
    pinned = min(planned(plan))
    folder, _, name = pinned.rpartition("/")
    savepoint(it, of(pinned), {folder: [name]})
    result = it.apply(plan)

    assert result.exit_code == 4
    assert "savepoint" in reasons(result)
    assert planned(plan) & list_data_files(it.table) == {pinned}


def test_a_half_made_savepoint_protects_what_it_would_pin(it):
    plan = it.plan()
    instant = max(of(path) for path in planned(plan))
    put(it, f"{instant}.savepoint.inflight")
    result = it.apply(plan)

    assert result.exit_code == 4
    assert any(of(path) == instant for path in list_data_files(it.table) & planned(plan))


@pytest.mark.parametrize("ending", [".clean.requested", ".hoodie/lock"])
@pytest.mark.parametrize("half", [True, False])
def test_a_savepoint_made_while_the_clean_is_requested_protects(it, ending, half):
    plan = it.plan()
    pinned = max(planned(plan), key=of)
    folder, _, name = pinned.rpartition("/")

    def make() -> None:
        if half:
            put(it, f"{of(pinned)}.savepoint.inflight")
        else:
            savepoint(it, of(pinned), {folder: [name]})

    result = it.apply(plan, around=hooked(ending, make))

    assert result.exit_code == 4
    assert pinned in list_data_files(it.table)
    assert list_traces(it.table) == []
    assert (
        len([n for n in timeline_folder(it).iterdir() if n.name.endswith("clean.requested")]) == 1
    )


def test_a_savepoint_that_protects_nothing_planned_changes_nothing(it):
    plan = it.plan()
    last = commits(it)[-1]
    files = {
        "a": [
            path.rpartition("/")[2]
            for path in list_newest_files(it.state())
            if path.startswith("a/")
        ]
    }
    result = it.apply(plan, around=hooked(".clean.requested", lambda: savepoint(it, last, files)))

    assert result.exit_code == 0
    assert not planned(plan) & list_data_files(it.table)


def test_a_pending_restore_refuses(it):
    plan = it.plan()
    before = list_data_files(it.table)
    put(it, "20261122000000000.restore.inflight")
    result = it.apply(plan)

    assert result.exit_code == 3
    assert list_data_files(it.table) == before


def test_a_restore_that_begins_while_we_prepare_refuses(it):
    plan = it.plan()
    before = list_data_files(it.table)
    begin = lambda: put(it, "20261122000000000.restore.inflight")  # noqa: E731
    result = it.apply(plan, around=hooked(".hoodie/lock", begin, after=False))

    assert result.exit_code == 3
    assert list_data_files(it.table) == before
    assert list_traces(it.table) == []


def roll_back(it: Drill, instant: str) -> None:
    """What a completed rollback leaves: neither the instant nor its files."""
    for path in timeline_folder(it).iterdir():
        if path.name.startswith(instant):
            path.unlink()
    for name in list_data_files(it.table):
        if of(name) == instant:
            (it.table / name).unlink()


@pytest.mark.parametrize("while_preparing", [False, True])
def test_what_a_rollback_makes_newest_again_stays(tmp_path, while_preparing):
    it = make_drill(CASES / NEW / "table.zip", tmp_path / "t", retention="commits: 1")
    plan = it.plan()
    last = commits(it)[-1]
    groups = {path.split("_")[0] for path in list_newest_files(it.state()) if of(path) == last}
    if while_preparing:
        around = hooked(".hoodie/lock", lambda: roll_back(it, last), after=False)
        result = it.apply(plan, around=around)
    else:
        roll_back(it, last)
        result = it.apply(plan)

    assert result.exit_code == 4
    assert groups == {path.split("_")[0] for path in list_data_files(it.table)} & groups
    assert list_newest_files(it.state()) <= list_data_files(it.table)


def test_another_clean_in_between_leaves_nothing_to_do(it):
    plan = it.plan()
    assert it.apply(it.plan()).exit_code == 0
    files, cleaned = list_data_files(it.table), len(list(timeline_folder(it).glob("*.clean")))
    result = it.apply(plan)

    assert result.exit_code == 0
    assert [outcome.how for outcome in result.tables[0].outcomes] == ["nothing"]
    assert list_data_files(it.table) == files
    assert len(list(timeline_folder(it).glob("*.clean"))) == cleaned


def test_an_edited_spec_leaves_its_table_out(it):
    plan = it.plan()
    before = list_data_files(it.table)
    edited = Drill(it.folder, {"retention": "commits: 3"}).spec
    result = it.apply(plan, specs=[edited])

    assert result.exit_code == 4
    assert "no longer the reviewed one" in result.tables[0].error
    assert list_data_files(it.table) == before


def test_the_same_spec_is_the_reviewed_one(it):
    plan = it.plan()

    assert it.apply(plan, specs=[it.spec]).exit_code == 0
    assert not planned(plan) & list_data_files(it.table)


def test_a_younger_pending_clean_of_another_writer_is_busy(it):
    plan = it.plan()
    other = it.copy(it.folder.parent / "other")
    with pytest.raises(Killed):
        other.apply(other.plan(), around=lambda s: FaultyStorage(s, StorageFault(at=3), Killed()))
    request = next(timeline_folder(other).glob("*.clean.requested"))
    put(it, request.name, strip_ours(request.read_bytes()))
    before = list_data_files(it.table)
    age(it, timeline_folder(it) / request.name, seconds=60)

    assert it.apply(plan).exit_code == 6
    assert list_data_files(it.table) == before


def strip_ours(data: bytes) -> bytes:
    """The same plan as another tool would have requested it."""

    return replace(CleanerPlan.parse(data, "x"), extra={}).encode("/elsewhere")


def test_an_old_one_that_no_review_named_is_stale_and_one_that_was_is_finished(it):
    plan = it.plan()
    other = it.copy(it.folder.parent / "other")
    with pytest.raises(Killed):
        other.apply(other.plan(), around=lambda s: FaultyStorage(s, StorageFault(at=3), Killed()))
    request = next(timeline_folder(other).glob("*.clean.requested"))
    put(it, request.name, strip_ours(request.read_bytes()))

    assert it.apply(plan).exit_code == 4
    assert planned(plan) <= list_data_files(it.table)
    again = it.plan()
    assert [step.kind for step in again.tables[0].steps] == ["resume"]
    assert it.apply(again).exit_code == 0
    assert not planned(plan) & list_data_files(it.table)


def test_without_a_lock_an_old_one_is_never_touched(tmp_path):
    it = make_drill(
        CASES / "cow_pending_clean__1.1.1" / "table.zip",
        tmp_path / "t",
        retention="commits: 1",
        lock="none",
    )
    with_lock = it.copy(tmp_path / "u", lock="filesystem")
    reviewed = with_lock.plan().tables[0].steps
    (table,) = it.plan().tables
    before = list_data_files(it.table)
    forged = replace(it.plan(), tables=(replace(table, steps=reviewed),))

    assert it.apply(forged).exit_code == 6
    assert list_data_files(it.table) == before


def test_without_a_lock_no_lock_file_is_made(tmp_path):
    it = make_drill(CASES / NEW / "table.zip", tmp_path / "t", retention="commits: 2", lock="none")
    made: list[RecordingStorage] = []
    plan = it.plan()
    result = it.apply(plan, around=lambda s: made.append(RecordingStorage(s)) or made[-1])

    assert result.exit_code == 0
    assert not [c for one in made for c in one.mutations if ".hoodie/lock" in c.paths]
    assert not planned(plan) & list_data_files(it.table)


def test_without_a_lock_a_pending_write_and_a_metadata_table_refuse(tmp_path):
    it = make_drill(
        CASES / "cow_mdt_incremental__1.2.0" / "table.zip",
        tmp_path / "t",
        retention="commits: 1",
        lock="none",
    )
    plan = it.plan()
    put(it, "20261122000000000.commit.requested")
    result = it.apply(plan)

    assert result.exit_code == 3
    assert "without a lock" in result.tables[0].refusals[0].because
    assert planned(plan) <= list_data_files(it.table)


def test_a_lock_that_hudi_holds_is_busy_and_names_the_way_out(it):
    plan = it.plan()
    (it.table / ".hoodie/lock").write_bytes(b"")
    result = it.apply(plan)

    assert result.exit_code == 6
    assert "reconciler unlock" in result.tables[0].error
    assert (it.table / ".hoodie/lock").exists()


def test_of_two_applies_at_once_one_works_and_the_other_is_busy(it):
    plan = it.plan()
    entered, leave = threading.Event(), threading.Event()

    def pause() -> None:
        entered.set()
        leave.wait(30)

    codes: list[int] = []
    first = threading.Thread(
        target=lambda: codes.append(
            it.apply(plan, pid=11, around=hooked(".parquet", pause, after=False)).exit_code
        )
    )
    first.start()
    assert entered.wait(30)
    second = it.apply(plan, pid=12, living=frozenset({11}))
    leave.set()
    first.join()

    assert (codes, second.exit_code) == ([0], 6)
    assert "process 11" in second.tables[0].error
    assert list_traces(it.table) == []
    assert not planned(plan) & list_data_files(it.table)


def test_an_apply_elsewhere_is_dead_only_after_five_silent_minutes(it):
    plan = it.plan()
    elsewhere = replace(process(5), host="there")
    with pytest.raises(Killed):
        it.apply(
            plan, around=lambda s: FaultyStorage(s, StorageFault(at=6), Killed()), process=elsewhere
        )
    (heart,) = (it.table / ".hoodie/.heartbeat").iterdir()
    age(it, heart, seconds=290)

    assert it.apply(plan, around=set_store_clock(it.clock.ms)).exit_code == 6
    age(it, heart, seconds=310)
    assert it.apply(plan, around=set_store_clock(it.clock.ms - 60_000)).exit_code == 6
    assert it.apply(plan, around=set_store_clock(it.clock.ms)).exit_code == 0
    assert list_traces(it.table) == []


def test_a_delete_that_fails_leaves_the_clean_inflight_and_the_next_apply_finishes(it):
    plan = it.plan()
    stubborn = min(planned(plan))
    path = it.table / stubborn
    path.unlink()
    (path / "x").mkdir(parents=True)
    (path / "x" / "y").write_bytes(b"")
    shutil.rmtree(path / "x")
    path.rmdir()
    path.write_bytes(b"PAR1")

    class Stubborn(RecordingStorage):
        def delete_many(self, paths):
            found = super().delete_many([p for p in paths if p != stubborn])
            refused = type(found[0])(stubborn, existed=False, error="refused")
            return [refused if p == stubborn else found.pop(0) for p in paths]

    result = it.apply(plan, around=Stubborn)

    (outcome,) = result.tables[0].outcomes
    assert (result.exit_code, outcome.how) == (5, "inflight")
    assert outcome.failed.name.to_pylist() == [stubborn.rpartition("/")[2]]
    assert stubborn in list_data_files(it.table)
    assert it.apply(plan, living=frozenset({1})).exit_code == 0
    assert list_traces(it.table) == []
    assert not planned(plan) & list_data_files(it.table)


def test_a_clean_of_ours_that_another_writer_completes_is_adopted(it):
    plan = it.plan()

    def complete() -> None:
        (request,) = timeline_folder(it).glob("*.clean.requested")
        time = request.name.partition(".")[0]

        data = CleanMetadata(
            started=time,
            duration_ms=1,
            earliest_instant="",
            last_completed_commit="",
            partitions={},
        ).encode()
        layout_2 = timeline_folder(it).name == "timeline"
        put(it, f"{time}_20261201000500000.clean" if layout_2 else f"{time}.clean", data)

    result = it.apply(plan, around=hooked(".parquet", complete))

    assert [outcome.how for outcome in result.tables[0].outcomes] == ["adopted"]
    assert len(list(timeline_folder(it).glob("*.clean"))) == 1
    assert list_traces(it.table) == []


def test_a_clean_of_ours_that_another_writer_removes_is_reported(it):
    plan = it.plan()

    def remove() -> None:
        for path in timeline_folder(it).glob("*.clean.*"):
            path.unlink()

    result = it.apply(plan, around=hooked(".parquet", remove))

    assert result.exit_code == 5
    assert "another writer removed its requested file from the timeline" in result.tables[0].error
    assert list(timeline_folder(it).glob("*.clean")) == []


def test_a_savepoint_made_after_a_kill_protects_what_is_left(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    pinned = min(planned(plan) & list_data_files(it.table))
    folder, _, name = pinned.rpartition("/")
    savepoint(it, of(pinned), {folder: [name]})
    result = it.apply(plan)

    assert result.exit_code == 4
    assert planned(plan) & list_data_files(it.table) == {pinned}
    assert list_traces(it.table) == []


def test_a_clean_of_which_everything_is_protected_is_undone(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    pinned: dict[str, list[str]] = {}
    for path in planned(plan):
        folder, _, name = path.rpartition("/")
        pinned.setdefault(folder, []).append(name)
    savepoint(it, commits(it)[0], pinned)
    before = list_data_files(it.table)
    result = it.apply(plan)

    assert next(outcome.how for outcome in result.tables[0].outcomes) == "undone"
    assert list_data_files(it.table) == before
    assert list_traces(it.table) == []


def test_the_instant_carries_who_and_why(it):

    plan = it.plan()
    it.apply(plan)
    clean = it.state().cleans[-1]

    assert clean.extra["reconciler.plan.digest"] == plan.digest
    assert clean.extra["reconciler.spec.digest"] == plan.tables[0].spec_digest
    assert json.loads(clean.extra["reconciler.owner"])["who"] == "ann"
    assert clean.earliest_instant_to_retain == plan.tables[0].steps[0].earliest_instant_to_retain


def test_a_partial_clean_claims_no_more_than_it_did(it):
    plan = it.plan()
    pinned = min(planned(plan), key=of)
    (table,) = plan.tables
    (step,) = table.steps
    rows = [n for n, name in enumerate(step.files.name.to_pylist()) if not pinned.endswith(name)]

    mask = np.zeros(len(step.files), bool)
    mask[rows] = True
    smaller = replace(step, files=take_files(step.files, mask))
    result = it.apply(replace(plan, tables=(replace(table, steps=(smaller,)),)))

    assert result.exit_code == 0
    assert pinned in list_data_files(it.table)
    assert it.state().cleans[-1].earliest_instant_to_retain == of(pinned)


def test_an_approved_digest_admits_no_other_plan(it):

    with pytest.raises(StaleError, match="apply the approved plan"):
        it.apply(it.plan(), expected_digest="sha256:0")


def test_a_plan_that_waits_for_another_writers_clean_is_busy(it):
    other = it.copy(it.folder.parent / "other")
    with pytest.raises(Killed):
        other.apply(other.plan(), around=lambda s: FaultyStorage(s, StorageFault(at=3), Killed()))
    request = next(timeline_folder(other).glob("*.clean.requested"))
    put(it, request.name, strip_ours(request.read_bytes()))
    age(it, timeline_folder(it) / request.name, seconds=60)
    plan = it.plan()

    assert plan.tables[0].steps == ()
    assert it.apply(plan).exit_code == 6


def test_an_executor_that_dies_leaves_work_for_the_next_apply(it):
    plan = it.plan()

    class Dying(RecordingStorage):
        def delete_many(self, paths):
            super().delete_many(paths[:1])
            raise RuntimeError("the cluster went away\nwith a long trace")

    result = it.apply(plan, around=Dying)

    assert result.exit_code == 5
    assert "the cluster went away); run apply again" in result.tables[0].error
    assert it.apply(plan, living=frozenset({1})).exit_code == 0
    assert not planned(plan) & list_data_files(it.table)
    assert list_traces(it.table) == []


def test_an_interrupted_process_that_lives_on_may_go_on(it):
    plan = it.plan()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        it.apply(plan, around=hooked(".parquet", interrupt, after=False), pid=1)
    assert it.apply(plan, pid=1).exit_code == 0
    assert list_traces(it.table) == []


def test_another_table_at_the_path_is_not_the_reviewed_one(it):
    plan = it.plan()
    other = "cow_few__1.2.0" if timeline_folder(it).name == "timeline" else "cow_few__0.15.0"
    shutil.rmtree(it.table)
    unpack(CASES / other / "table.zip", it.table)
    before = list_data_files(it.table)
    result = it.apply(plan)

    assert result.exit_code == 4
    assert "not the table that was reviewed" in result.tables[0].error
    assert before == list_data_files(it.table)
