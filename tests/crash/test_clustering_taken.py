"""Another writer takes our clustering over while we are at it: its files stay, and ours go."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.errors import StorageError
from reconciler.executor.result import ApplyResult
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.rewrite.facts import read_table_facts
from reconciler.rewrite.local import LocalRewriter
from reconciler.runtime import open_storage
from tests.crash.clustering_drill import (
    ClusteringDrill,
    PlannedDrill,
    make_clustering_drill,
    make_drill_of,
)
from tests.crash.drill import Killed, list_data_files
from tests.crash.test_clustering_races import (
    TIME,
    base_of,
    commit,
    die,
    requested_of,
    rollback_of,
    take_over,
)
from tests.crash.test_moves import Hook, age, put, timeline_folder

TABLES = Path(__file__).parents[1] / "tables"


@pytest.fixture(params=["v6_keygen", "v9_keygen"])
def it(request, tmp_path) -> ClusteringDrill:
    """Three partitions with a group each, nothing pending."""
    return make_clustering_drill(TABLES / f"{request.param}.zip", tmp_path / "t")


@dataclass
class Overtaken:
    """Rewrites, and then somebody comes; ``fails``: the work has gone wrong by then."""

    act: Callable[[], None]
    fails: bool = False

    def rewrite(self, ref, work, groups, *, progress):
        found = LocalRewriter(open_storage).rewrite(ref, work, groups, progress=progress)
        self.act()
        if self.fails:
            raise StorageError("x", "cannot be written")
        return found


def overtaken(it: ClusteringDrill, act: Callable[[], None], *, fails: bool = False) -> ApplyResult:
    return it.apply(it.plan(), rewriter=Overtaken(act, fails))


def instant_of(it: ClusteringDrill) -> str:
    return requested_of(it).name.split(".")[0]


def roll_back(it: ClusteringDrill) -> None:
    """As Hudi does it: files by marker away, then the markers, then the inflight file."""
    requested = requested_of(it)
    temp = it.table / ".hoodie/.temp" / instant_of(it)
    for marker in temp.rglob("*.marker.CREATE"):
        name = marker.relative_to(temp).as_posix().removesuffix(".marker.CREATE")
        (it.table / name).unlink(missing_ok=True)
    shutil.rmtree(temp)
    requested.with_name(requested.name.replace("requested", "inflight")).unlink()
    rollback_of(it, instant_of(it))


def begin_again(it: ClusteringDrill) -> str:
    """Hudi has rolled ours back and written the first file of its own attempt; gives its path."""
    roll_back(it)
    put(it, requested_of(it).name.replace("requested", "inflight"))
    partition = partitions_of(it)[0]
    path = f"{partition}/7a4e-0_1-1-1_{instant_of(it)}.parquet"
    marker = it.table / ".hoodie/.temp" / instant_of(it) / f"{path}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    shutil.copy(it.table / partition / base_of(it, partition), it.table / path)
    return path


def partitions_of(it: ClusteringDrill) -> list[str]:
    return sorted({path.rpartition("/")[0] for path in list_data_files(it.table)})


@pytest.mark.parametrize("fails", [True, False])
def test_files_of_one_who_does_our_clustering_now_are_not_ours_to_remove(it, fails):
    rows, theirs = it.rows(), []
    result = overtaken(it, lambda: theirs.append(begin_again(it)), fails=fails)

    assert (1 if fails else 6) == result.exit_code
    ours = {path for path in list_data_files(it.table) if f"_{instant_of(it)}." in path}
    assert set(theirs) == ours
    assert (it.table / ".hoodie/.temp" / instant_of(it)).exists()
    assert rows == it.rows()


@pytest.mark.parametrize("fails", [True, False])
def test_our_files_go_that_came_after_another_writer_had_removed_our_markers(it, fails):
    rows = it.rows()

    def act() -> None:
        late = {
            path: (it.table / path).read_bytes()
            for path in list_data_files(it.table)
            if f"_{instant_of(it)}." in path
        }
        take_over(it)
        for path, data in late.items():
            (it.table / path).write_bytes(data)

    result = overtaken(it, act, fails=fails)
    (done,) = timeline_folder(it).glob("2026113023000*.replacecommit")
    instant = done.name[:17]
    named = {"/".join(file) for file in WriteFootprint.parse(done.read_bytes(), "x").files}

    assert (1 if fails else 0) == result.exit_code
    assert named == {path for path in list_data_files(it.table) if f"_{instant}." in path}
    assert rows == it.rows()


def test_one_whose_rollback_is_pending_is_not_rewritten_for_nothing(it):
    rows = it.rows()
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    rollback_of(it, instant_of(it)).unlink()
    for path in timeline_folder(it).glob("*.rollback.*"):
        age(it, path, seconds=3601)
    written = []
    result = it.apply(it.plan(), rewriter=Overtaken(lambda: written.append(1)))

    assert (6, []) == (result.exit_code, written)
    assert "a rollback of our clustering" in result.tables[0].error
    assert rows == it.rows()


@pytest.mark.parametrize("table", ["v6_keygen", "v9_keygen"])
def test_a_rollback_of_it_that_nobody_finishes_is_finished_if_declared(tmp_path, table):
    """Otherwise each apply would wait for a writer that is dead."""
    it = make_drill_of(
        PlannedDrill,
        TABLES / f"{table}.zip",
        tmp_path / "t",
        concurrency=", pending: {clustering: rollback, after: 1h}",
    )
    rows = it.rows()
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    instant = instant_of(it)
    rollback_of(it, instant).unlink()
    for path in timeline_folder(it).glob("*.rollback.*"):
        age(it, path, seconds=7300)
    plan = it.plan()
    result = it.apply(plan)

    assert ["rollback"] == [step.kind for step in plan.tables[0].steps if step.kind != "cluster"]
    assert 0 == result.exit_code, result.tables[0]
    assert [] == [path.name for path in timeline_folder(it).glob(f"{instant}*")]
    assert rows == it.rows()


def test_columns_that_were_altered_after_the_look_are_looked_at_again(it, monkeypatch):
    """Readers take a file's columns for those of the version before its instant."""
    looks = []

    def counted(*args):
        looks.append(1)
        return read_table_facts(*args)

    def alter() -> None:
        commit(it, {}, done=True)
        folder = it.table / ".hoodie/.schema"
        folder.mkdir(exist_ok=True)
        (folder / f"{TIME}.schemacommit").write_text('{"schemas": []}')

    monkeypatch.setattr("reconciler.executor.cluster.run.read_table_facts", counted)
    plan = it.plan()
    result = it.apply(plan, around=lambda s: Hook(s, "lock", alter, after=False))

    assert ("completed", 2) == (result.tables[0].outcomes[0].how, len(looks))


