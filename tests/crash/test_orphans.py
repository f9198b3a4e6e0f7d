"""Orphan files are removed as reviewed, whatever stops the run, and nothing beside them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pytest

from reconciler.errors import StorageError
from reconciler.executor import orphans
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.plans.model import OrphansStep
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.state import orphan_reader
from reconciler.storage.api import DeletionResult
from tests.crash.drill import (
    NOW,
    Drill,
    Killed,
    list_data_files,
    list_newest_files,
    list_traces,
)
from tests.orphans import OLD, add_orphan, make_old, write_spec
from tests.selection import long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.tables.test_orphans import TABLES, find_times, next_instant
from tests.trees import Tree, unpack

#: three files of two unknown writes
GROUPS = {"o": 1, "q": 1, "r": 2}


@dataclass
class OrphanDrill(Drill):
    """A table with orphan files; its spec declares their removal."""

    def __post_init__(self) -> None:
        self.spec = write_spec(self.table, lock=self.said.get("lock", "filesystem"))

    def names(self) -> set[str]:
        return {path for path in list_data_files(self.table) if path.startswith(tuple("oqr"))}


def make_drill(folder, name, **said):
    unpack(TABLES / f"{name}.zip", folder, hollow=True)
    (folder / name).rename(folder / "table")
    last = find_times(folder / "table")[2]
    for group, more in GROUPS.items():
        add_orphan(folder / "table", next_instant(last, more), group=group)
    for path in (folder / "table").glob("*.parquet"):
        make_old(path)
    return OrphanDrill(folder, said)


def get_timeline_folder(it):
    return it.table / load_properties(it.storage).timeline_folder


def add_pending(it, instant="20261122000000000"):
    """Let another writer request a write."""
    path = get_timeline_folder(it) / f"{instant}.commit.requested"
    path.write_bytes(b"")
    return path


@pytest.fixture(params=["v9_cow_nopart", long("v6_cow_nopart")])
def it(request, tmp_path):
    return make_drill(tmp_path / "t", request.param)


def get_outcome(result):
    (outcome,) = result.tables[0].outcomes
    return outcome


def explain_left(result):
    left = get_outcome(result).left_out
    return (
        []
        if left is None
        else list(zip(left.name.to_pylist(), left.because.to_pylist(), strict=True))
    )


def test_reviewed_files_go_and_nothing_else(it):
    before = list_data_files(it.table)
    plan = it.plan()
    (step,) = plan.tables[0].steps
    result = it.apply(plan)
    outcome = get_outcome(result)

    assert isinstance(step, OrphansStep)
    assert 0 == result.exit_code
    assert ("completed", 3, int(step.files.bytes.sum())) == (
        outcome.how,
        outcome.removed,
        outcome.bytes,
    )
    assert set(step.files.name.to_pylist()) == before - list_data_files(it.table)
    assert [] == list_traces(it.table)
    assert () == it.plan().tables[0].steps


def test_an_apply_that_ran_before_leaves_nothing_to_do(it):
    plan = it.plan()
    it.apply(plan)
    result = it.apply(plan)

    assert (0, "nothing", 3) == (
        result.exit_code,
        get_outcome(result).how,
        get_outcome(result).gone,
    )


# stops


def list_stops(it, among, *methods):
    """Return the numbers of the calls of an undisturbed apply, or of those by the methods."""
    copy = OrphanDrill(it.folder, it.said)
    begin = Tree.from_folder(it.folder)
    counted = []
    copy.apply(copy.plan(), around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])
    it.begin_again(begin)
    (calls,) = (getattr(one, among) for one in counted)
    return [at for at, call in enumerate(calls, 1) if not methods or call.method in methods]


@pytest.mark.parametrize("how", ["before", long("after"), long("torn")])
def test_an_apply_that_stops_at_any_change_is_finished_by_the_next(it, how):
    begin, plan, newest = Tree.from_folder(it.folder), it.plan(), list_newest_files(it.state())
    torn = ("delete_many",) if how == "torn" else ()  # half a lock file is no call of ours
    for at in list_stops(it, "mutations", *torn):
        it.begin_again(begin)
        with pytest.raises(Killed):
            it.apply(
                plan,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )

        assert newest == list_newest_files(it.state())
        assert 0 == it.apply(plan).exit_code
        assert (set(), []) == (it.names(), list_traces(it.table))
        assert () == it.plan().tables[0].steps


def test_an_apply_that_stops_at_any_call_is_finished_by_the_next_plan(it):
    begin, plan = Tree.from_folder(it.folder), it.plan()
    for at in take_turn(list_stops(it, "calls"), of=15):
        it.begin_again(begin)
        with pytest.raises(Killed):
            it.apply(
                plan,
                around=lambda s, at=at: FaultyStorage(
                    s, StorageFault(at=at, among="calls"), Killed()
                ),
            )

        assert 0 == it.apply(it.plan()).exit_code
        assert (set(), []) == (it.names(), list_traces(it.table))


def test_a_share_of_the_files_goes_under_the_lock_at_a_time(it, monkeypatch):
    monkeypatch.setattr(orphans, "_PER_LOCK", 2)
    locks = []

    class Seen(RecordingStorage):
        def create(self, path, data):
            locks.extend([path] if path.endswith("lock") else [])
            super().create(path, data)

    plan = it.plan()
    result = it.apply(plan, around=Seen)

    assert (0, 3, 2) == (result.exit_code, get_outcome(result).removed, len(locks))


# what came since the review


def test_a_file_that_was_written_again_stays(it):
    plan = it.plan()
    name = min(it.names())
    make_old(it.table / name, NOW - timedelta(hours=1))
    result = it.apply(plan)

    assert (4, {name}) == (result.exit_code, it.names())
    assert [(name, "it was written within orphans.olderThan")] == explain_left(result)


def test_a_file_whose_write_came_to_the_timeline_stays(it):
    plan = it.plan()
    instant = next_instant(find_times(it.table)[2], 2)
    add_pending(it, instant)
    result = it.apply(plan)

    assert 4 == result.exit_code
    assert {name for name in it.names() if instant in name} == it.names()
    assert 1 == len(it.names())


def test_files_stay_that_a_pending_write_may_own(it):
    plan = it.plan()
    make_old(add_pending(it), OLD - timedelta(hours=1))
    result = it.apply(plan)

    assert (4, 3) == (result.exit_code, len(it.names()))
    because = "commit 20261122000000000 was pending when it was written: it may own it"
    assert {because} == {why for _, why in explain_left(result)}


def during(it, act):
    """Return a storage that acts before the first file is deleted, under the lock."""

    class Acting(RecordingStorage):
        def stat(self, path):
            is_locked = any(call.method == "create" for call in self.calls)
            if path in it.names() and is_locked and act:
                act.pop()()
            return super().stat(path)

    return Acting


def test_a_file_that_is_written_again_under_the_lock_stays(it):
    plan, name = it.plan(), min(it.names())
    act = [lambda: make_old(it.table / name, OLD + timedelta(days=1))]
    result = it.apply(plan, around=during(it, act))

    assert (4, {name}) == (result.exit_code, it.names())
    assert [(name, "it was written again since it was looked at: plan again")] == explain_left(
        result
    )


def test_a_write_that_begins_before_the_lock_is_taken_keeps_its_file(it):
    plan, instant = it.plan(), next_instant(find_times(it.table)[2], 2)

    class Late(RecordingStorage):
        def create(self, path, data):
            add_pending(it, instant)
            super().create(path, data)

    result = it.apply(plan, around=Late)

    assert (4, 1) == (result.exit_code, len(it.names()))
    assert all(instant in name for name in it.names())


def test_a_file_stays_that_a_metadata_table_lists_which_was_built_before_the_lock_is_taken(
    tmp_path, monkeypatch
):
    unpack(TABLES / "archival" / "1.2.0_cow.zip", tmp_path / "table")
    it = OrphanDrill(tmp_path, {})
    properties = it.table / ".hoodie/hoodie.properties"
    live = properties.read_text()
    properties.write_text(live.replace("hoodie.table.metadata.partitions=", "was="))
    newest = load_timeline(it.storage, load_properties(it.storage)).commits[-1]
    source = min(it.table.glob("a/*.parquet"))
    orphan = source.with_name(f"o_0-0-0_{next_instant(newest.requested)}.parquet")
    orphan.write_bytes(source.read_bytes())
    make_old(orphan)
    reader = orphan_reader._OrphanReader
    lists_all = lambda _reader, rows, listing: np.full(len(rows), listing is not None)  # noqa: E731
    monkeypatch.setattr(reader, "_find_listed", lists_all)
    plan = it.plan()

    class Late(RecordingStorage):
        def create(self, path, data):
            properties.write_text(live)
            super().create(path, data)

    result = it.apply(plan, around=Late)

    assert 1 == len(plan.tables[0].steps)
    assert (4, True) == (result.exit_code, orphan.exists())
    assert [orphan.name] == [name for name, _because in explain_left(result)]


def test_without_a_lock_nothing_goes_while_a_write_is_pending(tmp_path):
    it = make_drill(tmp_path / "t", "v9_cow_nopart", lock="none")
    plan = it.plan()
    os.utime(add_pending(it), (NOW.timestamp(), NOW.timestamp()))
    result = it.apply(plan)
    (refusal,) = result.tables[0].refusals

    assert (3, 3, "orphans") == (result.exit_code, len(it.names()), refusal.step)
    assert "without a lock it could begin to use files while they are removed" in refusal.because


def test_a_guardrail_leaves_the_files(it):
    it.spec = replace(it.spec, guarded_by=(GuardPolicy(name="gold", max_files_removed=2),))
    plan = it.plan()
    result = it.apply(plan)

    assert ["orphans"] == [note.step for note in plan.tables[0].refusals]
    assert (3, 3) == (result.exit_code, len(it.names()))


def test_a_file_that_cannot_be_deleted_is_reported(it):
    name = min(it.names())

    class Stubborn(RecordingStorage):
        def delete_many(self, paths):
            done = super().delete_many([path for path in paths if path != name])
            kept = DeletionResult(name, existed=False, error="permission denied")
            return sorted([*done, kept], key=lambda one: paths.index(one.path))

    result = it.apply(it.plan(), around=Stubborn)
    failed = get_outcome(result).failed

    assert 5 == result.exit_code
    assert ["permission denied"] == failed.because.to_pylist()


def test_a_store_that_fails_half_way_leaves_the_rest_to_the_next_apply(it):
    class Failing(RecordingStorage):
        def delete_many(self, paths):
            super().delete_many(list(paths)[:1])
            raise StorageError(list(paths)[1], "the connection broke")

    plan = it.plan()
    result = it.apply(plan, around=Failing)

    assert (5, 2) == (result.exit_code, len(it.names()))
    assert "deleting orphan files stopped half way" in result.tables[0].error
    assert 0 == it.apply(plan).exit_code
    assert set() == it.names()
