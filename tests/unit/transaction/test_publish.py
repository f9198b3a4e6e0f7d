"""The three files of an instant, on either layout."""

from __future__ import annotations

from datetime import UTC

import pytest

from reconciler.errors import AlreadyExistsError, StaleError
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.hudi.timeline.instant import Action, Instant
from reconciler.transaction.publish import Publisher, find_completion
from tests.unit.transaction.fakes import FakeClock, Shelf

OLD = "20251231000000000_20251231000001000.commit"


def make_publisher(shelf: Shelf, layout: int, **more) -> Publisher:
    folder = ".hoodie/timeline" if layout == 2 else ".hoodie"

    def reread() -> Timeline:
        names = [entry.name for entry in shelf.list(folder)]
        parsed = [(Instant.parse(name), name) for name in names]
        return Timeline.from_files(TimelineFile(i, name, 0, 0) for i, name in parsed if i)

    return Publisher(
        storage=shelf,
        folder=folder,
        layout=layout,
        zone=UTC,
        clock=shelf.clock,
        reload_timeline=reread,
        **more,
    )


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(FakeClock())


def run_clean(it: Publisher) -> str:
    time = it.request(Action.CLEAN, it.reload_timeline(), b"plan")
    it.begin(time, Action.CLEAN, b"")
    it.complete(time, Action.CLEAN, b"done")
    return time


def test_layout_2_completes_under_a_later_completion_time(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    run_clean(make_publisher(shelf, 2))

    assert sorted(shelf.files) == [
        f".hoodie/timeline/{OLD}",
        ".hoodie/timeline/20260101000000000.clean.inflight",
        ".hoodie/timeline/20260101000000000.clean.requested",
        ".hoodie/timeline/20260101000000000_20260101000000001.clean",
    ]


def test_layout_1_completes_under_the_requested_time(shelf):
    shelf.create(".hoodie/20251231000000000.commit", b"")
    run_clean(make_publisher(shelf, 1))

    assert shelf.read(".hoodie/20260101000000000.clean") == b"done"
    assert shelf.read(".hoodie/20260101000000000.clean.requested") == b"plan"


def test_a_time_is_greater_than_completion_times_and_archived_ones_too(shelf):
    shelf.create(".hoodie/timeline/20251231000000000_20260101000000100.commit", b"")
    it = make_publisher(shelf, 2)

    assert it.choose_time(it.reload_timeline()) == "20260101000000101"
    it = make_publisher(shelf, 2, archived_newest="20260101000000500")
    assert it.choose_time(it.reload_timeline()) == "20260101000000501"


def test_an_instant_is_never_completed_twice(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2)
    time = run_clean(it)

    with pytest.raises(StaleError, match="completed by another"):
        it.complete(time, Action.CLEAN, b"again")
    assert (
        find_completion(it.reload_timeline(), time, Action.CLEAN).completed == "20260101000000001"
    )


def test_an_instant_that_was_removed_is_not_completed(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2)
    time = it.request(Action.CLEAN, it.reload_timeline(), b"plan")
    it.withdraw(time, Action.CLEAN)

    with pytest.raises(StaleError, match="removed from the timeline"):
        it.complete(time, Action.CLEAN, b"done")
    assert sorted(shelf.files) == [f".hoodie/timeline/{OLD}"]


def test_a_requested_file_that_exists_is_not_overwritten(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2)
    before = it.reload_timeline()
    it.request(Action.CLEAN, before, b"first")

    with pytest.raises(AlreadyExistsError):
        it.request(Action.CLEAN, before, b"second")


def test_a_clustering_completes_as_a_replacecommit(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2)
    time = it.request(Action.CLUSTERING, it.reload_timeline(), b"plan")
    it.begin(time, Action.CLUSTERING, b"")

    done = it.complete(time, Action.CLUSTERING, b"done")
    assert done.file_name == f"{time}_{done.completed}.replacecommit"


@pytest.mark.parametrize("action", [Action.REPLACECOMMIT, Action.CLUSTERING])
def test_a_rewrite_takes_a_time_before_writes_that_are_not_announced_yet(shelf, action):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2, backdating_ms=3_600_000)

    assert it.request(action, it.reload_timeline(), b"plan") == "20251231230000000"
    assert it.request(action, it.reload_timeline(), b"plan") == "20251231230000001"
    it.begin("20251231230000001", action, b"")
    done = it.complete("20251231230000001", action, b"done")
    assert done.completed == "20260101000000000"


@pytest.mark.parametrize(
    ("action", "first"),
    [(Action.REPLACECOMMIT, "20251231230000000"), (Action.CLEAN, "20260101000000000")],
)
def test_a_time_that_has_a_heartbeat_is_not_taken(shelf, action, first):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    shelf.create(heartbeat_path(first), b"")
    it = make_publisher(shelf, 2, backdating_ms=3_600_000)

    assert it.request(action, it.reload_timeline(), b"plan") == f"{int(first) + 1}"


def test_a_clean_writes_no_files_so_its_time_is_now(shelf):
    shelf.create(f".hoodie/timeline/{OLD}", b"")
    it = make_publisher(shelf, 2, backdating_ms=3_600_000)

    assert it.request(Action.CLEAN, it.reload_timeline(), b"plan") == "20260101000000000"
