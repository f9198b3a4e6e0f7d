"""Hudi's lock in DynamoDB: leases, whom it is taken from, and clocks that jump."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from reconciler.errors import BusyError, FormatError, LockServersError
from reconciler.hudi.timeline.dynamodb_lock import LockRow
from reconciler.transaction.locks.dynamodb_lock import DynamodbLock, DynamodbLockPlace
from tests.unit.transaction.fakes import FakeClock, process

HUDI = LockRow(owner="h7 5f3c", version="v1", lease_ms=30_000)


@dataclass
class Rows:
    """The row of one lock."""

    clock: FakeClock
    row: LockRow | None = None
    location: str = "dynamodb:locks/orders"
    versions: list[str] = field(default_factory=list)

    def read(self):
        return self.row

    def write(self, row, replaced):
        if (self.row and self.row.version) != (replaced and replaced.version):
            return False
        self.row = row
        self.versions.append(row.version)
        return True

    def remove(self, row):
        if self.row is None or self.row.version != row.version:
            return self.row is None
        self.row = None
        return True


@pytest.fixture
def rows():
    return Rows(FakeClock())


def lock_of(rows, token="mine", *, me=None, wait_s=0.0, on_pause=lambda: None):
    me = me or process()
    return DynamodbLock(
        rows,
        me.make_owner(token),
        process=me,
        clock=rows.clock,
        wait_s=wait_s,
        on_pause=on_pause,
    )


def test_a_held_lock_names_the_run_and_a_released_one_is_gone(rows):
    with lock_of(rows).acquire():
        holder = DynamodbLockPlace(rows).read_holder()
    assert (holder.owner.who, holder.owner.token) == ("ann", "mine")
    assert rows.row is None


def test_every_write_has_a_version_of_its_own(rows):
    lock = lock_of(rows)
    for _ in range(2):
        with lock.acquire():
            lock.renew()
            lock.confirm()

    assert len(set(rows.versions)) == 6


def test_a_writer_that_renews_keeps_its_lock(rows):
    beats = iter(range(1000))

    def renew():
        rows.row = LockRow(owner=HUDI.owner, version=f"beat {next(beats)}", lease_ms=30_000)

    rows.row = HUDI
    with pytest.raises(BusyError, match="a writer that calls itself h7 5f3c; run again"):
        lock_of(rows, wait_s=90, on_pause=renew).acquire().__enter__()


def test_a_row_that_does_not_change_for_its_lease_is_taken_over(rows):
    rows.row = HUDI
    with lock_of(rows, wait_s=60).acquire():
        assert 30 <= sum(rows.clock.slept) < 40
        assert rows.row.run.token == "mine"


def test_a_lease_longer_than_the_wait_is_waited_for(rows):
    rows.row = HUDI
    with lock_of(rows, wait_s=10).acquire():
        assert 30 <= sum(rows.clock.slept) < 40


def test_a_lease_of_hours_is_not_waited_for(rows):
    rows.row = LockRow(owner="h7", version="v1", lease_ms=3_600_000)
    with pytest.raises(BusyError):
        lock_of(rows, wait_s=10).acquire().__enter__()

    assert sum(rows.clock.slept) <= 10


def test_a_clock_that_is_set_forward_ends_no_lease(rows):
    rows.row = HUDI
    jumps = iter([3600])

    def jump():
        rows.clock.pass_seconds(next(jumps, 0))

    with lock_of(rows, wait_s=7200, on_pause=jump).acquire():
        assert sum(rows.clock.slept) >= 20


def test_a_dead_run_of_this_host_loses_its_lock_at_once(rows):
    dead = process(pid=7).make_owner("dead")
    rows.row = LockRow(owner="here dead", version="v", lease_ms=60_000, run=dead)

    with lock_of(rows, me=process(pid=8)).acquire():
        assert rows.row.run.token == "mine"
    assert rows.clock.slept == []


def test_a_lock_that_was_taken_over_publishes_nothing(rows):
    lock = lock_of(rows)
    with lock.acquire():
        lock.confirm()
        rows.row = HUDI
        with pytest.raises(BusyError, match="nothing was published"):
            lock.confirm()
    assert rows.row == HUDI


def test_a_released_row_is_free(rows):
    rows.row = LockRow(owner="a", version="v", lease_ms=30_000, is_released=True)

    assert DynamodbLockPlace(rows).read_holder() is None
    with lock_of(rows).acquire():
        assert rows.row.run.token == "mine"


def test_unlock_frees_only_the_lock_that_was_shown(rows):
    place = DynamodbLockPlace(rows)
    rows.row = HUDI
    shown = place.read_holder()
    rows.row = LockRow(owner="next", version="v9", lease_ms=30_000)

    assert not place.break_lock(shown)
    assert place.break_lock(place.read_holder())
    assert place.read_holder() is None


def test_a_row_that_is_no_lock_is_one_clear_error():
    with pytest.raises(FormatError, match=r"dynamodb:locks/orders: is no lock of Hudi; .* delete"):
        LockRow.parse({"key": {"S": "orders"}}, "dynamodb:locks/orders")


def test_a_lock_that_cannot_be_given_back_is_said_once_and_stays_ours(rows):
    lock, remove = lock_of(rows), rows.remove
    with lock.acquire():
        rows.remove = _fail

    assert "no answer; it stays until its lease of 60 s is over" in lock.take_release_failure()
    assert lock.take_release_failure() is None
    rows.remove = remove
    with lock.acquire():
        lock.confirm()
    assert rows.row is None


def _fail(_row):
    raise LockServersError("dynamodb:locks/orders", "no answer")
