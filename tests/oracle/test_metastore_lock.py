"""The lock of a Hive Metastore beside Hudi's own provider, on a real metastore."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from reconciler.errors import BusyError, CatalogError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS, make_metastore_options
from reconciler.runtime import SystemClock, current_process
from reconciler.spec.model import Lock
from reconciler.transaction.heartbeat import HeartbeatThread
from reconciler.transaction.locks.metastore_lock import MetastoreLock, MetastoreLockPlace
from reconciler.transaction.locks.metastore_requests import MetastoreLocks
from tests.command import run
from tests.crash.drill import CASES, make_drill
from tests.oracle.catalog_servers import HiveServer
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.selection import examples

pytestmark = [pytest.mark.oracle, pytest.mark.long]

VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
TABLE = "Sales.orders"
TABLE_FILES = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
#: seconds after which the metastore ends a lock that nobody renews
EXPIRY_S = 12


@pytest.fixture(scope="module")
def metastore(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metastore")
    with HiveServer.start(folder, txn_timeout=f"{EXPIRY_S}s") as server:
        yield server


@pytest.fixture
def locks(metastore):
    return MetastoreLocks(metastore.uri, TABLE)


def lock_of(locks, token, wait_s=0.0):
    process = current_process()
    return MetastoreLock(
        locks, process.make_owner(token), process=process, clock=SystemClock(), wait_s=wait_s
    )


def hudi_writer(version, metastore, tmp_path):
    lock = Lock(provider="hivemetastore", table=TABLE, uri=metastore.uri)
    options = make_metastore_options(lock) | {
        "hoodie.write.lock.num_retries": "1",
        "hoodie.write.lock.wait_time_ms_between_retry": "50",
        "hoodie.write.lock.heartbeat_interval_ms": "3000",
    }
    provider = LOCK_PROVIDERS["hivemetastore"]
    return run_lock_provider(version, provider, options, tmp_path / "hudi.log")


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_reconciler_wait_for_each_other(version, metastore, locks, tmp_path):
    with hudi_writer(version, metastore, tmp_path) as hudi:
        with lock_of(locks, "ours").acquire():
            assert not hudi.try_lock(500)
        assert hudi.try_lock(5000), (tmp_path / "hudi.log").read_text()[-2000:]
        holder = MetastoreLockPlace(locks).read_holder()
        assert (holder.owner, " on " in holder.name) == (None, True)
        with pytest.raises(BusyError, match="calls itself"):
            lock_of(locks, "ours", wait_s=0.5).acquire().__enter__()
        hudi.unlock()
        with lock_of(locks, "ours").acquire():
            pass
    assert locks.list() == []


def test_the_metastore_ends_the_lock_of_a_killed_hudi_writer(metastore, locks, tmp_path):
    with hudi_writer("1.2.0", metastore, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with lock_of(locks, "ours", wait_s=90).acquire():
            assert EXPIRY_S / 2 < time.monotonic() - begun


def test_unlock_frees_the_lock_of_a_killed_hudi_writer(metastore, locks, tmp_path):
    with hudi_writer("1.2.0", metastore, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        place = MetastoreLockPlace(locks)
        assert place.break_lock(place.read_holder())
        with lock_of(locks, "ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(metastore, locks):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, metastore.uri, TABLE], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(BusyError, match=f"process {holder.pid}"):
        lock_of(locks, "ours").acquire().__enter__()
    holder.kill()
    holder.wait()
    holder.stdout.close()

    with lock_of(locks, "ours", wait_s=5).acquire():
        assert len(locks.list()) == 1


_HOLD = """
import sys, time
from reconciler.runtime import SystemClock, current_process
from reconciler.transaction.locks.metastore_lock import MetastoreLock
from reconciler.transaction.locks.metastore_requests import MetastoreLocks
process = current_process()
lock = MetastoreLock(MetastoreLocks(*sys.argv[1:]), process.make_owner("killed"), process=process,
                     clock=SystemClock(), wait_s=0)
with lock.acquire():
    print("held", flush=True)
    time.sleep(600)
"""


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(metastore, locks, tmp_path):
    with hudi_writer("1.2.0", metastore, tmp_path) as hudi:
        check_one_holder_at_a_time(
            lambda token: lock_of(locks, token, wait_s=120), hudi, examples(2, many=20)
        )


SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency: {{lock: {{provider: hivemetastore, table: Sales.orders, uri: "{uri}"}}}}
"""


def test_commands_take_the_lock_and_say_who_has_it(metastore, locks, tmp_path, monkeypatch, capsys):
    drill = make_drill(TABLE_FILES, tmp_path / "lake", retention="commits: 1")
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "orders.yaml"
    spec.write_text(SPEC.format(path=drill.table, uri=metastore.uri))
    assert 0 == run("plan", spec, "-o", "plan.json")
    other, heartbeats = lock_of(locks, "other"), HeartbeatThread(2)
    with other.acquire(), heartbeats.run(), heartbeats.repeat(other.renew):
        assert 6 == run("apply", "plan.json")  # after a minute
        assert "is locked by" in capsys.readouterr().out.replace("\n      ", " ")
        assert 0 == run("status", spec)
        assert "Sales.orders is held by" in capsys.readouterr().out
        assert 0 == run("unlock", spec, "--yes")
        assert "the lock was removed" in capsys.readouterr().out
    assert 0 == run("apply", "plan.json")
    assert locks.list() == []


def test_a_metastore_out_of_reach_is_one_error():
    locks = MetastoreLocks("thrift://127.0.0.1:1", TABLE)

    with pytest.raises(CatalogError, match=r"thrift://127\.0\.0\.1:1: no metastore can be reached"):
        lock_of(locks, "ours").acquire().__enter__()
