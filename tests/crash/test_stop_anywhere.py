"""Stop an apply at any storage call, run the next one, and find the state of an undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from reconciler.planners.compose import plan_table
from reconciler.plans.model import Step
from tests.crash.drill import (
    CASES,
    NOW,
    Drill,
    Killed,
    list_data_files,
    list_folders,
    list_newest_files,
    list_savepointed_files,
    list_traces,
    list_unlisted,
    make_drill,
    read_cleans,
)
from tests.selection import EVERY_CASE, long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import Tree

#: what it is: the case, the retention
TABLES = {
    "version 6": ("cow_basic__0.15.0", "commits: 2"),
    "version 8, not partitioned": ("cow_nonpart_replace__1.0.2", "commits: 1"),
    "version 9": ("cow_basic__1.2.0", "commits: 2"),
    "a savepoint": ("cow_savepoint__0.15.0", "commits: 1"),
    "metadata table, version 6": ("cow_mdt_incremental__0.15.0", "commits: 1"),
    "metadata table, version 9": ("cow_mdt_incremental__1.2.0", "commits: 1"),
    "a partition goes": ("cow_delete_partition__1.2.0", "commits: 1"),
    "a partition goes from the metadata table": ("cow_mdt_delete_partition__1.2.0", "commits: 1"),
    "only a folder goes": ("cow_empty_partition_dir__1.0.2", "fileVersions: 5"),
    "log files, version 6": ("mor_pending_compaction__0.15.0", "fileVersions: 1"),
    "log files, version 8": ("mor_compacted__1.0.2", "commits: 1"),
    "another writer's pending clean": ("cow_pending_clean__1.1.1", "commits: 1"),
    "an empty requested clean": ("cow_empty_clean_plan__1.2.0", "commits: 1"),
}

#: cleans of the same ten changes, which take turns at being stopped at every fifth one
ALIKE = (
    "version 6",
    "version 8, not partitioned",
    "version 9",
    "a savepoint",
    "log files, version 6",
    "log files, version 8",
)

#: calls, of reading and of changing, that an apply is stopped at before another plan goes on
STOPS = 12 if EVERY_CASE else 3


@dataclass
class Story:
    """A table before, its plan, and where an undisturbed apply takes it."""

    name: str
    before: Drill
    files: set[str]
    folders: set[str]
    newest: set[str]
    cleans: list
    differences: set[str]
    must_stay: set[str]
    calls: int
    mutations: int


@pytest.fixture(scope="module", params=TABLES, ids=TABLES.keys())
def story(request, tmp_path_factory) -> Story:
    case, retention = TABLES[request.param]
    home = tmp_path_factory.mktemp("story")
    before = make_drill(CASES / case / "table.zip", home / "t", retention=retention)
    steps = before.plan().tables[0].steps
    copy = before.copy(home / "undisturbed")
    counted: list[RecordingStorage] = []
    result = copy.apply(
        copy.plan(), around=lambda s: counted.append(RecordingStorage(s)) or counted[-1]
    )

    assert (result.exit_code, list_traces(copy.table)) == (0, [])
    assert list_data_files(copy.table) == list_data_files(before.table) - expected_to_go(
        before, steps
    )
    state = before.state()
    return Story(
        name=request.param,
        before=before,
        files=list_data_files(copy.table),
        folders=list_folders(copy.table),
        newest=list_newest_files(state),
        cleans=read_cleans(copy.table),
        differences=list_unlisted(before),
        must_stay=list_newest_files(state) | list_savepointed_files(state),
        calls=sum(len(one.calls) for one in counted),
        mutations=sum(len(one.mutations) for one in counted),
    )


def expected_to_go(it: Drill, steps: tuple[Step, ...]) -> set[str]:
    """The files that the steps name, and the metafiles of the partitions they delete."""
    found = set()
    for step in steps:
        rows = zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
        found |= {f"{partition}/{name}".lstrip("/") for partition, name in rows}
        for path in step.delete_partitions:
            metafiles = (it.table / path).glob(".hoodie_partition_metadata*")
            found |= {str(metafile.relative_to(it.table)) for metafile in metafiles}
    return found


def list_stops(story: Story) -> list[int]:
    """Return the changes to stop at, from 1: every one, or those of this table's turn."""
    stops = range(1, story.mutations + 1)
    if story.name in ALIKE:
        return take_turn(stops, of=5, turn=ALIKE.index(story.name))
    return take_turn(stops, of=5, turn=list(TABLES).index(story.name))


def stopping(fault: StorageFault) -> Callable:
    return lambda storage: FaultyStorage(storage, fault, Killed())


@pytest.mark.parametrize("how", ["before", long("after")])  # dying before the next leaves the same
def test_an_apply_that_stops_at_any_change_is_finished_by_the_next(story, tmp_path, how):
    it = story.before.copy(tmp_path / "t")
    begin, plan = Tree.from_folder(it.folder), it.plan()
    for at in list_stops(story):
        it.begin_again(begin)
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(StorageFault(at=at, mode=how)))

        assert story.must_stay <= list_data_files(it.table)
        assert list_newest_files(it.state()) == story.newest
        assert story.files <= list_data_files(it.table)
        second = it.apply(plan)
        assert second.exit_code == 0, (at, second.tables)
        assert_finished(story, it)


def test_an_apply_that_stops_at_any_call_is_finished_by_the_next_plan(story, tmp_path):
    it = story.before.copy(tmp_path / "t")
    begin, plan = Tree.from_folder(it.folder), it.plan()
    for at in range(1, story.calls + 1, max(1, story.calls // STOPS)):
        it.begin_again(begin)
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(StorageFault(at=at, among="calls")))

        second = it.apply(it.plan())
        assert second.exit_code == 0, (at, second.tables)
        assert_finished(story, it)


def assert_finished(story: Story, it: Drill) -> None:
    state = it.state()
    assert list_traces(it.table) == []
    assert list_data_files(it.table) == story.files
    assert list_folders(it.table) == story.folders
    assert list_newest_files(state) == story.newest
    assert read_cleans(it.table) == story.cleans
    assert list_unlisted(it, state) == story.differences
    assert plan_table(it.spec, state, NOW).steps == ()
