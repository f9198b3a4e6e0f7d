"""An index step among others: Hudi's own index beside ours, a clean behind it, Hudi as executor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import StorageError
from reconciler.executor.index.run import run_index
from reconciler.hudi.load import load_properties
from reconciler.plans.model import IndexStep
from tests.built_column_stats import open_test_session
from tests.crash.drill import Killed, list_unlisted
from tests.crash.index_drill import IndexDrill, get_index_outcome, make_index_drill
from tests.crash.test_clean_by_hudi import StandIn
from tests.crash.test_index_damage import Refusing
from tests.crash.test_moves import Hook, put
from tests.storage_wrappers import StorageCall

TABLES = Path(__file__).parents[1] / "tables"
CLUSTERED = TABLES / "reading/clustered_0.15.0.zip"
SAID = {"index": "[id], hudi: build", "retention": "fileVersions: 1"}
DOWN = StorageError("/t/.hoodie/metadata/column_stats", "the store does not answer")


@pytest.fixture
def it(tmp_path) -> IndexDrill:
    """A table with a metadata table that has no column_stats, and with old files."""
    return make_index_drill(CLUSTERED, tmp_path / "t", **SAID)


def told(result):
    """By step its target, what became of it, and the code of all."""
    (table,) = result.tables
    assert table.error is None, table.error
    steps = [(o.kind, o.indexed and o.indexed.target, o.how) for o in table.outcomes]
    return result.exit_code, steps


BOTH = [
    ("index", "zindex", "completed"),
    ("index", "column_stats", "completed"),
    ("clean", None, "completed"),
]


def live(it: IndexDrill) -> set[str]:
    return set(load_properties(it.storage).metadata_partitions)


def test_both_indexes_are_built_and_the_clean_is_told_of_both(it):
    before = list_unlisted(it)

    assert ["index", "clean"] == it.steps()
    assert (0, BOTH) == told(it.apply(it.plan()))
    assert {"column_stats", "partition_stats"} & live(it) == {"column_stats"}
    assert before == list_unlisted(it)
    assert [] == it.steps() == it.problems("id >= 2")


def test_where_hudis_index_cannot_be_built_ours_is_and_the_clean_goes_on(it):
    def refuses(call: StorageCall) -> bool:
        return call.method == "create" and "metadata/column_stats/" in call.paths[0]

    result = it.apply(it.plan(), around=lambda s: Refusing(s, refuses, DOWN))

    failed = [BOTH[0], ("index", "column_stats", "failed"), BOTH[2]]
    assert (5, failed) == told(result)
    assert str(DOWN) == result.tables[0].outcomes[1].indexed.error
    assert "column_stats" not in live(it)
    assert (0, [("index", "column_stats", "completed")]) == told(it.apply(it.plan()))
    assert [] == it.steps()


def test_an_interruption_while_footers_are_read_leaves_nothing_behind(it):
    def refuses(call: StorageCall) -> bool:
        return call.method == "read_range" and call.paths[0].endswith(".parquet")

    with pytest.raises(KeyboardInterrupt):
        it.apply(it.plan(), around=lambda s: Refusing(s, refuses, KeyboardInterrupt()))

    assert [] == it.versions()
    assert (0, BOTH) == told(it.apply(it.plan()))


def test_an_index_is_ours_where_hudi_executes_the_rest(it):
    """Hudi is not taken to have changed which indexes there are."""
    result = it.apply(it.plan(), hudi=StandIn())

    _, steps = told(result)
    assert BOTH == steps
    differences = [note.because for o in result.tables[0].outcomes for note in o.differences]
    assert [] == [said for said in differences if "which indexes" in said]


def test_what_the_clean_behind_removes_is_left_out(tmp_path):
    it = make_index_drill(TABLES / "v9_cow_nopart.zip", tmp_path / "t", index="[id]")
    it.apply(it.plan())
    said = {"index": "[id]", "clustering": "[]"}
    clustered = IndexDrill(it.folder, said)
    done = get_index_outcome(clustered.apply(clustered.plan()))
    assert (2, 1, 0) == (done.files, done.kept, done.dropped)  # time travel reads the old one

    more = IndexDrill(it.folder, {"index": "[id, ts]", "retention": "fileVersions: 1"})
    assert ["index", "clean"] == more.steps()
    done = get_index_outcome(more.apply(more.plan()))

    assert (1, 1, 1) == (done.files, done.kept, done.dropped)
    assert [] == more.steps() == more.problems("id >= 2")


def test_a_table_that_is_told_to_stop_while_footers_are_read_stops(it):
    """Of several tables at a time only the main thread hears of an interruption."""
    table, look = open_test_session(it.table, ["id"])
    steps = [step for step in it.plan().tables[0].steps if isinstance(step, IndexStep)]
    told: list[int] = []

    class Builder:
        def build(self, _ref, _asked, files, *, progress):
            table.context.stop.request()
            progress(1)
            told.append(len(files))

    table = replace(table, context=replace(table.context, builder=Builder()))
    with pytest.raises(KeyboardInterrupt):
        list(run_index(table, steps[0], look))

    assert [] == told


def unlocked(it: IndexDrill) -> IndexDrill:
    """The spec says that there is a single writer."""
    said = {**it.spec.document["concurrency"], "lock": {"provider": "none"}}
    it.spec = replace(it.spec, document={**it.spec.document, "concurrency": said})
    return it


def another_writes(it: IndexDrill) -> None:
    put(it, "20261201000100000.commit.requested")


def test_an_index_of_ours_needs_no_lock_while_another_writes(tmp_path):
    it = unlocked(make_index_drill(CLUSTERED, tmp_path / "t", index="[id]"))
    plan = it.plan()
    another_writes(it)

    assert (0, BOTH[:1]) == told(it.apply(plan))
    assert [] == it.steps() == it.problems("id >= 2")


@pytest.mark.parametrize("said", [{"index": "[id], hudi: build"}, {**SAID, "index": "[id]"}])
def test_what_tells_the_metadata_table_needs_a_lock_while_another_writes(tmp_path, said):
    it = unlocked(make_index_drill(CLUSTERED, tmp_path / "t", **said))
    plan = it.plan()
    another_writes(it)

    assert (3, ["lock"]) == refused(it.apply(plan))


def test_a_clean_that_was_left_behind_needs_a_lock_though_an_index_alone_is_planned(it):
    both = it.plan()
    later = unlocked(IndexDrill(it.folder, {"index": "[id]"}))
    plan = later.plan()
    with pytest.raises(Killed):
        it.apply(both, around=lambda s: Hook(s, ".clean.inflight", die, after=True))
    another_writes(later)

    assert ["index"] == [step.kind for step in plan.tables[0].steps]
    assert (3, ["lock"]) == refused(later.apply(plan))


def refused(result):
    return result.exit_code, [note.rule for note in result.tables[0].refusals]


def die() -> None:
    raise Killed
