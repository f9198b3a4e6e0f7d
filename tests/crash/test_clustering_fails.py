"""What goes wrong while files are rewritten takes everything back, and is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import FormatError
from reconciler.rewrite.local import LocalRewriter
from reconciler.rewrite.model import RewrittenGroup, Tally
from reconciler.runtime import open_storage
from tests.crash.clustering_drill import ClusteringDrill, list_leftovers, make_clustering_drill
from tests.crash.drill import list_data_files
from tests.crash.test_moves import Hook, timeline_folder

TABLES = Path(__file__).parents[1] / "tables"


@pytest.fixture(params=["v6_keygen", "v9_keygen"])
def it(request, tmp_path) -> ClusteringDrill:
    return make_clustering_drill(TABLES / f"{request.param}.zip", tmp_path / "t")


class Telling:
    """Rewrites as ever, and tells something else of it."""

    def __init__(self, tell: Callable[[list[RewrittenGroup]], list[RewrittenGroup]]) -> None:
        self._tell, self._own = tell, LocalRewriter(open_storage)

    def rewrite(self, ref, work, groups, *, progress):
        return self._tell(self._own.rewrite(ref, work, groups, progress=progress))


def raises(error: BaseException) -> Callable:
    def tell(_found):
        raise error

    return tell


def other_rows(found):
    return [replace(found[0], written=Tally(rows=9, keys=found[0].read.keys)), *found[1:]]


def other_keys(found):
    return [*found[1:], replace(found[0], written=replace(found[0].written, keys=1))]


def fewer_files(found):
    return [replace(found[0], files=()), *found[1:]]


def test_a_group_that_is_to_become_no_file_loses_no_rows(it):
    rows, plan = it.rows(), it.plan()
    (table,) = plan.tables
    (step,) = table.steps
    none = replace(step, groups=replace(step.groups, outputs=0 * step.groups.outputs))
    result = it.apply(replace(plan, tables=(replace(table, steps=(none,)),)))
    (found,) = result.tables

    assert "is to become no file, and its rows would be lost; plan again" in found.error
    assert rows == it.rows()
    assert [] == list_leftovers(it.table)


@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (
            other_rows,
            "1 rows were read, 9 were written, 1 are in its files, and their keys are the same",
        ),
        (other_keys, "1 rows were read, 1 were written, 1 are in its files, and their keys differ"),
        (fewer_files, "1 rows were read, 1 were written, 0 are in its files"),
        (lambda found: found[1:], "of the 3 groups of clustering .* told of 2"),
        (raises(FormatError("p=1/x.parquet", "is damaged")), "p=1/x.parquet: is damaged"),
        (raises(ValueError("what")), "ValueError: what"),
    ],
)
def test_nothing_stays_of_a_rewrite_that_went_wrong(it, tell, says):
    rows, files = it.rows(), list_data_files(it.table)
    instants = it.state().timeline.instants
    result = it.apply(it.plan(), rewriter=Telling(tell))
    (table,) = result.tables

    assert (1, ()) == (result.exit_code, table.outcomes)
    assert re.search(says, table.error)
    assert (rows, files) == (it.rows(), list_data_files(it.table))
    assert [] == list_leftovers(it.table)
    assert instants == it.state().timeline.instants
    assert 0 == it.apply(it.plan()).exit_code


def test_an_interruption_takes_it_back_too(it):
    rows, files = it.rows(), list_data_files(it.table)
    with pytest.raises(KeyboardInterrupt):
        it.apply(it.plan(), rewriter=Telling(raises(KeyboardInterrupt())))

    assert (rows, files) == (it.rows(), list_data_files(it.table))
    assert [] == list_leftovers(it.table)


def test_without_anything_that_rewrites_nothing_is_announced(it):
    result = it.apply(it.plan(), rewriter=None)

    assert 1 == result.exit_code
    assert "rewriting files needs Spark" in result.tables[0].error
    assert [] == list_leftovers(it.table)


def test_files_of_attempts_that_do_not_count_are_removed(it):
    """A task that was tried twice leaves a file, with its marker, that nobody told of."""
    rows, plan = it.rows(), it.plan()

    def stray():
        (requested,) = timeline_folder(it).glob("2026113023000*.requested")
        instant = requested.name.split(".")[0]
        partition = plan.tables[0].steps[0].groups.partition[0].as_py()
        base = next((it.table / partition).glob("*.parquet"))
        name = f"5757-0_1-1-1_{instant}.parquet"
        folder = it.table / ".hoodie/.temp" / instant / partition
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.marker.CREATE").touch()
        (it.table / partition / name).write_bytes(base.read_bytes())

    result = it.apply(plan, around=lambda s: Hook(s, ".inflight", stray, after=True))

    assert 0 == result.exit_code
    assert rows == it.rows()
    assert [] == [path for path in list_data_files(it.table) if "5757-0" in path]
    assert [] == list_leftovers(it.table)
