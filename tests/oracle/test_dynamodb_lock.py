"""The lock of DynamoDB beside Hudi's own provider and Amazon's lock client, on a real server."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.errors import BusyError, LockServersError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS, make_dynamodb_options
from reconciler.runtime import SystemClock, current_process
from reconciler.spec.model import Lock
from reconciler.transaction.heartbeat import HeartbeatThread
from reconciler.transaction.locks.declared_lock import find_dynamodb_place
from reconciler.transaction.locks.dynamodb_lock import DynamodbLock, DynamodbLockPlace
from reconciler.transaction.locks.dynamodb_rows import connect_dynamodb
from tests.command import run
from tests.crash.drill import CASES, make_drill
from tests.oracle.bundles import class_path, java
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.oracle.storage_lock_holder import HudiLockHolder
from tests.selection import examples
from tests.servers.dynamodb import run_dynamodb

pytestmark = [pytest.mark.oracle, pytest.mark.long]

_SOURCE = Path(__file__).parent / "DynamodbLockHolder.java"
TABLE_FILES = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
LEASE_MS = 6000
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: orders}}
spec:
  path: {path}
  timezone: UTC
  retention: {{commits: 1}}
  concurrency:
    lock: {{provider: dynamodb, table: locks, partitionKey: orders, endpoint: "{url}"}}
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with run_dynamodb(tmp_path_factory.mktemp("dynamodb")) as (url, _):
        yield url


@pytest.fixture(autouse=True)
def _aws_settings(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def lock(endpoint):
    """The lock of a table that exists: Amazon's client creates none."""
    made = Lock(provider="dynamodb", table="locks", partition_key="orders", endpoint=endpoint)
    with lock_of(made, "first").acquire():
        return made


def rows_of(lock):
    return connect_dynamodb(find_dynamodb_place(lock))


def lock_of(lock, token, wait_s=0.0):
    process = current_process()
    return DynamodbLock(
        rows_of(lock),
        process.make_owner(token),
        process=process,
        clock=SystemClock(),
        wait_s=wait_s,
        lease_s=LEASE_MS // 1000,
    )


