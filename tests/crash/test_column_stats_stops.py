"""Stop the building of Hudi's own index at any call: nothing is lost, and the next run ends it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.hudi.load import PROPERTIES, load_properties, load_timeline
from reconciler.hudi.metadata.index_definitions import DEFINITIONS
from reconciler.plans.plan import Plan
from reconciler.state.current_files import find_newest_logs
from tests.column_stats import find_gaps, load_metadata, read_entries
from tests.crash.clustering_drill import list_leftovers
from tests.crash.drill import Killed, list_unlisted
from tests.crash.index_drill import IndexDrill, make_index_drill
from tests.selection import take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageCall, StorageFault

TABLES = Path(__file__).parents[1] / "tables"


def dropped(folder: Path) -> IndexDrill:
    """No index any more, though its folders are there still: its dropping was stopped."""
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", folder, index="[i, s], hudi: build")
    file = it.table / PROPERTIES
    file.write_text(re.sub("(column|partition)_stats,", "", file.read_text()))
    return it


def quiet(name: str, **said: str) -> Callable[[Path], IndexDrill]:
    """A table without the index, and without the writes that were pending."""

    def make(folder: Path) -> IndexDrill:
        it = make_index_drill(TABLES / f"{name}.zip", folder, index="[x], hudi: build", **said)
        properties = load_properties(it.storage)
        timeline = load_timeline(it.storage, properties)
        done = {one.requested for one in timeline.instants if one.is_completed}
        for file in timeline.files:
            if file.instant.requested not in done:
                (it.table / properties.timeline_folder / file.name).unlink()
        return it

    return make


def narrower(folder: Path) -> IndexDrill:
    """An index of Hudi's that has not a declared column."""
    it = make_index_drill(TABLES / "v9_index.zip", folder, index="[x], hudi: build")
    file = it.table / DEFINITIONS
    said = json.loads(file.read_text())
    said["indexDefinitions"]["column_stats"]["sourceFields"].remove("x")
    file.write_text(json.dumps(said))
    return it


BOTH = ["column_stats", "partition_stats"]
#: what it is: the table, its indexes afterwards, and how many calls lie between two stops
STORIES = {
    "version 6": (quiet("v6_cow_part"), ["column_stats"], 1),
    "version 9, dropped before": (dropped, BOTH, 1),
    "log files": (quiet("v9_mor_part"), BOTH, 5),
    "a column more": (narrower, BOTH, 3),
}


@dataclass
class Story:
    """A table before, its plan, what an undisturbed apply comes to, and the calls that it makes."""

    it: IndexDrill
    before: Path
    plan: Plan
    entries: dict
    files: list[str]
    unlisted: set[str]
    stops: list[tuple[int, StorageCall]]
    step: int


@pytest.fixture(scope="module", params=STORIES, ids=STORIES.keys())
def story(request, tmp_path_factory) -> Story:
    make, live, step = STORIES[request.param]
    home = tmp_path_factory.mktemp("story")
    it = make(home / "t")
    it.copy(home / "before")
    plan = it.plan()
    assert ("zindex", "column_stats") == plan.tables[0].steps[0].targets
    counted: list[RecordingStorage] = []
    result = it.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert live == [name for name in load_metadata(it.table)[1].metadata_partitions if name in live]
    said = read_entries(it.table)
    files = newest(it)
    assert [] == find_gaps(it.table, files)
    assert [] == it.steps()
    mutations = [call for call in counted[0].calls if call.mutates]
    return Story(
        it=it,
        before=home / "before",
        plan=plan,
        entries=said,
        files=files,
        unlisted=list_unlisted(it),
        stops=[(at, c) for at, c in enumerate(mutations, 1) if any(map(is_about_it, c.paths))],
        step=step,
    )


def is_about_it(path: str) -> bool:
    return path.startswith((".hoodie/metadata", PROPERTIES, DEFINITIONS))


def newest(it: IndexDrill) -> list[str]:
    """The files that a read of now opens."""
    state = it.state()
    assert state.index_state is not None
    logs = find_newest_logs(state.view) if state.table_version > 6 else []
    return [state.files.name[row].as_py() for row in [*state.index_state.files.tolist(), *logs]]


@pytest.mark.parametrize("how", ["before", "torn"])
def test_a_build_that_stops_anywhere_loses_nothing_and_is_ended_by_the_next_run(story, how):
    it = story.it
    for at, call in take_turn(story.stops[:: story.step], of=8 if story.step == 1 else 5):
        if how == "torn" and not may_be_torn(call):
            continue
        it.again(story.before)
        with pytest.raises(Killed):
            it.apply(
                story.plan,
                around=lambda s, at=at: FaultyStorage(s, StorageFault(at=at, mode=how), Killed()),
            )

        assert [] == find_gaps(it.table, story.files), (at, call)
        assert story.unlisted == list_unlisted(it), (at, call)
        second = it.apply(it.plan())
        assert (0, None) == (second.exit_code, second.tables[0].error), (at, call)
        assert story.entries == read_entries(it.table), (at, call)
        assert [] == it.steps(), (at, call)
        assert [] == list_leftovers(it.table), (at, call)
        assert [] == pending(it.table), (at, call)


def may_be_torn(call: StorageCall) -> bool:
    """Stores write a file whole; a timeline and its properties are readable even so."""
    return (call.method == "create" and call.paths[0].startswith(".hoodie/metadata/.hoodie")) or (
        call.method == "replace" and DEFINITIONS not in call.paths
    )


def pending(path: Path) -> list[str]:
    """What is pending on the metadata table's own timeline."""
    timeline = load_metadata(path)[0].timeline
    return [one.file_name for one in timeline.instants if not one.is_completed]


def test_what_a_build_is_stopped_at(story):
    methods = [call.method for _at, call in story.stops]

    assert 7 <= methods.count("create")
    assert 2 <= methods.count("replace")
    assert [PROPERTIES, f"{PROPERTIES}.backup"] == [
        path for _at, call in story.stops[-2:] for path in call.paths
    ]


def test_an_index_that_cannot_be_built_fails_its_step_and_nothing_else(tmp_path):
    it = quiet("v9_cow_part", retention="commits: 1")(tmp_path / "t")
    plan = it.plan()
    assert ["index", "clean"] == [step.kind for step in plan.tables[0].steps]
    metadata = load_metadata(it.table)[0]
    time = int(metadata.timeline.newest_time) + 1
    for state in ("requested", "inflight"):
        (it.table / metadata.folder / f"{time}.deltacommit.{state}").write_bytes(b"")

    result = it.apply(plan)

    assert 5 == result.exit_code
    (table,) = result.tables
    assert [("index", "completed"), ("index", "failed"), ("clean", "completed")] == [
        (one.kind, one.how) for one in table.outcomes
    ]
    (said,) = [one.indexed.error for one in table.outcomes if one.indexed and one.indexed.error]
    assert said == (
        f"{time}.deltacommit.inflight is pending on the metadata table's own timeline; "
        "run again when its writer has finished"
    )
    assert {} == read_entries(it.table)
