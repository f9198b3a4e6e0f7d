"""The time of a clustering that was taken back, which another run takes again."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import StorageError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from reconciler.hudi.timeline.instant import State
from tests.crash.declared_drill import make_drill, write_three_times
from tests.crash.drill import Killed, list_traces, list_unlisted, process
from tests.crash.test_locks_lost_to_writers import LOCK
from tests.storage_wrappers import RecordingStorage

FIRST, CLUSTERING, CLEANING_UP = 20, 21, 22


@pytest.fixture(params=[6, 9])
def it(tmp_path, request):
    """A table with rows to cluster."""
    found = make_drill(tmp_path, "cluster", request.param)
    write_three_times(found)
    return found


class TakesBack(RecordingStorage):
    """Of a run that takes its clustering back and dies before it removes its heartbeat."""

    def create_from(self, path, file):  # noqa: ARG002
        raise StorageError(path, "cannot be written")

    def delete(self, path):
        if path.startswith(HEARTBEAT_FOLDER):
            raise Killed
        return super().delete(path)


def take_back(it, plan, host="here"):
    """Let a run take its clustering back and die, and return the time of the clustering."""
    with pytest.raises(Killed):
        it.apply(plan, around=TakesBack, process=replace(process(FIRST), host=host))
    (heartbeat,) = Path(it.table, HEARTBEAT_FOLDER).iterdir()
    assert [] == list_times(it, heartbeat.name)
    return heartbeat.name


def list_times(it, time):
    """Return the state of each instant of a time."""
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return [one.state for one in timeline.instants if one.requested == time]


class Clustering:
    """Another run that clusters in a thread, and stops before it settles until it may go on."""

    def __init__(self, it, plan):
        self.it, self.plan = it, plan
        self.has_written, self.may_settle = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        living = frozenset({CLEANING_UP})
        self.result = self.it.apply(self.plan, around=self._watch, pid=CLUSTERING, living=living)

    def _watch(self, storage):
        run = self

        class Stops(RecordingStorage):
            has_begun = False

            def create_from(self, path, file):
                super().create_from(path, file)
                type(self).has_begun = True

            def create(self, path, data):
                if path == LOCK and self.has_begun:
                    run.has_written.set()
                    assert run.may_settle.wait(60)
                super().create(path, data)

        return Stops(storage)

    def start(self):
        self.thread.start()
        assert self.has_written.wait(60)

    def finish(self):
        self.may_settle.set()
        self.thread.join(60)


@pytest.mark.parametrize("finishes_first", [True, False])
def test_a_run_that_cleans_up_leaves_the_files_of_a_clustering_that_took_the_time_again(
    it, finishes_first
):
    rows, plan = it.rows(), it.plan()
    time = take_back(it, plan)
    timeline = load_properties(it.storage).timeline_folder
    other = Clustering(it, plan)
    hits = []

    class CleansUp(RecordingStorage):
        lists = 0

        def list(self, folder):
            type(self).lists += folder == timeline
            if self.lists == 2 and not hits:  # after it found the heartbeat of no pending instant
                hits.append(folder)
                other.start()
            return super().list(folder)

        def delete_many(self, paths):
            if finishes_first and hits and paths:
                other.finish()
            return super().delete_many(paths)

    it.apply(plan, around=CleansUp, pid=CLEANING_UP, living=frozenset({CLUSTERING}))
    other.finish()
    (told,) = other.result.tables

    assert hits
    assert [State.COMPLETED] == list_times(it, time)
    assert (None, 0) == (told.error, other.result.exit_code)
    assert rows == it.rows()
    assert (set(), []) == (list_unlisted(it), list_traces(it.table))


def test_a_time_that_has_a_heartbeat_is_not_taken(it):
    """By the heartbeat of a run that may be dead others would take the new run for dead."""
    plan = it.plan()
    time = take_back(it, plan, host="there")
    heartbeat = Path(it.table, heartbeat_path(time))
    before = heartbeat.read_bytes()
    (told,) = it.apply(plan).tables
    (outcome,) = told.outcomes

    assert ("completed", []) == (outcome.how, list_times(it, time))
    assert outcome.instant > time
    assert before == heartbeat.read_bytes()
