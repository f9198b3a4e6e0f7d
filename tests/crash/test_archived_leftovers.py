"""A completed write is archived while another run removes what a dead run left of it."""

from __future__ import annotations

import pytest

from reconciler.hudi.load import load_properties
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from tests.crash.declared_drill import make_drill, write_three_times
from tests.crash.drill import list_data_files, process
from tests.crash.write_drill import BATCH
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import WriteRuns


@pytest.fixture(params=[6, 9])
def it(tmp_path, request):
    """A table with rows."""
    found = make_drill(tmp_path, "write", request.param)
    write_three_times(found)
    return found


class Archiving(RecordingStorage):
    """Archives an instant just before its completed file is read; ``path``: without its ending."""

    path: str
    archived: list[str]

    def read(self, path):
        if path.startswith(self.path) and path.endswith(".commit"):
            folder = path.rpartition("/")[0]
            for entry in self._inner.list(folder):
                if entry.name.startswith(self.path.rpartition("/")[2]):
                    self.archived.append(entry.name)
                    self._inner.delete(f"{folder}/{entry.name}")
        return super().read(path)


@pytest.fixture
def archiving(it):
    """The storage of a run; the oldest write has the heartbeat of a dead run."""
    folder = load_properties(it.storage).timeline_folder
    time = min(path.name[:17] for path in (it.table / folder).glob("*.commit"))
    it.storage.create(heartbeat_path(time), process(300).make_owner("dead").encode())
    return type("ArchivingOne", (Archiving,), {"path": f"{folder}/{time}", "archived": []})


def check(it, archiving, files):
    """Check that the heartbeat stays, so that a later run removes what is left, and all files."""
    assert archiving.archived
    assert (it.table / heartbeat_path(archiving.path.rpartition("/")[2])).exists()
    assert files <= list_data_files(it.table)


def test_an_apply_goes_on(it, archiving):
    files, plan = list_data_files(it.table), it.plan()
    (told,) = it.apply(plan, around=archiving).tables

    assert told.error is None
    check(it, archiving, files)


def test_a_write_goes_on(it, archiving):
    files, runs = list_data_files(it.table), WriteRuns(it.spec)
    runs.clock, runs.count = it.clock, 50
    runs.write(BATCH, around=archiving)

    check(it, archiving, files)
