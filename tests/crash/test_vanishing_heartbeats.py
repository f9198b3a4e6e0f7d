"""Heartbeats of runs that end after we listed them and before we read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.recovery.takeover import find_living_owner
from tests.crash.dead_writes import apply_once, make_dead_write, make_plan
from tests.crash.declared_drill import make_drill, write_three_times
from tests.crash.drill import Killed, process
from tests.crash.test_moves import age
from tests.crash.write_drill import BATCH, die_at, find_pending_instant
from tests.storage_wrappers import RecordingStorage

VERSIONS = pytest.mark.parametrize("version", [6, 9])


class Vanishing(RecordingStorage):
    """Deletes each heartbeat before it is read."""

    hits = 0

    def read(self, path):
        if path.startswith(HEARTBEAT_FOLDER):
            type(self).hits += self._inner.delete(path)
        return super().read(path)


@pytest.fixture(autouse=True)
def _count_again(monkeypatch):
    monkeypatch.setattr(Vanishing, "hits", 0)


@pytest.fixture
def it(tmp_path, version):
    """Runs on a table with a dead write, and the heartbeat of a dead run that completed."""
    found = make_dead_write(tmp_path / "it", version)
    storage = open_storage(found.spec.path)
    timeline = load_timeline(storage, load_properties(storage))
    done = next(one.requested for one in timeline.instants if one.is_completed)
    owner = process(pid=300).make_owner("dead")
    storage.create(heartbeat_path(done), owner.encode())
    return found


def list_heartbeats(it):
    return [path.name for path in Path(it.spec.path, HEARTBEAT_FOLDER).iterdir()]


@VERSIONS
def test_an_instant_whose_heartbeat_vanishes_is_not_held_for_ours(it):
    state = observe(
        Vanishing(open_storage(it.spec.path)),
        it.spec,
        observed_ms=it.clock.now_ms(),
        check_process=process(pid=8).is_alive,
    )

    assert () == state.pending_writes
    assert Vanishing.hits


@VERSIONS
def test_an_apply_leaves_a_write_alone_whose_heartbeat_vanishes(it):
    plan = make_plan(it)
    (result,) = apply_once(it, plan, around=Vanishing).tables

    assert 6 == result.code
    assert "has no heartbeat of ours any more" in result.error
    assert Vanishing.hits > 1


@VERSIONS
@pytest.mark.parametrize(("seconds", "code"), [(3599, 6), (3601, 0)])
def test_a_begun_clustering_whose_heartbeat_vanishes_is_held_for_that_of_another_writer(
    tmp_path, version, seconds, code
):
    it = make_drill(tmp_path, "cluster", version)
    write_three_times(it)
    with pytest.raises(Killed):
        it.apply(it.plan(), around=die_at(r"\.parquet$"))
    (heartbeat,) = Path(it.table, HEARTBEAT_FOLDER).iterdir()
    folder = it.table / load_properties(it.storage).timeline_folder
    for path in folder.glob(f"{heartbeat.name}.*"):
        age(it, path, seconds=seconds)
    (result,) = it.apply(it.plan(), around=Vanishing).tables

    assert (code, code == 6) == (result.code, "another writer" in (result.error or ""))
    assert Vanishing.hits


@VERSIONS
def test_a_write_goes_on_when_heartbeats_vanish(it):
    it.write(BATCH, around=Vanishing)

    assert Vanishing.hits > 1
    assert [] == list_heartbeats(it)


@VERSIONS
def test_the_owner_of_a_heartbeat_that_vanishes_is_that_of_the_requested_file(it):
    owner = find_living_owner(
        Vanishing(open_storage(it.spec.path)),
        find_pending_instant(it),
        requested_by=process(pid=7).make_owner("requested"),
        requested_ms=it.clock.now_ms(),
        process=process(pid=8, living=frozenset({7})),
        now_ms=it.clock.now_ms(),
    )

    assert "requested" == owner.token
    assert 1 == Vanishing.hits
