"""Commits are archived between the listing of the timeline and the look for a stream's batch."""

from __future__ import annotations

import re

import pytest

from reconciler.errors import BusyError
from reconciler.storage.open import open_storage
from reconciler.writer import stream_batches
from reconciler.writer.stream_batches import find_last_batch, make_batch_extra
from tests.crash.write_drill import get_timeline_folder, make_table
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    """Runs on a table of three commits; the second brings batch 6 of the stream."""
    found = make_table(tmp_path / "it", request.param)
    found.write(make_rows((4, "a", 1, "x")), extra=make_batch_extra("orders", 6))
    found.write(make_rows((5, "a", 1, "x")))
    return found


@pytest.fixture
def archive(monkeypatch):
    """The extra metadata of archived commits, newest first."""
    extras = []
    monkeypatch.setattr(
        stream_batches,
        "read_archived_commits",
        lambda _storage, _properties: (("UPSERT", extra, "the archive") for extra in extras),
    )
    return extras


def act_before_reading_commits(act):
    """Return storage that calls ``act`` before it reads a completed commit."""

    class Before(RecordingStorage):
        def read(self, path):
            if re.search(r"/\d{17}(_\d+)?\.commit$", path):
                act()
            return super().read(path)

    return Before


def list_commits(it):
    return sorted({path.name[:17] for path in get_timeline_folder(it).glob("*.commit")})


def remove_instant(it, instant):
    for path in get_timeline_folder(it).glob(f"{instant}*"):
        path.unlink()


def test_a_batch_that_is_archived_before_it_is_read_is_found_in_the_archive(it, archive):
    def act():
        for instant in list_commits(it)[:-1]:
            remove_instant(it, instant)
            archive[:] = [make_batch_extra("orders", 6)]

    storage = act_before_reading_commits(act)(open_storage(it.spec.path))

    assert 6 == find_last_batch(storage, "orders")


def test_a_stream_without_batches_has_none_although_commits_are_archived(it):
    seen = []

    def act():
        if not seen:
            seen.append(list_commits(it)[0])
            remove_instant(it, seen[0])

    storage = act_before_reading_commits(act)(open_storage(it.spec.path))

    assert find_last_batch(storage, "returns") is None
    assert seen


def test_a_table_whose_commits_are_archived_whenever_they_are_read_is_busy(it):
    moved = []

    def act():
        """Archive the newest commit, and complete another."""
        newest = max(get_timeline_folder(it).glob("*.commit"))
        later = f"{int(newest.name[:17]) + 1}{newest.name[17:]}"
        moved.append(newest.rename(newest.with_name(later)))

    storage = act_before_reading_commits(act)(open_storage(it.spec.path))

    with pytest.raises(BusyError, match="the last batch of stream orders was looked for"):
        find_last_batch(storage, "orders")
    assert 8 == len(moved)
