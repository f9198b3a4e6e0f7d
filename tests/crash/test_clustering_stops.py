"""Stop a clustering at any change, and find rows as they were and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.planners.compose import plan_table
from reconciler.plans.plan import Plan
from tests.crash.clustering_drill import ClusteringDrill, list_leftovers, make_clustering_drill
from tests.crash.drill import NOW, Killed, list_unlisted
from tests.selection import EVERY_CASE, long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

TABLES = Path(__file__).parents[1] / "tables"
#: what it is: the table, and which changes it is stopped at: every one, every second
STORIES = {
    "version 6, log files": ("v6_mor_nopart", 1),
    "version 8, log files, others at work": ("v8_mor_part", 4),
    "every index, version 6": ("indexed/0.15.0", 4),
    "every index, version 9": ("indexed/1.2.0", 2),
}

#: calls, of reading and of changing, that an apply is stopped at before another plan goes on
STOPS = 6 if EVERY_CASE else 2


@dataclass
class Story:
    """A table before, its rows, and what an undisturbed apply comes to."""

    it: ClusteringDrill
    before: Path
    plan: Plan
    rows: list[dict[str, Any]]
    code: int
    differences: set[str]
    mutations: int
    calls: int
    step: int


@pytest.fixture(scope="module", params=STORIES, ids=STORIES.keys())
def story(request, tmp_path_factory) -> Story:
    name, step = STORIES[request.param]
    home = tmp_path_factory.mktemp("story")
    it = make_clustering_drill(TABLES / f"{name}.zip", home / "t")
    it.copy(home / "before")
    rows, plan, differences = it.rows(), it.plan(), list_unlisted(it)
    counted: list[RecordingStorage] = []
    result = it.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])
    (table,) = result.tables
    (outcome,) = table.outcomes

    assert (table.error, outcome.how, list_leftovers(it.table)) == (None, "completed", [])
    assert rows == it.rows()
    return Story(
        it=it,
        before=home / "before",
        plan=plan,
        rows=rows,
        code=result.exit_code,
        differences=differences,
        mutations=sum(len(one.mutations) for one in counted),
        calls=sum(len(one.calls) for one in counted),
        step=step,
    )


def stopping(fault: StorageFault) -> Callable:
    return lambda storage: FaultyStorage(storage, fault, Killed())


def is_killed(story: Story, at: int, how: str) -> bool:
    """Whether an apply got as far as its ``at``-th change, where it dies.

    In which file groups of the metadata table a file's entries are is up to its name, and so is
    how many of those are written: one more or less.
    """
    made: list[RecordingStorage] = []

    def watched(storage):
        made.append(
            RecordingStorage(FaultyStorage(storage, StorageFault(at=at, mode=how), Killed()))
        )
        return made[-1]

    try:
        story.it.apply(story.plan, around=watched)
    except Killed:
        return True
    assert story.mutations - 2 <= sum(len(one.mutations) for one in made) < at
    return False


@pytest.mark.parametrize("how", ["before", long("after")])  # dying before the next leaves the same
def test_a_clustering_that_stops_at_any_change_is_finished_by_the_next(story, how):
    it = story.it
    first = story.step if how == "after" else 1
    for at in take_turn(range(first, story.mutations + 1, story.step), of=5):
        it.again(story.before)
        if not is_killed(story, at, how):
            continue

        assert story.rows == it.rows(), at
        second = it.apply(story.plan)
        assert (second.exit_code, second.tables[0].error) == (story.code, None), (at, second.tables)
        assert_finished(story, at)


def test_a_clustering_that_stops_at_any_call_is_finished_by_the_next_plan(story):
    it = story.it
    for at in range(1, story.calls + 1, max(1, story.calls // STOPS)):
        it.again(story.before)
        with pytest.raises(Killed):
            it.apply(story.plan, around=stopping(StorageFault(at=at, among="calls")))

        it.apply(it.plan())
        assert_finished(story, at)


def assert_finished(story: Story, at: int) -> None:
    it = story.it
    assert [] == list_leftovers(it.table), at
    assert story.rows == it.rows(), at
    assert story.differences == list_unlisted(it), at
    steps = plan_table(it.spec, it.state(), NOW).steps
    assert [] == [step for step in steps if step.kind == "resume"], at
