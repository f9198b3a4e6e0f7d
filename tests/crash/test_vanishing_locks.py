"""A lock file that another deletes while we hold it, as a closing writer of Hudi does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.clustering_drill import make_clustering_drill
from tests.crash.drill import CASES, TestClock, list_data_files, list_traces, make_drill
from tests.selection import take_turn
from tests.storage_wrappers import RecordingStorage

TABLES = Path(__file__).parents[1] / "tables"
LOCK = ".hoodie/lock"


class Vanishing(RecordingStorage):
    """Deletes the lock file before one call, by its number."""

    def __init__(self, inner, at=0):
        super().__init__(inner)
        self.at, self.hits = at, 0

    def _intercept(self, call, act, torn=None):
        if len(self.calls) + 1 == self.at:
            self.hits += self._inner.delete(LOCK)
        return super()._intercept(call, act, torn)


@pytest.fixture(scope="module", params=["clean", "cluster"])
def drill(request, tmp_path_factory):
    """A drill, its plan, a copy of it, its number of files after an apply, and of calls."""
    folder = tmp_path_factory.mktemp("vanishing") / "it"
    if request.param == "clean":
        zipped = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
        it = make_drill(zipped, folder, retention="commits: 1")
    else:
        it = make_clustering_drill(TABLES / "indexed/1.2.0.zip", folder)
    plan, before, seen = it.plan(), folder.parent / "before", []
    shutil.copytree(folder, before)

    def record(storage):
        seen.append(Vanishing(storage))
        return seen[-1]

    assert it.apply(plan, around=record).exit_code == 0
    return it, plan, before, count_files(it), max(len(each.calls) for each in seen)


def count_files(it):
    return len(list_data_files(it.table))


def test_the_work_is_done_whenever_the_lock_vanishes(drill):
    it, plan, before, files, calls = drill
    hits = 0
    for at in take_turn(range(1, calls + 1), of=11):
        shutil.rmtree(it.folder)
        shutil.copytree(before, it.folder)
        it.clock, it.runs, seen = TestClock(), 0, []

        def lose(storage, at=at, seen=seen):
            seen.append(Vanishing(storage, at))
            return seen[-1]

        result = it.apply(plan, around=lose)
        hits += sum(each.hits for each in seen)

        assert (0, None) == (result.exit_code, result.tables[0].error), at
        assert count_files(it) == files, at
        assert list_traces(it.table) == [], at
    assert hits > 3
