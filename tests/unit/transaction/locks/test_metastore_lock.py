"""Hudi's lock in a Hive Metastore: who has it, whom it is taken from, and answers that get lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from reconciler.errors import BusyError, CatalogError
from reconciler.hudi.timeline.metastore_lock import MetastoreLock as FoundLock
from reconciler.hudi.timeline.metastore_lock import make_agent, parse_agent
from reconciler.transaction.locks.metastore_lock import MetastoreLock, MetastoreLockPlace
from tests.unit.transaction.fakes import FakeClock, process


@dataclass
class Queue:
    """The metastore's queue of one name; ``loses_answer``: of the next request."""

    clock: FakeClock
    locks: list[FoundLock] = field(default_factory=list)
    loses_answer: bool = False
    location: str = "thrift://host:9083/sales.orders"
    _last: int = 0

    def request(self, owner):
        self._last += 1
        lock = FoundLock(
            lock_id=self._last,
            is_held=not self.locks,
            user=owner.who,
            host=owner.host,
            agent=make_agent(owner),
            beat_ms=self.clock.now_ms(),
        )
        self.locks.append(lock)
        if self.loses_answer:
            self.loses_answer = False
            raise CatalogError(self.location, "timed out")
        return lock.lock_id, lock.is_held

    def list(self):
        return list(self.locks)

    def renew(self, lock_id):
        return any(lock.lock_id == lock_id for lock in self.locks)

    def release(self, lock_id):
        self.locks = [lock for lock in self.locks if lock.lock_id != lock_id]
        self.locks = [replace(lock, is_held=place == 0) for place, lock in enumerate(self.locks)]

    def lock_as_hudi(self):
        self._last += 1
        beat = self.clock.now_ms()
        hudi = FoundLock(
            lock_id=self._last, is_held=True, user="eve", host="h7", agent="Unknown", beat_ms=beat
        )
        self.locks.append(hudi)


@pytest.fixture
def queue():
    return Queue(FakeClock())


def lock_of(queue, token="mine", *, me=None, wait_s=0.0, on_pause=lambda: None):
    me = me or process()
    return MetastoreLock(
        queue,
        me.make_owner(token),
        process=me,
        clock=queue.clock,
        wait_s=wait_s,
        on_pause=on_pause,
    )


def test_a_held_lock_names_the_run_and_a_released_one_is_gone(queue):
    with lock_of(queue).acquire():
        holder = MetastoreLockPlace(queue).read_holder()
    assert (holder.owner.who, holder.owner.token) == ("ann", "mine")
    assert queue.locks == []


def test_a_lock_of_hudi_is_waited_for_without_a_request_in_the_queue(queue):
    queue.lock_as_hudi()

    with pytest.raises(BusyError, match=r"sales\.orders: .* calls itself eve on h7"):
        lock_of(queue, wait_s=9).acquire().__enter__()
    assert [lock.user for lock in queue.locks] == ["eve"]


def test_it_is_taken_when_the_holder_releases_it(queue):
    queue.lock_as_hudi()

    with lock_of(queue, wait_s=60, on_pause=lambda: queue.release(1)).acquire():
        assert queue.locks[0].run.token == "mine"


def test_a_dead_run_of_this_host_loses_its_lock_at_once(queue):
    queue.request(process(pid=7).make_owner("dead"))

    with lock_of(queue, me=process(pid=8), wait_s=60).acquire():
        assert [lock.run.token for lock in queue.locks] == ["mine"]


def test_a_lock_that_the_metastore_ended_publishes_nothing(queue):
    lock = lock_of(queue)
    with lock.acquire():
        lock.confirm()
        queue.release(1)
        with pytest.raises(BusyError, match="nothing was published"):
            lock.confirm()


def test_a_lost_answer_to_the_request_leaves_the_lock_held_and_later_free(queue):
    queue.loses_answer = True

    with lock_of(queue).acquire():
        assert len(queue.locks) == 1
    assert queue.locks == []


def test_a_lost_answer_to_a_request_that_waits_leaves_no_request(queue):
    queue.lock_as_hudi()
    queue.loses_answer = True

    with pytest.raises(BusyError):
        lock_of(queue).acquire().__enter__()
    assert [lock.user for lock in queue.locks] == ["eve"]


def test_unlock_frees_only_the_lock_that_was_shown(queue):
    queue.lock_as_hudi()
    place = MetastoreLockPlace(queue)
    shown = place.read_holder()
    queue.release(1)
    queue.lock_as_hudi()

    assert not place.break_lock(shown)
    assert place.break_lock(place.read_holder())
    assert queue.locks == []


def test_the_longest_names_fit_into_the_column_of_the_metastore():
    owner = process().make_owner("t" * 200)

    assert len(make_agent(owner)) == 128
    assert parse_agent(make_agent(owner), who="ann", host="a").pid == owner.pid


def test_a_lock_that_cannot_be_given_back_is_said_once_and_stays_ours(queue):
    lock, release = lock_of(queue), queue.release
    with lock.acquire():
        queue.release = _fail

    said = lock.take_release_failure()
    assert "timed out; it stays until the metastore ends it" in said
    assert lock.take_release_failure() is None
    queue.release = release
    with lock.acquire():
        lock.confirm()
        assert [held.lock_id for held in queue.locks] == [1]
    assert lock.take_release_failure() is None
    assert queue.locks == []


def _fail(_lock_id):
    raise CatalogError("thrift://host:9083", "timed out")