def test_one_that_is_rolled_back_after_our_last_look_is_not_completed(it):
    rows, theirs = it.rows(), []

    class AtTheEnd(Hook):
        """After the files are looked for the table's properties are read once more."""

        def _intercept(self, call, act, torn=None):  # noqa: ARG002
            if call.method == "stat" and call.paths[0].endswith(".parquet"):
                theirs[:] = ["soon"]
            elif theirs == ["soon"] and call.paths[0].endswith(".properties"):
                theirs[:] = [begin_again(it)]
            return act()

    result = it.apply(it.plan(), around=lambda s: AtTheEnd(s, "", lambda: None, after=True))

    assert 6 == result.exit_code
    assert [] == list(timeline_folder(it).glob("2026113023000*.replacecommit"))
    assert set(theirs) == {p for p in list_data_files(it.table) if f"_{instant_of(it)}." in p}
    assert rows == it.rows()


def test_the_next_apply_removes_what_workers_of_a_dead_run_brought_after_another_was_done(it):
    rows, plan, late, beating = it.rows(), it.plan(), {}, {}

    def act() -> None:
        """The other removes files and markers, completes, and then an upload of ours ends."""
        for path in list_data_files(it.table):
            if f"_{instant_of(it)}." in path:
                late[path] = (it.table / path).read_bytes()
        take_over(it)
        for path, data in late.items():
            (it.table / path).write_bytes(data)
        for path in (it.table / ".hoodie/.heartbeat").iterdir():
            beating[path] = path.read_bytes()
        raise Killed

    with pytest.raises(Killed):
        it.apply(plan, rewriter=Overtaken(act))
    for path, data in beating.items():  # nothing is removed by who is killed
        path.write_bytes(data)
    it.apply(it.plan())

    assert late
    assert beating
    assert not any(path.exists() for path in beating)
    assert [] == [path for path in late if (it.table / path).exists()]
    assert rows == it.rows()
