"""Stop an apply of savepoints at any storage call; the next one finishes or undoes its work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import reconciler
from reconciler.executor.result import ApplyResult
from reconciler.plans.model import CleanStep
from reconciler.plans.savepoint_step import SavepointStep
from tests.crash.drill import (
    CASES,
    Drill,
    Killed,
    list_data_files,
    list_newest_files,
    list_savepointed_files,
    list_traces,
)
from tests.our_savepoints import list_savepoint_files, list_writes, read_record
from tests.selection import EVERY_CASE, long
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import Tree, unpack

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: {commits}}}
  savepoints: [{savepoints}]
  concurrency: {{lock: {{provider: {lock}}}, staleAfter: 1h}}
"""
#: tables of every version, with and without a metadata table
TABLES = {
    "version 6": "cow_basic__0.15.0",
    "version 8, log files": "mor_compacted__1.0.2",
    "version 9, metadata table": "cow_mdt_incremental__1.2.0",
}
#: commits to keep: with 1, a clean goes with the savepoint
STORIES = [
    (table, change, commits)
    for table in TABLES
    for change in ("create", "remove")
    for commits in (50, 1)
]


@dataclass
class SavepointDrill(Drill):
    """A table whose spec has savepoints."""

    def __post_init__(self) -> None:
        self.declare()

    def declare(self, **said: object) -> None:
        """Write the spec again, with other values."""
        self.said = {"commits": 50, "savepoints": "", "lock": "filesystem", **self.said, **said}
        (self.folder / "spec.yaml").write_text(SPEC.format(path=self.table, **self.said))
        (self.spec,) = reconciler.load_specs(self.folder / "spec.yaml")

    def copy(self, folder: Path, **said: str) -> SavepointDrill:
        Tree.from_folder(self.folder).write(folder)
        return type(self)(folder, {**self.said, **said})


def begin(folder: Path, table: str, change: str, commits: int, lock: str = "filesystem"):
    """Return a drill whose plan makes or removes one savepoint of the third-last write."""
    unpack(CASES / TABLES[table] / "table.zip", folder / "table", hollow=True)
    _, completed = list_writes(folder / "table")[-3]
    declared = f'{{name: q, at: "{completed}"}}'
    it = SavepointDrill(folder, {"savepoints": declared, "commits": 50, "lock": lock})
    if change == "remove":
        assert 0 == it.apply(it.plan()).exit_code
        it.declare(savepoints="")
    it.declare(commits=commits)
    return it


def kinds(it: Drill) -> list[str]:
    return [step.kind for step in it.plan().tables[0].steps]


def states(it: Drill) -> set[tuple[str, str]]:
    """Return instant and state of each file of a savepoint; completion times differ."""
    return {(name[:17], name.partition(".")[2]) for name in list_savepoint_files(it.table)}


@pytest.mark.parametrize(
    ("table", "change", "commits"),
    [story if number % 5 in (0, 3) else long(*story) for number, story in enumerate(STORIES)],
)
@pytest.mark.parametrize("how", ["before", long("after")])
def test_an_apply_that_stops_at_any_change_is_finished_by_the_next(
    tmp_path, table, change, commits, how
):
    it = begin(tmp_path / "t", table, change, commits)
    tree, plan = Tree.from_folder(it.folder), it.plan()
    planned = ["savepoint", *(["clean"] if commits == 1 else [])]
    assert planned == [step.kind for step in plan.tables[0].steps]
    stays = list_newest_files(it.state()) | wanted_files(it, change)
    result, mutations, _calls = undisturbed(it, plan)
    expected, files = states(it), list_data_files(it.table)
    assert 0 == result.exit_code

    for at in range(1, mutations + 1) if EVERY_CASE else range(1, mutations + 1, 3):
        it.begin_again(tree)
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(StorageFault(at=at, mode=how)))
        assert stays <= list_data_files(it.table)
        second = it.apply(it.plan() if at % 2 else plan)
        assert 0 == second.exit_code, (at, second.tables)
        assert_finished(it, expected, files)


@pytest.mark.parametrize(
    ("table", "change", "commits"),
    [story if number % 6 == 1 else long(*story) for number, story in enumerate(STORIES)],
)
def test_an_apply_that_stops_at_any_call_is_finished_by_the_next_plan(
    tmp_path, table, change, commits
):
    it = begin(tmp_path / "t", table, change, commits)
    tree, plan = Tree.from_folder(it.folder), it.plan()
    _result, _mutations, calls = undisturbed(it, plan)
    expected, files = states(it), list_data_files(it.table)

    for at in range(1, calls + 1, 1 if EVERY_CASE else max(1, calls // 4)):
        it.begin_again(tree)
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(StorageFault(at=at, among="calls")))
        second = it.apply(it.plan())
        assert 0 == second.exit_code, (at, second.tables)
        assert_finished(it, expected, files)


def wanted_files(it: Drill, change: str) -> set[str]:
    """Return the files of a table that its savepoints pin, those that stay pinned."""
    if change == "remove":
        return set()
    state = it.state()
    (step,) = [one for one in it.plan().tables[0].steps if isinstance(one, SavepointStep)]
    assert step.files
    return list_savepointed_files(state)


def undisturbed(it: Drill, plan) -> tuple[ApplyResult, int, int]:
    """Apply, and return the result with the numbers of changes and of calls."""
    counted: list[RecordingStorage] = []
    result = it.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])
    mutations = sum(len(one.mutations) for one in counted)
    return result, mutations, sum(len(one.calls) for one in counted)


