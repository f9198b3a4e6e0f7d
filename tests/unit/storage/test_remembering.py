from __future__ import annotations

import os
import pickle

import pytest

from reconciler.storage import remembering
from reconciler.storage.local import LocalStorage
from reconciler.storage.remembering import RememberingStorage
from tests.storage_wrappers import RecordingStorage


def is_log(path):
    return path.endswith(".log")


@pytest.fixture
def files(tmp_path):
    """A recording storage with two files, and the same behind a memory of one of them."""
    inner = RecordingStorage(LocalStorage(str(tmp_path)))
    inner.create("p/a.log", b"first")
    inner.create("p/b", b"other")
    return inner, RememberingStorage(inner, is_log)


def test_an_unchanging_file_is_read_once(files):
    inner, storage = files
    storage.list("p")
    read = [storage.read("p/a.log"), storage.read("p/a.log"), storage.read_range("p/a.log", 1, 3)]

    assert [b"first", b"first", b"irs"] == read
    assert (1, 0) == (inner.counts["read"], inner.counts["read_range"])


def test_a_range_reads_a_small_file_whole_and_the_end_of_a_file_as_it_is(files):
    inner, storage = files
    storage.list("p")

    assert (b"fi", b"first", b"st") == (
        storage.read_range("p/a.log", 0, 2),
        storage.read("p/a.log"),
        storage.read_range("p/a.log", -2, 2),
    )
    assert (1, 1) == (inner.counts["read"], inner.counts["read_range"])


def test_every_other_file_and_one_that_no_listing_has_shown_is_read_again(files):
    inner, storage = files
    for _ in range(2):
        storage.read("p/a.log")
    storage.list("p")
    for _ in range(2):
        storage.read("p/b")

    assert 4 == inner.counts["read"]


def test_a_file_that_a_listing_shows_with_another_size_is_read_again(files):
    _, storage = files
    storage.list("p")
    storage.read("p/a.log")
    storage.replace("p/a.log", b"second")
    unlisted = storage.read("p/a.log")
    storage.list("p")

    assert (b"second", b"second") == (unlisted, storage.read("p/a.log"))


def test_a_file_that_another_writer_made_anew_is_read_again(files, tmp_path):
    inner, storage = files
    storage.list("p")
    storage.read("p/a.log")
    inner.replace("p/a.log", b"FIRST")
    os.utime(tmp_path / "p" / "a.log", (2_000_000_000, 2_000_000_000))
    storage.list("p")

    assert b"FIRST" == storage.read("p/a.log")


def test_a_file_that_grows_between_listing_and_reading_is_not_remembered(files):
    inner, storage = files
    storage.list("p")
    inner.replace("p/a.log", b"first and more")
    storage.read("p/a.log")
    storage.read("p/a.log")

    assert 2 == inner.counts["read"]


def test_it_forgets_the_file_that_was_not_asked_for_the_longest(files, monkeypatch):
    inner, storage = files
    monkeypatch.setattr(remembering, "_MOST_BYTES", 12)
    for name in ("c.log", "d.log"):
        inner.create(f"p/{name}", b"12345")
    storage.list("p")
    for name in ("a", "c", "a", "d", "a", "c"):
        storage.read(f"p/{name}.log")

    assert ["a", "c", "d", "c"] == [
        call.paths[0][2:3] for call in inner.calls if call.method == "read"
    ]


def test_it_is_pickled_without_what_it_remembers(files):
    _, storage = files
    storage.list("p")
    storage.read("p/a.log")
    copy = pickle.loads(pickle.dumps(storage))

    assert ({}, b"first") == (copy._contents, copy.read("p/a.log"))
