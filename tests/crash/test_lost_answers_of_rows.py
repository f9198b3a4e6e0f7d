"""Applies that rewrite rows, and writes, whose store did not answer any one of their changes.

The change is done or not: who asked for it cannot know.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.errors import StorageError
from reconciler.hudi.timeline.markers import MARKER_FOLDER
from tests.crash.clustering_drill import list_leftovers
from tests.crash.drill import list_unlisted
from tests.crash.index_drill import make_index_drill
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    copy_table,
    get_timeline_folder,
    make_table,
)
from tests.crash.write_drill import list_leftovers as list_leftovers_of_writes
from tests.selection import EVERY_CASE, long
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

TABLE = Path(__file__).parents[1] / "tables/clustering/orders.zip"
STEPS = {"index": "[amount]", "clustering": "[customer_id]", "retention": "commits: 3"}
SILENCE = StorageError("the store", "did not answer")
#: changes of each way to fail, of about fifty
FEW = 3


def choose(number, mode):
    """Return the changes to fail at, from 1: all, or a few that are others for each mode."""
    step = 1 if EVERY_CASE else number // FEW
    return range(1 if EVERY_CASE or mode == "before" else 3, number + 1, step)


def record_into(found):
    return lambda storage: found.append(RecordingStorage(storage)) or found[-1]


@pytest.mark.parametrize("mode", ["after", long("before")])
def test_a_clustering_an_index_and_a_clean_are_done_by_the_next_apply_at_last(tmp_path, mode):
    it = make_index_drill(TABLE, tmp_path / "t", **STEPS)
    before, rows, found = tmp_path / "before", it.rows(), []
    shutil.copytree(it.folder, before)
    result = it.apply(it.plan(), around=record_into(found))
    assert (0, ["cluster", "index", "clean"]) == (result.exit_code, list_kinds(result))
    assert [] == it.steps()
    assert rows == it.rows()
    changes = [call for one in found for call in one.mutations]
    failed = 0
    for at in choose(len(changes), mode):
        it.again(before)
        fault = StorageFault(at=at, mode=mode, is_permanent=False)
        first = it.apply(it.plan(), around=lambda s, f=fault: FaultyStorage(s, f, SILENCE))
        error = first.tables[0].error
        failed += error is not None
        assert error is None or ("did not answer" in error and "\n" not in error), (at, error)
        assert rows == it.rows(), (at, changes[at - 1])

        for _ in range(2):  # what the clustering replaced is removed by the next plan
            again = it.apply(it.plan())
            assert (0, None) == (again.exit_code, again.tables[0].error), (at, changes[at - 1])
        assert [] == it.steps(), (at, changes[at - 1])
        # markers of a completed clustering that could not be removed are harmless
        left = [path for path in list_leftovers(it.table) if MARKER_FOLDER not in path]
        assert [] == left, (at, changes[at - 1])
        assert rows == it.rows(), (at, changes[at - 1])
        assert set() == list_unlisted(it), (at, changes[at - 1])
    assert failed


def list_kinds(result):
    return [outcome.kind for outcome in result.tables[0].outcomes]


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_write_is_done_or_not_and_the_next_one_goes_on(tmp_path, mode):
    it = make_table(tmp_path / "t", 9)
    found = []
    copy_table(it, tmp_path / "calls").write(BATCH, around=record_into(found))
    changes = [call for one in found for call in one.mutations]
    failed = 0
    for at in choose(len(changes), mode):
        run = copy_table(it, tmp_path / f"{at}")
        fault = StorageFault(at=at, mode=mode, is_permanent=False)
        error = None
        try:
            run.write(BATCH, around=lambda s, f=fault: FaultyStorage(s, f, SILENCE))
        except StorageError as problem:
            error = problem
        failed += error is not None
        assert error is None or str(SILENCE) in str(error), (at, error)
        assert run.read_rows() in (sorted(BEFORE), sorted(AFTER)), (at, changes[at - 1])
        assert error or run.read_rows() == sorted(AFTER), (at, changes[at - 1])
        run.write(BATCH)
        assert sorted(AFTER) == run.read_rows(), (at, changes[at - 1])
        assert [] == list_problems(run), (at, changes[at - 1])
        shutil.rmtree(tmp_path / f"{at}")
    assert failed


def list_problems(run):
    """Return what runs left, but for markers of completed writes that could not be removed."""
    marked = {path.name for path in Path(run.spec.path, MARKER_FOLDER).glob("*")}
    names = [path.name for path in get_timeline_folder(run).iterdir()]
    done = {name for name in marked if any(n.startswith(f"{name}_") for n in names)}
    return [one for one in list_leftovers_of_writes(run) if one not in done]
