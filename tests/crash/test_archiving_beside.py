"""Hudi's archiver removes instants, and replaces its own files, while we look at the table."""

from __future__ import annotations

import re
from threading import Lock

import pytest

from reconciler.errors import BusyError, NotFoundError
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.api import StorageEntry
from reconciler.storage.open import open_storage
from tests.crash.clustering_drill import PlannedDrill
from tests.crash.declared_drill import MORE, SPEC
from tests.crash.drill import Killed, list_traces
from tests.crash.write_drill import BATCH, BEFORE, LATE, die_at, get_timeline_folder
from tests.storage_wrappers import RecordingStorage
from tests.table_sessions import write_spec
from tests.write_runs import WriteRuns, make_rows

VERSIONS = pytest.mark.parametrize("version", [6, 9])
KINDS = pytest.mark.parametrize("kind", ["cluster", "clean"])
COMMIT = re.compile(r"\.hoodie/(timeline/)?(\d{17})(_\d+)?\.commit$")
#: a commit of all rows, and three that rewrite one partition alone
COMMITS = [BEFORE, *([(1, "a", 2 + number, "x")] for number in range(3))]


def make_archiver(it, at, walks=1):
    """Return storage in which an archiver leaves the newest commit and what is later.

    It comes after so many listings of all files, right before a commit is read or the timeline is
    listed: ``at``.
    """
    folder, guard = get_timeline_folder(it), Lock()

    class Archiver(RecordingStorage):
        walked, archived = 0, ()

        def walk(self, descend):
            found = list(super().walk(descend))
            type(self).walked += 1
            return iter(found)

        def read(self, path):
            if at == "read" and COMMIT.search(path):
                self.archive()
            return super().read(path)

        def list(self, name):
            if at == "list" and name == str(folder.relative_to(it.spec.path)):
                self.archive()
            return super().list(name)

        def archive(self):
            with guard:  # commits are read in parallel
                if self.walked == walks and not self.archived:
                    type(self).archived = archive(folder)

    return Archiver


def archive(folder):
    """Remove the instants before the newest commit; return their files."""
    files = [file for file in folder.iterdir() if file.is_file() and file.name[:17].isdigit()]
    newest = max(file.name[:17] for file in files if file.suffix == ".commit")
    old = tuple(file for file in files if file.name[:17] < newest)
    for file in old:
        file.unlink()
    return old


def lose(pattern, times):
    """Return storage that does not find files that match a pattern, so many times after a walk."""
    missed, walks = [], []

    class Losing(RecordingStorage):
        def walk(self, descend):
            walks.append(descend)
            return super().walk(descend)

        def read(self, path):
            if walks and len(missed) < times and pattern.search(path):
                missed.append(path)
                raise NotFoundError(path, "does not exist")
            return super().read(path)

    Losing.missed, Losing.walks = missed, walks
    return Losing


def make_drill(folder, kind, version):
    """Return a table of four commits, and what can be applied to it."""
    text = SPEC.replace("MORE", MORE[kind]).replace("VERSION", str(version))
    drill = type("OurDrill", (PlannedDrill,), {"SPEC_TEXT": text})
    (folder / "it").mkdir()
    it = drill(folder / "it", {})
    runs = WriteRuns(it.spec)
    runs.clock = it.clock
    for rows in COMMITS:
        runs.write(make_rows(*rows))
    it.runs = 10
    return it


def make_runs(folder, version):
    """Return runs on a table of four commits."""
    (folder / "it").mkdir()
    it = WriteRuns(write_spec(folder / "it", version=version))
    for rows in COMMITS:
        it.write(make_rows(*rows))
    return it


def list_pending(it):
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return [one.file_name for one in timeline.instants if not one.is_completed]


def check_applied(it, result):
    (told,) = result.tables
    assert (None, 0) == (told.error, result.exit_code)
    assert [1, 2, 3] == sorted(row["id"] for row in it.rows())
    assert ([], []) == (list_pending(it), list_traces(it.table))


