"""A run is silent for so long that another run takes its clustering over, and then comes back."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.hudi.timeline.heartbeat import DEAD_AFTER_S, heartbeat_path
from tests.crash.clustering_drill import make_clustering_drill
from tests.crash.drill import Killed, list_data_files, list_traces, process
from tests.crash.test_clustering_races import die
from tests.crash.test_clustering_taken import TABLES, Overtaken, instant_of
from tests.storage_wrappers import RecordingStorage

LOCK = ".hoodie/lock"


@pytest.fixture(params=["v6_keygen", "v9_keygen"])
def it(request, tmp_path):
    """Three partitions with a group each, nothing pending."""
    return make_clustering_drill(TABLES / f"{request.param}.zip", tmp_path / "t")


class TakingRun:
    """A run on another host that takes the clustering over; it stops when its files are written."""

    def __init__(self, it):
        self.it = it

    def take_over(self):
        it = self.it
        before = set(list_own_files(it))
        silent_since = time.time() - DEAD_AFTER_S - 60
        os.utime(get_heartbeat(it), (silent_since, silent_since))
        with pytest.raises(Killed):
            it.apply(it.plan(), rewriter=Overtaken(die), process=replace(process(99), host="there"))
        self.files, self.heartbeat = list_own_files(it), get_heartbeat(it).read_bytes()
        assert self.files
        assert not before & set(self.files)

    def check(self):
        """Check that all of its work is still there, and that it can be finished."""
        it = self.it
        assert self.files == list_own_files(it)
        assert self.heartbeat == get_heartbeat(it).read_bytes()
        result = it.apply(it.plan(), process=replace(process(100), host="there"))
        assert (None, 0) == (result.tables[0].error, result.exit_code)
        assert [] == list_traces(it.table)


def list_own_files(it):
    """Return the data files of the clustering."""
    return sorted(path for path in list_data_files(it.table) if f"_{instant_of(it)}." in path)


def get_heartbeat(it):
    return Path(it.table, heartbeat_path(instant_of(it)))


@pytest.mark.parametrize(("fails", "code"), [(False, 6), (True, 1)])
def test_a_run_that_comes_back_leaves_the_work_of_the_other(it, fails, code):
    rows, other = it.rows(), TakingRun(it)
    result = it.apply(it.plan(), rewriter=Overtaken(other.take_over, fails))

    assert code == result.exit_code
    other.check()
    assert rows == it.rows()


def test_a_run_that_resumed_the_clustering_leaves_the_work_of_the_other(it):
    rows, other = it.rows(), TakingRun(it)
    with pytest.raises(Killed):
        it.apply(it.plan(), rewriter=Overtaken(die))

    class Silent(RecordingStorage):
        """Of a run that is silent before it removes the files of the first attempt."""

        locks = 0

        def create(self, path, data):
            if path == LOCK:
                type(self).locks += 1
                if self.locks == 2:
                    other.take_over()
            super().create(path, data)

    result = it.apply(it.plan(), around=Silent)

    assert 6 == result.exit_code
    assert "was taken over by another run" in result.tables[0].error
    other.check()
    assert rows == it.rows()
