"""The lock of DynamoDB beside Hudi's own provider and Amazon's lock client, on a real server."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.errors import BusyError, LockServersError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS, make_dynamodb_options
from reconciler.transaction.heartbeat import HeartbeatThread
from reconciler.transaction.locks.declared_lock import find_dynamodb_place
from reconciler.transaction.locks.dynamodb_rows import connect_dynamodb
from tests.oracle.bundles import class_path, java
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_story import LockStory
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.oracle.storage_lock_holder import HudiLockHolder
from tests.selection import examples
from tests.servers.dynamodb import run_dynamodb
from tests.servers.silent import silent_server

pytestmark = [pytest.mark.oracle, pytest.mark.long]

_SOURCE = Path(__file__).parent / "DynamodbLockHolder.java"
LEASE_MS = 6000


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


def begin(folder, endpoint):
    lock = f'{{provider: dynamodb, table: locks, partitionKey: orders, endpoint: "{endpoint}"}}'
    return LockStory.begin(folder, lock, adjust=shorten_lease)


def shorten_lease(lock):
    lock.lease_s = LEASE_MS // 1000


@pytest.fixture
def story(endpoint, tmp_path):
    """The lock of a table that exists: Amazon's client creates none."""
    begun = begin(tmp_path, endpoint)
    with begun.lock_of("first").acquire():
        return begun


def rows_of(story):
    return connect_dynamodb(find_dynamodb_place(story.declared))


@contextmanager
def amazon_client(story):
    """Run Amazon's lock client, which Hudi's providers of all releases use."""
    lock = story.declared
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


def hudi_writer(story, tmp_path):
    options = make_dynamodb_options(story.declared) | {
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


def check_both_wait(hudi, story, log=None):
    ours, heartbeats = story.lock_of("ours"), HeartbeatThread(LEASE_MS / 3000)
    with ours.acquire(), heartbeats.run(), heartbeats.repeat(ours.renew):
        assert not hudi.try_lock(500)  # it waits for a lease too
        ours.confirm()
    assert hudi.try_lock(20_000), log and log.read_text()[-3000:]
    assert story.place().read_holder().owner is None
    with pytest.raises(BusyError, match="calls itself"):
        story.lock_of("ours", wait_s=LEASE_MS / 1000 * 2).acquire().__enter__()
    hudi.unlock()
    with story.lock_of("ours").acquire():
        assert story.place().read_holder().owner.token == "ours"
    assert rows_of(story).read() is None


def test_hudi_and_reconciler_wait_for_each_other(story, tmp_path):
    with hudi_writer(story, tmp_path) as hudi:
        check_both_wait(hudi, story, tmp_path / "hudi.log")


def test_amazons_lock_client_and_reconciler_wait_for_each_other(story):
    with amazon_client(story) as hudi:
        check_both_wait(hudi, story)


def test_a_killed_writer_keeps_the_lock_for_its_lease(story):
    with amazon_client(story) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with story.lock_of("ours", wait_s=1).acquire():
            assert LEASE_MS / 1000 - 1 < time.monotonic() - begun < 2 * LEASE_MS / 1000 + 5


def test_unlock_frees_the_lock_of_a_killed_writer(story):
    with amazon_client(story) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        place = story.place()
        assert place.break_lock(place.read_holder())
        with story.lock_of("ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(story):
    story.check_killed_run(within_s=5, wait_s=0)


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(story):
    with amazon_client(story) as hudi:
        check_one_holder_at_a_time(
            lambda token: story.lock_of(token, wait_s=120), hudi, examples(2, many=20)
        )


def test_commands_take_the_lock_and_say_who_has_it(story, monkeypatch, capsys):
    story.check_commands(monkeypatch, capsys, "dynamodb:locks/orders")
    assert rows_of(story).read() is None
    assert "very-secret" not in (story.spec_file.parent / "plan.json").read_text()


def test_a_service_out_of_reach_is_one_error_and_no_free_lock(tmp_path, capsys):
    problem = "DynamoDB failed: Could not connect"
    begin(tmp_path, "http://127.0.0.1:1").check_unreachable(capsys, problem)


def test_a_row_that_is_no_lock_is_not_shown_as_free(story, capsys):
    rows = rows_of(story)
    item = {"key": {"S": "orders"}, "note": {"S": "something else"}}
    rows._client.put_item(TableName="locks", Item=item)
    try:
        story.check_unreachable(capsys, "is no lock of Hudi")
    finally:
        rows._client.delete_item(TableName="locks", Key={"key": {"S": "orders"}})


def test_a_service_that_never_answers_is_one_error_in_time(tmp_path, capsys):
    with silent_server() as port:
        problem = "check concurrency.lock.region and endpoint"
        begin(tmp_path, f"http://127.0.0.1:{port}").check_unreachable(capsys, problem)


def test_a_table_of_another_shape_says_what_it_needs(story, tmp_path):
    client = rows_of(story)._client
    client.create_table(
        TableName="others",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName="others", WaiterConfig={"Delay": 1})
    other = tmp_path / "other"
    other.mkdir()
    place = f'table: others, partitionKey: k, endpoint: "{story.declared.endpoint}"'
    with pytest.raises(LockServersError, match="partition key `key`"):
        LockStory.begin(other, f"{{provider: dynamodb, {place}}}").lock_of(
            "ours"
        ).acquire().__enter__()


def test_missing_credentials_say_what_to_set(story, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(LockServersError, match="Unable to locate credentials; set AWS_PROFILE"):
        story.lock_of("ours").acquire().__enter__()
