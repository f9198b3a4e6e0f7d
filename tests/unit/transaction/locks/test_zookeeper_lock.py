"""Hudi's lock in ZooKeeper: its queue, whom it is taken from, and sessions that end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from reconciler.errors import BusyError, LockServersError
from reconciler.hudi.timeline.zookeeper_lock import make_node_prefix, sort_nodes
from reconciler.transaction.locks.zookeeper_lock import ZookeeperLock, ZookeeperLockPlace
from reconciler.transaction.locks.zookeeper_nodes import LockNode
from tests.unit.transaction.fakes import FakeClock, process

LOCATION = "zookeeper://zk:2181/locks/orders"


@dataclass
class Ensemble:
    """ZooKeeper's nodes of one lock: name -> (session, data)."""

    clock: FakeClock
    nodes: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    sessions: int = 0
    waits: list[str] = field(default_factory=list)
    while_waiting: object = None
    _last: int = 0

    def connect(self):
        self.sessions += 1
        return Session(self, self.sessions)

    def add(self, session, identifier, data):
        self._last += 1
        name = f"{make_node_prefix(identifier)}{self._last:010d}"
        self.nodes[name] = (session, data)
        return name

    def end_session(self, session):
        self.nodes = {name: node for name, node in self.nodes.items() if node[0] != session}


@dataclass
class Session:
    ensemble: Ensemble
    number: int

    def enter(self, identifier, data):
        return self.ensemble.add(self.number, identifier, data)

    def list(self):
        return sort_nodes(self.ensemble.nodes)

    def read(self, name):
        node = self.ensemble.nodes.get(name)
        return None if node is None else LockNode(name, node[1])

    def remove(self, name):
        self.ensemble.nodes.pop(name, None)

    def wait_for_removal(self, name, seconds):
        self.ensemble.waits.append(name)
        self.ensemble.clock.pass_seconds(seconds)
        if self.ensemble.while_waiting is not None:
            self.ensemble.while_waiting()

    def close(self):
        self.ensemble.end_session(self.number)


@pytest.fixture
def ensemble():
    return Ensemble(FakeClock())


def lock_of(ensemble, token="mine", *, me=None, wait_s=0.0, on_pause=lambda: None):
    me = me or process()
    return ZookeeperLock(
        LOCATION,
        ensemble.connect,
        me.make_owner(token),
        process=me,
        clock=ensemble.clock,
        wait_s=wait_s,
        on_pause=on_pause,
    )


def test_a_held_lock_names_the_run_and_leaves_no_node(ensemble):
    with lock_of(ensemble).acquire():
        holder = ZookeeperLockPlace(LOCATION, ensemble.connect).read_holder()
    assert (holder.owner.who, holder.owner.token) == ("ann", "mine")
    assert ensemble.nodes == {}


def test_a_run_that_gives_up_leaves_the_queue(ensemble):
    hudi = ensemble.add(99, "hudi", b"10.0.0.7")

    with pytest.raises(BusyError, match=r"calls itself 10\.0\.0\.7"):
        lock_of(ensemble, wait_s=9).acquire().__enter__()
    assert list(ensemble.nodes) == [hudi]


def test_a_run_that_is_stopped_while_it_waits_leaves_the_queue(ensemble):
    def stop():
        raise KeyboardInterrupt

    hudi = ensemble.add(99, "hudi", b"10.0.0.7")

    with pytest.raises(KeyboardInterrupt):
        lock_of(ensemble, wait_s=9, on_pause=stop).acquire().__enter__()
    assert list(ensemble.nodes) == [hudi]


def test_each_in_the_queue_waits_for_the_one_before(ensemble):
    first, second = ensemble.add(98, "b", b"x"), ensemble.add(99, "a", b"y")
    ensemble.while_waiting = lambda: ensemble.nodes.pop(ensemble.waits[-1], None)

    with lock_of(ensemble, wait_s=60).acquire():
        assert ensemble.waits == [second, first]
    assert ensemble.nodes == {}


def test_a_dead_run_of_this_host_loses_its_lock_at_once(ensemble):
    ensemble.add(99, "dead", process(pid=7).make_owner("dead").encode())

    with lock_of(ensemble, me=process(pid=8), wait_s=60).acquire():
        assert len(ensemble.nodes) == 1


def test_a_run_of_another_host_keeps_its_lock(ensemble):
    ensemble.add(99, "far", process("there", pid=7).make_owner("far").encode())

    with pytest.raises(BusyError, match="ann on there, process 7"):
        lock_of(ensemble, me=process(pid=8), wait_s=1).acquire().__enter__()


def test_a_lock_whose_session_ended_publishes_nothing(ensemble):
    lock = lock_of(ensemble)
    with lock.acquire():
        lock.confirm()
        ensemble.end_session(1)
        with pytest.raises(BusyError, match="nothing was published"):
            lock.confirm()


def test_stale_nodes_are_those_of_dead_runs_of_this_host(ensemble):
    ensemble.add(98, "dead", process(pid=7).make_owner("dead").encode())
    hudi = ensemble.add(99, "hudi", b"10.0.0.7")
    lock_of(ensemble, me=process(pid=8)).release_stale()

    assert list(ensemble.nodes) == [hudi]


def test_unlock_frees_only_the_lock_that_was_shown(ensemble):
    place = ZookeeperLockPlace(LOCATION, ensemble.connect)
    ensemble.add(98, "one", b"x")
    shown = place.read_holder()
    ensemble.end_session(98)
    ensemble.add(99, "two", b"y")

    assert not place.break_lock(shown)
    assert place.break_lock(place.read_holder())
    assert place.read_holder() is None


def test_servers_that_end_the_connection_leave_the_release_to_the_session(ensemble):
    lock = lock_of(ensemble)
    with lock.acquire():
        lock._nodes.remove = _fail
    assert ensemble.nodes == {}
    assert "it stays until ZooKeeper ends its session" in lock.take_release_failure()


def test_a_node_that_could_not_be_removed_is_in_nobodys_way_but_others(ensemble):
    lock = lock_of(ensemble, wait_s=60)
    with lock.acquire():
        lock._nodes.remove, lock._nodes.close = _fail, lambda: None
    assert len(ensemble.nodes) == 1

    with lock.acquire():
        lock.confirm()
        assert len(ensemble.nodes) == 1
    assert ensemble.nodes == {}


def _fail(_name):
    raise LockServersError(LOCATION, "ZooKeeper failed: ConnectionLoss")