@contextmanager
def amazon_client(lock):
    """Run Amazon's lock client, which Hudi's providers of all releases use."""
    jars = class_path("com.amazonaws", "dynamodb-lock-client", "1.2.0")
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", jars, str(_SOURCE), lock.endpoint]
    with subprocess.Popen(
        [*command, lock.table, lock.partition_key, str(LEASE_MS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield HudiLockHolder(process)
        finally:
            process.kill()


def hudi_writer(lock, tmp_path):
    options = make_dynamodb_options(lock) | {
        "hoodie.write.lock.dynamodb.region": "us-east-1",
        "hoodie.write.lock.dynamodb.billing_mode": "PAY_PER_REQUEST",
        "hoodie.write.lock.dynamodb.table_creation_timeout": "60000",
        "hoodie.write.lock.wait_time_ms": str(LEASE_MS),
        "hoodie.aws.access.key": "k",
        "hoodie.aws.secret.key": "very-secret",
    }
    jars = ":".join(
        (
            class_path("org.apache.hudi", "hudi-aws", "0.15.0", alone=True),
            class_path("com.amazonaws", "dynamodb-lock-client", "1.2.0"),
        )
    )
    provider = LOCK_PROVIDERS["dynamodb"]
    return run_lock_provider("0.15.0", provider, options, tmp_path / "hudi.log", jars)


def check_both_wait(hudi, lock, log=None):
    ours, heartbeats = lock_of(lock, "ours"), HeartbeatThread(LEASE_MS / 3000)
    with ours.acquire(), heartbeats.run(), heartbeats.repeat(ours.renew):
        assert not hudi.try_lock(500)  # it waits for a lease too
        ours.confirm()
    assert hudi.try_lock(20_000), log and log.read_text()[-3000:]
    assert DynamodbLockPlace(rows_of(lock)).read_holder().owner is None
    with pytest.raises(BusyError, match="calls itself"):
        lock_of(lock, "ours", wait_s=LEASE_MS / 1000 * 2).acquire().__enter__()
    hudi.unlock()
    with lock_of(lock, "ours").acquire():
        assert DynamodbLockPlace(rows_of(lock)).read_holder().owner.token == "ours"
    assert rows_of(lock).read() is None


def test_hudi_and_reconciler_wait_for_each_other(lock, tmp_path):
    with hudi_writer(lock, tmp_path) as hudi:
        check_both_wait(hudi, lock, tmp_path / "hudi.log")


def test_amazons_lock_client_and_reconciler_wait_for_each_other(lock):
    with amazon_client(lock) as hudi:
        check_both_wait(hudi, lock)


def test_a_killed_writer_keeps_the_lock_for_its_lease(lock):
    with amazon_client(lock) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with lock_of(lock, "ours", wait_s=1).acquire():
            assert LEASE_MS / 1000 - 1 < time.monotonic() - begun < 2 * LEASE_MS / 1000 + 5


def test_unlock_frees_the_lock_of_a_killed_writer(lock):
    with amazon_client(lock) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        place = DynamodbLockPlace(rows_of(lock))
        assert place.break_lock(place.read_holder())
        with lock_of(lock, "ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(lock):
    values = (lock.table, lock.partition_key, "us-east-1", lock.endpoint)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, *values], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    assert f"process {holder.pid}" in DynamodbLockPlace(rows_of(lock)).read_holder().describe(0)
    holder.kill()
    holder.wait()
    holder.stdout.close()

    begun = time.monotonic()
    with lock_of(lock, "ours").acquire():
        assert time.monotonic() - begun < 5


_HOLD = """
import sys, time
from reconciler.runtime import SystemClock, current_process
from reconciler.transaction.locks.dynamodb_lock import DynamodbLock
from reconciler.transaction.locks.dynamodb_rows import DynamodbPlace, connect_dynamodb
process = current_process()
lock = DynamodbLock(connect_dynamodb(DynamodbPlace(*sys.argv[1:])), process.make_owner("killed"),
                    process=process, clock=SystemClock(), wait_s=0)
with lock.acquire():
    print("held", flush=True)
    time.sleep(600)
"""


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(lock):
    with amazon_client(lock) as hudi:
        check_one_holder_at_a_time(
            lambda token: lock_of(lock, token, wait_s=120), hudi, examples(2, many=20)
        )


def test_commands_take_the_lock_and_say_who_has_it(lock, tmp_path, monkeypatch, capsys):
    drill = make_drill(TABLE_FILES, tmp_path / "lake", retention="commits: 1")
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "orders.yaml"
    spec.write_text(SPEC.format(path=drill.table, url=lock.endpoint))
    assert 0 == run("plan", spec, "-o", "plan.json")
    other, heartbeats = lock_of(lock, "other"), HeartbeatThread(LEASE_MS / 3000)
    with other.acquire(), heartbeats.run(), heartbeats.repeat(other.renew):
        assert 6 == run("apply", "plan.json")  # after a minute
        assert "is locked by" in capsys.readouterr().out.replace("\n      ", " ")
        assert 0 == run("status", spec)
        assert "dynamodb:locks/orders is held by" in capsys.readouterr().out
        assert 0 == run("unlock", spec, "--yes")
        assert "the lock was removed" in capsys.readouterr().out
    assert 0 == run("apply", "plan.json")
    assert rows_of(lock).read() is None
    assert "very-secret" not in (tmp_path / "plan.json").read_text()


def test_a_service_out_of_reach_is_one_error():
    gone = Lock(provider="dynamodb", table="t", partition_key="k", endpoint="http://127.0.0.1:1")

    with pytest.raises(LockServersError, match="dynamodb:t/k: DynamoDB failed: Could not connect"):
        lock_of(gone, "ours").acquire().__enter__()
