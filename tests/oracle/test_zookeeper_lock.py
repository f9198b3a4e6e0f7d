"""The lock of ZooKeeper beside Hudi's own provider, on a real server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from reconciler.errors import BusyError, LockServersError
from reconciler.hudi.timeline.implicit_lock import derive_partition_key
from reconciler.hudi_engine.table_options import (
    IMPLICIT_LOCK_PROVIDERS,
    LOCK_PROVIDERS,
    make_zookeeper_options,
)
from tests.oracle.bundles import java
from tests.oracle.java_classes import compile_classes
from tests.oracle.lock_holder import run_lock_provider
from tests.oracle.lock_story import LockStory
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.selection import examples
from tests.servers.silent import silent_server
from tests.servers.zookeeper import ZookeeperServer

pytestmark = [pytest.mark.oracle, pytest.mark.long]

VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
SESSION_S = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ZookeeperServer.run(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def story(server, tmp_path):
    place = f"basePath: /hudi/locks, key: orders, sessionTimeout: {SESSION_S}s"
    lock = f'{{provider: zookeeper, servers: "{server.servers}", {place}}}'
    return LockStory.begin(tmp_path, lock)


def hudi_writer(version, story, tmp_path):
    options = make_zookeeper_options(story.declared) | {
        "hoodie.write.lock.wait_time_ms_between_retry": "200",
        "hoodie.write.lock.num_retries": "2",
        # defaults of the writers' own configuration, which fills them in before 1.0
        "hoodie.write.lock.max_wait_time_ms_between_retry": "1000",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "15000",
    }
    provider = LOCK_PROVIDERS["zookeeper"]
    return run_lock_provider(version, provider, options, tmp_path / "hudi.log")


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_and_reconciler_wait_for_each_other(version, story, tmp_path):
    with hudi_writer(version, story, tmp_path) as hudi:
        with story.lock_of("ours").acquire():
            assert not hudi.try_lock(500)
        assert hudi.try_lock(5000), (tmp_path / "hudi.log").read_text()[-2000:]
        assert story.place().read_holder().owner is None
        with pytest.raises(BusyError, match="zookeeper://"):
            story.lock_of("ours", wait_s=0.5).acquire().__enter__()
        hudi.unlock()
        with story.lock_of("ours").acquire() as _:
            assert story.place().read_holder().owner.token == "ours"
    assert story.place().read_holder() is None


@pytest.mark.parametrize("version", ["1.1.1", "1.2.0"])
def test_an_implicit_lock_is_that_of_hudis_implicit_provider(version, server, tmp_path):
    lock = f'{{provider: zookeeper, servers: "{server.servers}", implicit: true}}'
    story = LockStory.begin(tmp_path, lock)
    options = make_zookeeper_options(story.declared) | {"hoodie.base.path": story.spec.path}
    for derived in ("base_path", "lock_key"):
        del options[f"hoodie.write.lock.zookeeper.{derived}"]
    provider = IMPLICIT_LOCK_PROVIDERS["zookeeper"]
    with run_lock_provider(version, provider, options, tmp_path / "hudi.log") as hudi:
        with story.lock_of("ours").acquire():
            assert not hudi.try_lock(500)
        assert hudi.try_lock(5000), (tmp_path / "hudi.log").read_text()[-2000:]
        assert story.place().read_holder().owner is None
        with pytest.raises(BusyError, match=r"/tmp/[0-9A-F]{16}/lock_key"):
            story.lock_of("ours", wait_s=0.5).acquire().__enter__()


@pytest.mark.parametrize("version", ["1.1.1", "1.2.0"])
def test_the_place_of_an_implicit_lock_is_hudis_for_every_location(version, tmp_path):
    paths = ["s3://lake/orders", "s3a://lake/orders", "S3A://lake/t", "/lake/t", "/lake/t/", "/ä/ö"]
    classes = compile_classes(version, tmp_path, "ImplicitKey")
    done = subprocess.run(
        [java(), "-cp", classes, "-Dfile.encoding=UTF-8", "ImplicitKey", *paths],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )

    assert [derive_partition_key(path) for path in paths] == done.stdout.split()
    assert len(set(done.stdout.split())) == len(paths) - 1


def test_a_killed_hudi_writer_keeps_the_lock_until_its_session_ends(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        hudi.kill()
        begun = time.monotonic()
        with story.lock_of("ours", wait_s=60).acquire():
            assert 1 < time.monotonic() - begun < 4 * SESSION_S


def test_unlock_frees_the_lock_of_a_hudi_writer(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        assert hudi.try_lock(5000)
        place = story.place()
        assert place.break_lock(place.read_holder())
        with story.lock_of("ours").acquire():
            pass


def test_a_killed_run_of_this_host_loses_its_lock_at_once(story):
    story.check_killed_run(within_s=SESSION_S, wait_s=60)


def test_a_run_whose_session_ended_publishes_nothing(tmp_path):
    with ZookeeperServer.run(tmp_path) as server:
        place = "basePath: /locks, key: t, sessionTimeout: 2s"
        lock = f'{{provider: zookeeper, servers: "{server.servers}", {place}}}'
        story = LockStory.begin(tmp_path, lock)
        held = story.lock_of("ours")
        with held.acquire():
            held.confirm()
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            server.process.send_signal(signal.SIGCONT)
            time.sleep(2)
            with pytest.raises((BusyError, LockServersError)):
                held.confirm()
        with story.lock_of("next", wait_s=20).acquire():
            pass


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(story, tmp_path):
    with hudi_writer("1.2.0", story, tmp_path) as hudi:
        check_one_holder_at_a_time(
            lambda token: story.lock_of(token, wait_s=120), hudi, examples(2, many=20)
        )


def test_commands_take_the_lock_and_say_who_has_it(story, monkeypatch, capsys):
    story.check_commands(monkeypatch, capsys, "/hudi/locks/orders")


def test_servers_out_of_reach_are_one_error_and_no_free_lock(tmp_path, capsys):
    lock = '{provider: zookeeper, servers: "127.0.0.1:1", basePath: /locks, key: t}'
    story = LockStory.begin(tmp_path, lock)
    story.check_unreachable(capsys, "no server answered within 15 seconds")


def test_a_server_that_never_answers_is_one_error_in_time(tmp_path, capsys):
    with silent_server() as port:
        lock = f'{{provider: zookeeper, servers: "127.0.0.1:{port}", basePath: /locks, key: t}}'
        story = LockStory.begin(tmp_path, lock)
        story.check_unreachable(capsys, "no server answered within 15 seconds", within_s=25)


def test_a_node_that_is_forbidden_or_anothers_says_what_to_do(server, tmp_path):
    with connected(server.servers) as client:
        client.create("/closed", acl=[make_digest_acl("eve", "secret", all=True)])
        client.create("/mine", ephemeral=True)
        for base, remedy in (("/closed", "access list"), ("/mine", "another program's node")):
            lock = f'{{provider: zookeeper, servers: "{server.servers}", basePath: {base}, key: t}}'
            folder = tmp_path / base[1:]
            folder.mkdir()
            with pytest.raises(LockServersError, match=remedy):
                LockStory.begin(folder, lock).lock_of("ours").acquire().__enter__()


@contextmanager
def connected(servers):
    client = KazooClient(hosts=servers)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()
