"""The lock of a Hive Metastore beside Hudi's own provider, on a real metastore."""

from __future__ import annotations

import time

import pytest

from reconciler.errors import BusyError, CatalogError
from reconciler.hudi_engine.table_options import LOCK_PROVIDERS, make_metastore_options
from reconciler.transaction.locks.declared_lock import open_metastore_locks
from tests.oracle.catalog_servers import HiveServer
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_story import LockStory
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.selection import examples
from tests.servers.silent import silent_server

pytestmark = [pytest.mark.oracle, pytest.mark.long]

VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
#: seconds after which the metastore ends a lock that nobody renews
EXPIRY_S = 12


@pytest.fixture(scope="module")
def metastore(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metastore")
    with HiveServer.start(folder, txn_timeout=f"{EXPIRY_S}s") as server:
        yield server


@pytest.fixture
def story(metastore, tmp_path):
    lock = f'{{provider: hivemetastore, table: Sales.orders, uri: "{metastore.uri}"}}'
    return LockStory.begin(tmp_path, lock)


def hudi_writer(version, story, tmp_path):
    options = make_metastore_options(story.declared) | {
        "hoodie.write.lock.num_retries": "1",
        "hoodie.write.lock.wait_time_ms_between_retry": "50",
        "hoodie.write.lock.heartbeat_interval_ms": "3000",
    }
    provider = LOCK_PROVIDERS["hivemetastore"]
    return run_lock_provider(version, provider, options, tmp_path / "hudi.log")


def list_locks(story):
    return open_metastore_locks(story.declared).list()


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_reconciler_wait_for_each_other(version, story, tmp_path):
    with hudi_writer(version, story, tmp_path) as hudi:
        with story.lock_of("ours").acquire():
            assert not hudi.try_lock(500)
        assert hudi.try_lock(5000), (tmp_path / "hudi.log").read_text()[-2000:]
        holder = story.place().read_holder()
        assert (holder.owner, " on " in holder.name) == (None, True)
        with pytest.raises(BusyError, match="calls itself"):
            story.lock_of("ours", wait_s=0.5).acquire().__enter__()
        hudi.unlock()
        with story.lock_of("ours").acquire():
            pass
    assert list_locks(story) == []


def test_the_metastore_ends_the_lock_of_a_killed_hudi_writer(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with story.lock_of("ours", wait_s=90).acquire():
            assert EXPIRY_S / 2 < time.monotonic() - begun


def test_unlock_frees_the_lock_of_a_killed_hudi_writer(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        place = story.place()
        assert place.break_lock(place.read_holder())
        with story.lock_of("ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(story):
    story.check_killed_run(within_s=5, wait_s=5)
    assert list_locks(story) == []


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        check_one_holder_at_a_time(
            lambda token: story.lock_of(token, wait_s=120), hudi, examples(2, many=20)
        )


def test_commands_take_the_lock_and_say_who_has_it(story, monkeypatch, capsys):
    story.check_commands(monkeypatch, capsys, "Sales.orders")
    assert list_locks(story) == []


def test_a_metastore_out_of_reach_is_one_error_and_no_free_lock(tmp_path, capsys):
    lock = '{provider: hivemetastore, table: Sales.orders, uri: "thrift://127.0.0.1:1"}'
    LockStory.begin(tmp_path, lock).check_unreachable(capsys, "no metastore can be reached")


def test_a_metastore_that_never_answers_is_one_error_in_time(tmp_path, capsys):
    with silent_server() as port:
        lock = f'{{provider: hivemetastore, table: a.b, uri: "thrift://127.0.0.1:{port}"}}'
        LockStory.begin(tmp_path, lock).check_unreachable(capsys, "read timeout", within_s=45)


def test_a_metastore_without_tables_of_locks_says_what_it_lacks(tmp_path):
    with HiveServer.start(tmp_path) as server:
        lock = f'{{provider: hivemetastore, table: a.b, uri: "{server.uri}"}}'
        with pytest.raises(CatalogError, match="hive-txn-schema"):
            LockStory.begin(tmp_path, lock).lock_of("ours").acquire().__enter__()
