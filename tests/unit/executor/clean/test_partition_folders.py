"""Partition folders go when nothing is in them and nobody may be about to write there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.errors import PlanError
from reconciler.executor.clean.partition_folders import METAFILE, remove_partition_folders
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.instant import Instant
from tests.unit.transaction.fakes import FakeClock, Shelf


def make_timeline(*names: str) -> Timeline:
    parsed = [(Instant.parse(name), name) for name in names]
    return Timeline.from_files(TimelineFile(i, name, 0, 0) for i, name in parsed if i)


def quiet() -> Timeline:
    return make_timeline("1.commit")


@pytest.fixture
def shelf() -> Shelf:
    found = Shelf(FakeClock())
    found.create("p=1/" + METAFILE, b"meta")
    found.create("p=2/" + METAFILE, b"meta")
    found.create("p=2/f.parquet", b"data")
    return found


def remove(shelf, paths, reread, earlier=None):
    return remove_partition_folders(shelf, paths, reread, {} if earlier is None else earlier)


def list_reasons(removals) -> dict[str, str]:
    return {note.rule: note.because for note in removals.left}


def test_an_empty_folder_goes_with_its_metafile(shelf):
    removals = remove(shelf, ["p=1"], quiet)

    assert removals.gone == ("p=1",)
    assert not any(path.startswith("p=1") for path in shelf.files)


def test_a_folder_that_holds_anything_else_stays_whole(shelf):
    removals = remove(shelf, ["p=2"], quiet)

    assert "for example f.parquet" in list_reasons(removals)["p=2"]
    assert {"p=2/f.parquet", "p=2/" + METAFILE} <= shelf.files.keys()


def test_a_folder_with_a_folder_in_it_stays(shelf):
    shelf.create("p=1/q=1/f", b"")

    assert "example q=1" in list_reasons(remove(shelf, ["p=1"], quiet))["p=1"]


@pytest.mark.parametrize("pending", ["2.commit.requested", "2.deltacommit.inflight", "2.inflight"])
def test_nothing_goes_while_a_write_is_pending(shelf, pending):
    removals = remove(shelf, ["p=1"], lambda: make_timeline("1.commit", pending))

    assert "pending" in list_reasons(removals)["p=1"]
    assert "p=1/" + METAFILE in shelf.files


def test_a_write_that_begins_meanwhile_gets_its_metafile_back(shelf):
    answers = iter([quiet(), make_timeline("1.commit", "2.commit.requested")])
    removals = remove(shelf, ["p=1"], lambda: next(answers))

    assert (removals.gone, set(list_reasons(removals))) == ((), {"p=1"})
    assert shelf.read("p=1/" + METAFILE) == b"meta"


def test_a_file_that_comes_while_the_folder_goes_keeps_it(shelf):
    shelf.delete = _creating(shelf, "p=1/new.parquet", shelf.delete)
    removals = remove(shelf, ["p=1"], quiet)

    assert removals.gone == ()
    assert {"p=1/new.parquet", "p=1/" + METAFILE} <= shelf.files.keys()


def _creating(shelf: Shelf, path: str, delete: Callable[[str], bool]) -> Callable[[str], bool]:
    def both(gone: str) -> bool:
        shelf.replace(path, b"new")
        return delete(gone)

    return both


def test_a_folder_that_is_gone_already_counts_as_removed(shelf):
    assert remove(shelf, ["p=9"], quiet).gone == ("p=9",)


def test_a_folder_that_another_removes_after_it_was_listed_counts_as_removed(shelf):
    read = shelf.read

    def vanish(path):
        shelf.files.pop(path)  # as Hudi does, when it executes the same clean
        return read(path)

    shelf.read = vanish
    assert remove(shelf, ["p=1"], quiet).gone == ("p=1",)


@pytest.mark.parametrize("names", [["1.commit", "2.commit.inflight"], ["1.commit", "2.commit"]])
def test_a_writer_that_held_the_lock_meanwhile_gets_the_metafile_back(shelf, names):
    earlier = {}
    assert ("p=1",) == remove(shelf, ["p=1"], quiet, earlier).gone
    if "2.commit" in names:
        shelf.create("p=1/f.parquet", b"data")  # its metafile was there when it looked

    removals = remove(shelf, ["p=1"], lambda: make_timeline(*names), earlier)

    assert () == removals.gone
    assert ["p=1"] == list(list_reasons(removals))
    assert b"meta" == shelf.read("p=1/" + METAFILE)


def test_a_folder_that_was_removed_before_its_lock_vanished_counts_as_removed(shelf):
    earlier = {}
    for _ in range(2):
        assert ("p=1",) == remove(shelf, ["p=1"], quiet, earlier).gone
    assert not any(path.startswith("p=1") for path in shelf.files)


def test_the_table_itself_is_never_removed(shelf):
    assert "not partitioned" in list_reasons(remove(shelf, [""], quiet))[""]
    with pytest.raises(PlanError):
        remove(shelf, [".."], quiet)
