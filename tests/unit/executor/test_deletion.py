"""Deleting: whole shares in few calls, and never a path that leads out of a partition."""

from __future__ import annotations

import pytest

from reconciler.errors import PlanError
from reconciler.executor.deletion import (
    DeletionBatch,
    DeletionOutcome,
    LocalDeleter,
    delete_share,
    split_shares,
)
from reconciler.storage.api import DeletionResult
from reconciler.transaction.paths import LARGEST_CALL, resolve_folder, resolve_path
from tests.unit.transaction.fakes import FakeClock, Shelf


class Stubborn(Shelf):
    """Refuses to delete what has ``locked`` in its name, and counts calls."""

    calls = 0

    def delete_many(self, paths):
        type(self).calls += 1
        return [
            DeletionResult(path, existed=False, error="refused")
            if "locked" in path
            else DeletionResult(path, existed=self.delete(path))
            for path in paths
        ]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "/etc/passwd"])
def test_a_name_that_is_not_a_file_name_is_refused(name):
    with pytest.raises(PlanError, match="nothing is deleted"):
        resolve_path("p=1", name)


@pytest.mark.parametrize(
    "partition", ["..", "a/..", "/a", "a//b", "a/", ".", ".hoodie", ".hoodie/metadata", "a\\b"]
)
def test_a_partition_that_is_not_below_the_table_is_refused(partition):
    with pytest.raises(PlanError, match="nothing is deleted"):
        resolve_path(partition, "f")
    with pytest.raises(PlanError):
        resolve_folder(partition)


def test_gone_files_are_successes_and_failures_say_why():
    shelf = Stubborn(FakeClock())
    shelf.create("p/there", b"x")
    told = []
    outcomes = LocalDeleter(lambda _ref: shelf).delete_files(
        shelf.ref,
        [DeletionBatch("p", ("there", "gone", "locked"))],
        progress=told.append,
    )

    assert outcomes == [DeletionOutcome("p", 1, ("gone",), (("locked", "refused"),))]
    assert told == [3]
    assert shelf.files == {}


def test_batches_fill_calls_and_are_cut_where_one_is_full():
    shelf = Stubborn(FakeClock())
    Stubborn.calls = 0
    names = tuple(map(str, range(LARGEST_CALL + 1)))
    outcomes = list(
        delete_share(
            shelf,
            [DeletionBatch("a", ("1",)), DeletionBatch("b", ("1",)), DeletionBatch("c", names)],
        )
    )

    assert Stubborn.calls == 2
    assert sum(len(outcome.gone) for outcome in outcomes) == LARGEST_CALL + 3


def test_shares_are_as_many_as_slots_and_hold_everything_once():
    batches = [DeletionBatch(f"p{i}", tuple(f"{i}-{j}" for j in range(i))) for i in range(1, 30)]
    found = split_shares(batches, 8)

    sizes = [sum(len(batch.names) for batch in share) for share in found]
    assert (len(found), max(sizes) - min(sizes) < max(sizes)) == (8, True)
    flat = [(batch.partition, name) for share in found for batch in share for name in batch.names]
    assert flat == [(batch.partition, name) for batch in batches for name in batch.names]


def test_nothing_to_do_makes_no_shares():
    assert split_shares([], 8) == []


def test_several_requests_at_a_time_delete_the_same():
    shelf = Stubborn(FakeClock())
    names = tuple(f"f{number:03}" for number in range(300))
    for name in names:
        shelf.create(f"p/{name}", b"x")
    told = []
    deleter = LocalDeleter(lambda _ref: shelf, at_once=4)
    batches = [DeletionBatch("p", (*names, "gone", "locked"))]
    outcomes = deleter.delete_files(shelf.ref, batches, progress=told.append)

    assert 300 == sum(outcome.deleted for outcome in outcomes)
    assert ["gone"] == [name for outcome in outcomes for name in outcome.gone]
    assert [("locked", "refused")] == [pair for outcome in outcomes for pair in outcome.failed]
    assert (302, True) == (sum(told), len(told) > 1)


@pytest.mark.parametrize("at_once", [1, 4])
def test_deleting_stops_between_two_requests(at_once):
    shelf = Stubborn(FakeClock())
    names = tuple(f"f{number:04}" for number in range(3000))
    for name in names:
        shelf.create(f"p/{name}", b"x")

    def stop():
        if len(shelf.list("p")) < 3000:
            raise KeyboardInterrupt

    deleter = LocalDeleter(lambda _ref: shelf, at_once, stop)
    with pytest.raises(KeyboardInterrupt):
        deleter.delete_files(shelf.ref, [DeletionBatch("p", names)], progress=lambda _: None)
    assert 0 < len(shelf.list("p")) < 3000
