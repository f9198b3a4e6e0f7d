"""Stop an apply at any storage call, run the next one, and find the state of an undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.plan.model import CleanStep
from reconciler.storage.wrappers import Fault, Faulty, Recording
from tests.crash.drill import (
    ROOT,
    Drill,
    Killed,
    data_files,
    drill,
    folders,
    newest,
    savepointed,
    traces,
)

CASES = ROOT / "cases" / "clean"
TABLES = {
    "version 6": (CASES / "cow_basic__0.15.0" / "table.zip", "commits: 2"),
    "version 9": (CASES / "cow_basic__1.2.0" / "table.zip", "commits: 2"),
    "a savepoint": (CASES / "cow_savepoint__0.15.0" / "table.zip", "commits: 1"),
    "metadata table, version 6": (
        CASES / "cow_mdt_incremental__0.15.0" / "table.zip",
        "commits: 1",
    ),
    "metadata table, version 9": (CASES / "cow_mdt_incremental__1.2.0" / "table.zip", "commits: 1"),
    "a partition goes": (CASES / "cow_delete_partition__1.2.0" / "table.zip", "commits: 1"),
    "a partition goes from the metadata table": (
        CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip",
        "commits: 1",
    ),
    "only a folder goes": (
        CASES / "cow_empty_partition_dir__1.0.2" / "table.zip",
        "fileVersions: 5",
    ),
    "log files": (CASES / "mor_logs__1.0.2" / "table.zip", "commits: 1"),
    "file versions": (CASES / "mor_logs__0.15.0" / "table.zip", "fileVersions: 1"),
}


@dataclass
class Story:
    """A table before, its plan, and where an undisturbed apply takes it."""

    before: Drill
    files: set[str]
    folders: set[str]
    newest: set[str]
    must_stay: set[str]
    calls: int
    mutations: int


@pytest.fixture(scope="module", params=TABLES, ids=TABLES.keys())
def story(request, tmp_path_factory) -> Story:
    zipped, retention = TABLES[request.param]
    home = tmp_path_factory.mktemp("story")
    before = drill(zipped, home / "t", retention=retention)
    plan = before.plan()
    (step,) = (s for s in plan.tables[0].steps if isinstance(s, CleanStep))
    planned = {
        f"{p}/{n}".lstrip("/")
        for p, n in zip(step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True)
    }
    state = before.state()
    copy = before.copy(home / "undisturbed")
    counted: list[Recording] = []
    result = copy.apply(copy.plan(), around=lambda s: counted.append(Recording(s)) or counted[-1])

    assert (result.exit_code, traces(copy.table)) == (0, [])
    assert data_files(copy.table) == {
        f for f in data_files(before.table) - planned if not is_metafile_of(f, step)
    }
    return Story(
        before=before,
        files=data_files(copy.table),
        folders=folders(copy.table),
        newest=newest(state),
        must_stay=newest(state) | savepointed(state),
        calls=sum(len(one.calls) for one in counted),
        mutations=sum(len(one.mutations) for one in counted),
    )


def is_metafile_of(path: str, step: CleanStep) -> bool:
    folder, _, name = path.rpartition("/")
    return name.startswith(".hoodie_partition_metadata") and folder in step.delete_partitions


def stopping(fault: Fault) -> Callable:
    return lambda storage: Faulty(storage, fault, Killed())


@pytest.mark.parametrize("how", ["before", "after"])
def test_an_apply_that_stops_at_any_change_is_finished_by_the_next(story, tmp_path, how):
    for at in range(1, story.mutations + 1):
        it = story.before.copy(tmp_path / str(at))
        plan = it.plan()
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(Fault(at=at, how=how)))

        assert story.must_stay <= data_files(it.table)
        assert newest(it.state()) == story.newest
        assert story.files <= data_files(it.table)
        second = it.apply(plan)
        assert second.exit_code == 0, (at, second.tables)
        assert_finished(story, it)


def test_an_apply_that_stops_at_any_call_is_finished_by_the_next_plan(story, tmp_path):
    for at in range(1, story.calls + 1, max(1, story.calls // 40)):
        it = story.before.copy(tmp_path / str(at))
        plan = it.plan()
        with pytest.raises(Killed):
            it.apply(plan, around=stopping(Fault(at=at, among="calls")))

        second = it.apply(it.plan())
        assert second.exit_code == 0, (at, second.tables)
        assert_finished(story, it)


def assert_finished(story: Story, it: Drill) -> None:
    assert traces(it.table) == []
    assert data_files(it.table) == story.files
    assert folders(it.table) == story.folders
    assert newest(it.state()) == story.newest
    (table,) = it.plan().tables
    assert (table.steps, table.error) == ((), None)
