"""Stop an archival at any call while it merges small files: every instant stays archived once."""

from __future__ import annotations

from datetime import UTC

import pytest

from reconciler.hudi.load import load_archived_instants, load_properties, load_timeline
from reconciler.hudi.timeline.archive_v2 import read_current_manifest
from reconciler.hudi.timeline.instant import Action
from reconciler.transaction.archives.archival import archive_instants
from tests.crash.archival_drill import USUAL, make_drill
from tests.crash.drill import Killed
from tests.crash.test_archival_stops import AtomicFaults, list_rows
from tests.selection import EVERY_CASE, take_turn
from tests.storage_wrappers import RecordingStorage, StorageFault
from tests.trees import Tree

#: with one more, there are files enough for a merge
FILES = 9


def archive_oldest(it, storage=None):
    """Archive the oldest commit alone, which makes a file of its own."""
    storage = storage or it.storage
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    oldest = timeline.completed({Action.COMMIT})[:1]
    return archive_instants(storage, properties, timeline, oldest, zone=UTC, confirm=lambda: None)


def add_commits(it):
    """Add commits before the others: copies of the oldest, so that there are enough."""
    properties = load_properties(it.storage)
    folder = it.table / properties.timeline_folder
    first = load_timeline(it.storage, properties).completed({Action.COMMIT})[0]
    for number in range(FILES + 2):
        start, end = f"2020010100000{number:04}", f"2020010100010{number:04}"
        for path in [*folder.glob(f"{first.requested}*")]:
            name = path.name.replace(first.requested, start).replace(str(first.completed), end)
            (folder / name).write_bytes(path.read_bytes())


@pytest.fixture(params=(USUAL[0], "1.2.0_cow"))
def it(tmp_path, request):
    """A table with nine files in its archive, and commits that are still active."""
    it = make_drill(request.param, tmp_path / "it")
    add_commits(it)
    for _number in range(FILES):
        archive_oldest(it)
    return it


def list_archived(it):
    properties = load_properties(it.storage)
    return [one.requested for one in load_archived_instants(it.storage, properties)]


def list_doubles(it):
    rows = [*list_rows(it.storage, load_properties(it.storage))]
    return sorted({str(row) for row in rows if rows.count(row) > 1})


def count_files(it):
    """Return how many files hold the archive now."""
    folder = load_properties(it.storage).archive_folder
    if load_properties(it.storage).layout > 1:
        return len(read_current_manifest(it.storage, folder).files)
    return sum("archive." in path.name for path in (it.table / folder).glob("*"))


def test_ten_small_files_are_merged(it):
    before = list_archived(it)
    counts = archive_oldest(it)

    assert 1 == counts.merges
    assert len(before) + 1 == len(list_archived(it))
    assert [] == list_doubles(it)


def test_no_stop_loses_or_doubles_an_archived_instant(it):
    tree = Tree.from_folder(it.folder)
    recording = RecordingStorage(it.storage)
    archive_oldest(it, recording)
    goal, count = list_archived(it), len(recording.mutations)
    for at in take_turn(range(1, count + 1), of=1 if EVERY_CASE else count // 3):
        it.begin_again(tree)
        with pytest.raises(Killed):
            archive_oldest(it, AtomicFaults(it.storage, StorageFault(at=at), Killed()))
        assert set(goal[:FILES]) <= set(list_archived(it))
        if goal != list_archived(it) or is_active(it, goal[-1]):
            archive_oldest(it)
        archive_oldest(it)

        assert goal == list_archived(it)[: len(goal)], at
        assert [] == list_doubles(it)
        assert count_files(it) < FILES


def is_active(it, time):
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return any(one.requested == time for one in timeline.instants)