def stopping(fault: StorageFault):
    return lambda storage: FaultyStorage(storage, fault, Killed())


def assert_finished(it: Drill, expected: set[tuple[str, str]], files: set[str]) -> None:
    assert [] == list_traces(it.table)
    assert expected == states(it)
    assert files == list_data_files(it.table)
    assert [] == kinds(it)


@pytest.mark.parametrize("how", ["before", "torn"])
def test_what_a_dead_run_began_is_undone_if_it_is_not_declared_any_more(tmp_path, how):
    it = begin(tmp_path / "t", "version 9, metadata table", "create", 50)
    tree, plan, at = Tree.from_folder(it.folder), it.plan(), 0
    while not list_savepoint_files(it.table):
        at += 1
        it.begin_again(tree)
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(StorageFault(at=at, mode=how)))
    assert len(list_savepoint_files(it.table)) == 1

    it.declare(savepoints="")
    assert ["savepoint"] == kinds(it)
    assert 0 == it.apply(it.plan()).exit_code
    assert [] == list_savepoint_files(it.table)


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_store_that_loses_an_answer_makes_no_second_savepoint(tmp_path, mode):
    from reconciler.errors import StorageError  # noqa: PLC0415

    it = begin(tmp_path / "t", "version 9, metadata table", "create", 50)
    tree, plan = Tree.from_folder(it.folder), it.plan()
    _result, mutations, _calls = undisturbed(it, plan)
    expected = states(it)
    for at in range(1, mutations + 1):
        it.begin_again(tree)
        fault = StorageFault(at=at, mode=mode, is_permanent=False)
        error = StorageError("x", "is unreachable")
        it.apply(plan, around=lambda s, fault=fault, error=error: FaultyStorage(s, fault, error))
        it.apply(it.plan())
        assert expected == states(it), at
        assert [] == kinds(it)


def test_a_removal_that_fell_out_keeps_protecting(tmp_path):
    it = begin(tmp_path / "t", "version 6", "remove", 1)
    plan, pinned = it.plan(), list_savepointed_files(it.state())
    assert [SavepointStep, CleanStep] == [type(step) for step in plan.tables[0].steps]
    record = read_record(it.table)
    (name,) = (n for n in list_savepoint_files(it.table) if n.endswith(".savepoint"))
    other = type(record)(made_by="bob", made_ms=1, comment="mine now", files=record.files)
    (it.table / ".hoodie" / name).write_bytes(other.encode())

    result = it.apply(plan)
    assert 4 == result.exit_code
    outcome = result.tables[0].outcomes[0]
    left = "another tool or person has made this savepoint since the review"
    assert ("nothing", left) == (outcome.how, outcome.savepoint.left)
    assert pinned <= list_data_files(it.table)


def test_what_another_apply_did_meanwhile_counts_as_done(tmp_path):
    it = begin(tmp_path / "t", "version 6", "create", 50)
    plan = it.plan()
    assert 0 == it.apply(plan).exit_code
    before = list_savepoint_files(it.table)

    again = it.apply(plan)
    assert (0, "nothing") == (again.exit_code, again.tables[0].outcomes[0].how)
    assert before == list_savepoint_files(it.table)


def test_a_single_writer_needs_no_lock(tmp_path):
    it = begin(tmp_path / "t", "version 6", "create", 50, lock="none")

    assert 0 == it.apply(it.plan()).exit_code
    assert {"inflight", "completed"} == {
        "inflight" if state.endswith("inflight") else "completed" for _, state in states(it)
    }


def test_a_savepoint_whose_removal_was_not_reviewed_keeps_its_files(tmp_path):
    it = begin(tmp_path / "t", "version 6", "remove", 1)
    pinned = list_savepointed_files(it.state())
    saved = {
        name: (it.table / ".hoodie" / name).read_bytes() for name in list_savepoint_files(it.table)
    }
    for name in saved:
        (it.table / ".hoodie" / name).unlink()
    plan = it.plan()
    (step,) = plan.tables[0].steps
    assert any(name in one for one in pinned for name in step.files.name.to_pylist())
    for name, data in saved.items():
        (it.table / ".hoodie" / name).write_bytes(data)

    result = it.apply(plan)
    assert 4 == result.exit_code
    assert pinned <= list_data_files(it.table)
    assert sorted(saved) == list_savepoint_files(it.table)


@pytest.mark.parametrize("table", list(TABLES))
def test_a_removed_savepoint_leaves_the_table_as_it_was(tmp_path, table):
    it = begin(tmp_path / "t", table, "create", 50)
    before = list_all_files(it.table)
    assert 0 == it.apply(it.plan()).exit_code
    assert 2 == len(list_all_files(it.table) - before)
    it.declare(savepoints="")
    assert 0 == it.apply(it.plan()).exit_code

    assert before == list_all_files(it.table)


def list_all_files(table: Path) -> set[str]:
    return {str(file.relative_to(table)) for file in table.rglob("*") if file.is_file()}