@VERSIONS
def test_a_write_goes_on_whose_table_is_archived_after_it_was_listed(tmp_path, version):
    it = make_runs(tmp_path, version)
    around = make_archiver(it, "read")
    result = it.write(BATCH, around=around)

    assert around.archived
    assert "completed" == result.status
    assert [1, 2, 3, 4] == [row[0] for row in it.read_rows()]


@VERSIONS
def test_a_clustering_goes_on_whose_table_is_archived_after_it_was_listed(tmp_path, version):
    it = make_drill(tmp_path, "cluster", version)
    plan = it.plan()
    around = make_archiver(it, "list")
    result = it.apply(plan, around=around)

    assert around.archived
    check_applied(it, result)


@VERSIONS
def test_a_resumed_clustering_goes_on_whose_table_is_archived_meanwhile(tmp_path, version):
    it = make_drill(tmp_path, "cluster", version)
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=die_at(r"\.parquet$"))
    around = make_archiver(it, "list", walks=2)
    result = it.apply(plan, around=around)

    assert around.archived
    check_applied(it, result)


@VERSIONS
def test_a_clean_goes_on_while_the_metadata_table_is_compacted(tmp_path, version, monkeypatch):
    monkeypatch.setattr("reconciler.executor.run.is_unchanging", lambda _path: False)
    it = make_drill(tmp_path, "clean", version)
    plan = it.plan()
    around = lose(re.compile(r"\.hoodie/metadata/files/"), times=1)
    result = it.apply(plan, around=around)

    assert around.missed
    check_applied(it, result)


@VERSIONS
def test_a_write_names_a_commit_that_is_lost(tmp_path, version):
    it = make_runs(tmp_path, version)
    around = lose(COMMIT, times=99)
    with pytest.raises(NotFoundError, match=r"\.commit: does not exist"):
        it.write(BATCH, around=around)

    assert 2 == len(around.walks)


@KINDS
def test_an_apply_of_a_table_that_changes_at_each_look_is_busy(tmp_path, kind):
    class Ghost(RecordingStorage):
        def list(self, folder):
            found = super().list(folder)
            ghost = StorageEntry(f"{LATE}.savepoint", 1, 0, is_folder=False)
            return [*found, ghost] if folder == ".hoodie" else found

    it = make_drill(tmp_path, kind, 6)
    result = it.apply(it.plan(), around=Ghost)
    (told,) = result.tables

    assert 6 == result.exit_code
    assert f"{LATE}.savepoint: disappeared several times" in told.error


def test_a_read_of_a_table_that_changes_at_each_look_is_busy(tmp_path, monkeypatch):
    seconds = []
    monkeypatch.setattr("reconciler.reader.open_scan.sleep", seconds.append)
    it = make_runs(tmp_path, 9)
    storage = lose(COMMIT, times=99)(open_storage(it.spec.path))
    with pytest.raises(BusyError, match=r"\.commit: disappeared repeatedly"):
        open_scan(storage, ReadRequest())

    assert pytest.approx([0.1, 0.2, 0.3]) == seconds


def replace_version(it):
    """Give the table a history; return storage in which its version file is always replaced.

    Hudi deletes the file and creates it anew at every archival.
    """
    history = get_timeline_folder(it) / "history"
    history.mkdir()
    (history / "manifest_1").write_text('{"files": []}')
    version = history / "_version_"
    version.write_text("1")
    missed = []

    class Replacing(RecordingStorage):
        def read(self, path):
            if not path.endswith(f"/{version.name}"):
                return super().read(path)
            missed.append(path)
            version.unlink()
            try:
                return super().read(path)
            finally:
                version.write_text("1")

    Replacing.missed = missed
    return Replacing


def test_a_write_goes_on_while_the_version_of_the_history_is_replaced(tmp_path):
    it = make_runs(tmp_path, 9)
    around = replace_version(it)

    assert "completed" == it.write(BATCH, around=around).status
    assert around.missed


@KINDS
def test_an_apply_goes_on_while_the_version_of_the_history_is_replaced(tmp_path, kind):
    it = make_drill(tmp_path, kind, 9)
    plan = it.plan()
    around = replace_version(it)
    result = it.apply(plan, around=around)

    assert around.missed
    check_applied(it, result)
