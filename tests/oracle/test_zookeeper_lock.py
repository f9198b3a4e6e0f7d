"""The lock of ZooKeeper beside Hudi's own provider, on a real server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from reconciler.errors import BusyError, LockServersError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS, make_zookeeper_options
from reconciler.runtime import SystemClock, current_process
from reconciler.spec.model import Lock
from reconciler.transaction.locks.declared_lock import find_zookeeper_place
from reconciler.transaction.locks.zookeeper_lock import ZookeeperLock, ZookeeperLockPlace
from reconciler.transaction.locks.zookeeper_nodes import connect_zookeeper
from tests.command import run
from tests.crash.drill import CASES, make_drill
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.selection import examples
from tests.servers.zookeeper import ZookeeperServer

pytestmark = [pytest.mark.oracle, pytest.mark.long]

VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
TABLE_FILES = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
SESSION_S = 8
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency:
    lock: {{provider: zookeeper, servers: "{servers}", basePath: /hudi/locks, key: orders}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ZookeeperServer.run(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def lock(server):
    return Lock(
        provider="zookeeper",
        servers=server.servers,
        base_path="/hudi/locks",
        key="orders",
        session_timeout=SESSION_S,
    )


def lock_of(lock, token, wait_s=0.0):
    process, place = current_process(), find_zookeeper_place(lock)
    return ZookeeperLock(
        place.location,
        lambda: connect_zookeeper(place),
        process.make_owner(token),
        process=process,
        clock=SystemClock(),
        wait_s=wait_s,
    )


def place_of(lock):
    place = find_zookeeper_place(lock)
    return ZookeeperLockPlace(place.location, lambda: connect_zookeeper(place))


def hudi_writer(version, lock, tmp_path):
    options = make_zookeeper_options(lock) | {
        "hoodie.write.lock.wait_time_ms_between_retry": "200",
        "hoodie.write.lock.num_retries": "2",
        # defaults of the writers' own configuration, which fills them in before 1.0
        "hoodie.write.lock.max_wait_time_ms_between_retry": "1000",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "15000",
    }
    provider = LOCK_PROVIDERS["zookeeper"]
    return run_lock_provider(version, provider, options, tmp_path / "hudi.log")


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_reconciler_wait_for_each_other(version, lock, tmp_path):
    with hudi_writer(version, lock, tmp_path) as hudi:
        with lock_of(lock, "ours").acquire():
            assert not hudi.try_lock(500)
        assert hudi.try_lock(5000), (tmp_path / "hudi.log").read_text()[-2000:]
        assert place_of(lock).read_holder().owner is None
        with pytest.raises(BusyError, match="zookeeper://"):
            lock_of(lock, "ours", wait_s=0.5).acquire().__enter__()
        hudi.unlock()
        with lock_of(lock, "ours").acquire() as _:
            assert place_of(lock).read_holder().owner.token == "ours"
    assert place_of(lock).read_holder() is None


def test_a_killed_hudi_writer_keeps_the_lock_until_its_session_ends(lock, tmp_path):
    with hudi_writer("1.2.0", lock, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with lock_of(lock, "ours", wait_s=60).acquire():
            assert 1 < time.monotonic() - begun < 4 * SESSION_S


def test_unlock_frees_the_lock_of_a_hudi_writer(lock, tmp_path):
    with hudi_writer("1.2.0", lock, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        place = place_of(lock)
        assert place.break_lock(place.read_holder())
        with lock_of(lock, "ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(lock):
    values = (lock.servers, lock.base_path, lock.key)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, *values], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(BusyError, match=f"process {holder.pid}"):
        lock_of(lock, "ours").acquire().__enter__()
    holder.kill()
    holder.wait()
    holder.stdout.close()

    begun = time.monotonic()
    with lock_of(lock, "ours", wait_s=60).acquire():
        assert time.monotonic() - begun < SESSION_S


_HOLD = """
import sys, time
from reconciler.runtime import SystemClock, current_process
from reconciler.transaction.locks.zookeeper_lock import ZookeeperLock
from reconciler.transaction.locks.zookeeper_nodes import ZookeeperPlace, connect_zookeeper
process, place = current_process(), ZookeeperPlace(*sys.argv[1:], 30)
lock = ZookeeperLock(place.location, lambda: connect_zookeeper(place), process.make_owner("killed"),
                     process=process, clock=SystemClock(), wait_s=0)
with lock.acquire():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_run_whose_session_ended_publishes_nothing(tmp_path):
    with ZookeeperServer.run(tmp_path) as server:
        short = Lock(
            provider="zookeeper",
            servers=server.servers,
            base_path="/locks",
            key="t",
            session_timeout=2,
        )
        held = lock_of(short, "ours")
        with held.acquire():
            held.confirm()
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            server.process.send_signal(signal.SIGCONT)
            time.sleep(2)
            with pytest.raises((BusyError, LockServersError)):
                held.confirm()
        with lock_of(short, "next", wait_s=20).acquire():
            pass


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(lock, tmp_path):
    with hudi_writer("1.2.0", lock, tmp_path) as hudi:
        check_one_holder_at_a_time(
            lambda token: lock_of(lock, token, wait_s=120), hudi, examples(2, many=20)
        )


def test_commands_take_the_lock_and_say_who_has_it(lock, tmp_path, monkeypatch, capsys):
    drill = make_drill(TABLE_FILES, tmp_path / "lake", retention="commits: 1")
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "orders.yaml"
    spec.write_text(SPEC.format(path=drill.table, servers=lock.servers))
    assert 0 == run("plan", spec, "-o", "plan.json")
    with lock_of(lock, "other").acquire():
        assert 6 == run("apply", "plan.json")  # after a minute
        assert "is locked by" in capsys.readouterr().out.replace("\n      ", " ")
        assert 0 == run("status", spec)
        assert "/hudi/locks/orders is held by" in capsys.readouterr().out
        assert 0 == run("unlock", spec, "--yes")
        assert "the lock was removed" in capsys.readouterr().out
    assert 0 == run("apply", "plan.json")
    assert place_of(lock).read_holder() is None


def test_servers_out_of_reach_are_one_error_and_no_free_lock(tmp_path, capsys):
    drill = make_drill(TABLE_FILES, tmp_path / "lake", retention="commits: 1")
    spec = tmp_path / "orders.yaml"
    spec.write_text(SPEC.format(path=drill.table, servers="127.0.0.1:1"))
    assert 0 == run("status", spec)
    said = " ".join(capsys.readouterr().out.split())
    assert "held by an unknown holder: no server answered within 15 seconds" in said
    assert 1 == run("unlock", spec, "--yes")
    assert "no server answered within 15 seconds" in capsys.readouterr().err
