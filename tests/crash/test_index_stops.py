"""Stop the building of an index at any call: reads are right, and the next run tidies up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.index.version_store import list_versions, read_newest
from reconciler.index.versions import FOLDER
from reconciler.plans.plan import Plan
from tests.crash.clustering_drill import list_leftovers
from tests.crash.drill import Killed
from tests.crash.index_drill import IndexDrill, get_index_outcome, make_index_drill
from tests.selection import EVERY_CASE, long
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageCall, StorageFault
from tests.unit.index.footer_samples import index_facts

TABLES = Path(__file__).parents[1] / "tables"
#: of Hudi 0.10, and of a run that was stopped
OTHERS = "20220202225600359"
RESIDUE = "20200101000000000_3"


@dataclass
class Story:
    """A table before, its plan, what it asks, and what an undisturbed apply comes to.

    ``counted``: whether some version counts before. ``stops``: the calls that the index makes, by
    their number among all calls of the apply, from 1.
    """

    it: IndexDrill
    before: Path
    plan: Plan
    query: str
    facts: dict
    below: int
    counted: bool
    stops: list[tuple[int, StorageCall]]
    step: int


def first(folder: Path) -> IndexDrill:
    """No index yet."""
    return make_index_drill(TABLES / "indexed/1.2.0.zip", folder, index="[i, s, d, ts]")


def following(folder: Path) -> IndexDrill:
    """A version without one of the columns, residue, and a folder that is none of ours."""
    it = make_index_drill(TABLES / "indexed/1.2.0.zip", folder, index="[i, d]")
    it.apply(it.plan())
    for name in (OTHERS, RESIDUE):
        (it.table / FOLDER / name).mkdir()
        (it.table / FOLDER / name / "index-99.parquet").write_bytes(b"PAR1?")
    return it.now(index="[i, s]")


def damaged(folder: Path) -> IndexDrill:
    """A newest version with a bit flipped, and the one before it."""
    it = first(folder)
    it.apply(it.plan())
    (name,) = it.versions()
    (file,) = (it.table / FOLDER / name).iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 16
    newer = it.table / FOLDER / f"{name[:-1]}1"
    newer.mkdir()
    (newer / file.name).write_bytes(data)
    return it


def between(folder: Path) -> IndexDrill:
    """Files are clustered before, and others are cleaned afterwards."""
    said = {"index": "[id]", "clustering": "[]", "retention": "fileVersions: 1"}
    return make_index_drill(TABLES / "v9_cow_nopart.zip", folder, **said)


#: what it is: the table, a query, and which of the calls it is stopped at: each, every second
STORIES: dict[str, tuple[Callable[[Path], IndexDrill], str, int]] = {
    "the first version": (first, "i >= 1", 1),
    "one that adds and drops columns": (following, "i >= 1", 2),
    "one that is damaged": (damaged, "i >= 1", 3),
    "between a clustering and a clean": (between, "id >= 50", 3),
}


def of_the_index(calls: list[StorageCall]) -> Iterator[tuple[int, StorageCall]]:
    """Every call about versions, and those between the last look at them and the new one."""
    ours = [at for at, call in enumerate(calls, 1) if any(FOLDER in path for path in call.paths)]
    made = next(at for at in ours if calls[at - 1].method == "create")
    look = max(at for at in ours if at < made)
    for at in sorted({*ours, *range(look, made)}):
        yield at, calls[at - 1]


@pytest.fixture(scope="module", params=STORIES, ids=STORIES.keys())
def story(request, tmp_path_factory) -> Story:
    make, query, step = STORIES[request.param]
    home = tmp_path_factory.mktemp("story")
    it = make(home / "t")
    it.copy(home / "before")
    plan, before = it.plan(), counts(it)
    counted: list[RecordingStorage] = []
    result = it.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert "completed" == next(o.how for o in result.tables[0].outcomes if o.kind == "index")
    assert [] == it.problems(query)
    assert "index" not in it.steps()
    assert 1 == len(it.versions())
    return Story(
        it=it,
        before=home / "before",
        plan=plan,
        query=query,
        facts=told(it),
        below=len(it.below()),
        counted=before,
        stops=list(of_the_index(counted[0].calls)),
        step=step,
    )


def counts(it: IndexDrill) -> bool:
    """Whether there is a version that reads skip with."""
    return read_newest(it.storage, list_versions(it.storage)) is not None


def told(it: IndexDrill) -> dict:
    """What the version that counts says, without the names of files that every run makes anew."""
    found = read_newest(it.storage, list_versions(it.storage))
    assert found is not None
    said = index_facts(found[1])
    return {key: said[key] for key in ("rows", "columns")} if "clustering" in it.said else said


@pytest.mark.parametrize("how", ["before", long("after"), "torn"])
def test_an_index_that_stops_at_any_call_is_right_and_finished_by_the_next_run(story, how):
    it = story.it
    # a run that dies at a read leaves what the one leaves that dies at the next change
    reads_too = how == "before" and EVERY_CASE
    for at, call in story.stops[:: story.step if reads_too else 1]:
        if not (reads_too or call.mutates):
            continue
        it.again(story.before)
        with pytest.raises(Killed):
            it.apply(
                story.plan,
                around=lambda s, at=at: FaultyStorage(
                    s, StorageFault(at=at, mode=how, among="calls"), Killed()
                ),
            )

        assert [] == it.problems(story.query), (at, call)
        assert counts(it) or not story.counted, (at, call)
        second = it.apply(story.plan if at % 2 else it.plan())
        assert (0, None) == (second.exit_code, second.tables[0].error), (at, call)
        assert_finished(story, (at, call))


def assert_finished(story: Story, at: object) -> None:
    it = story.it
    assert [] == it.problems(story.query), at
    assert "index" not in it.steps(), at
    assert 1 == len(it.versions()), at
    assert story.below == len(it.below()), at
    assert story.facts == told(it), at
    assert [] == list_leftovers(it.table), at


def test_what_an_index_is_stopped_at(story):
    """None of its own calls is left out unseen."""
    changes = [call.method for _, call in story.stops if call.mutates]

    assert 1 == changes.count("create")
    assert ("remove_folder" in changes) == (story.before / "table" / FOLDER).exists()


def test_a_folder_of_hudi_0_10_stays(tmp_path):
    it = following(tmp_path / "t")

    done = get_index_outcome(it.apply(it.plan()))

    assert (1, ("i", "s"), 3, 0, 3) == (
        done.tidied,
        done.columns,
        done.kept,
        done.dropped,
        done.files,
    )
    assert {OTHERS} == {path.split("/")[0] for path in it.below()} - set(it.versions())
