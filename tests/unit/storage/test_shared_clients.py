"""Clients of stores that tables share."""

from __future__ import annotations

import os

import pytest

from reconciler.errors import PermissionDeniedError
from reconciler.runtime import open_storage
from reconciler.storage.api import StorageRef
from reconciler.storage.clients import connect
from reconciler.storage.shared_clients import SharedClients


def test_a_client_is_started_once_for_each_key():
    clients, started = SharedClients(), iter(range(9))

    assert [0, 1, 0, 1] == [clients.get(key, lambda: next(started)) for key in "abab"]


def test_a_client_that_was_not_asked_for_the_longest_is_started_again():
    clients, started = SharedClients(), iter(range(9))

    got = [clients.get(key, lambda: next(started)) for key in "abcdaeab"]

    assert [0, 1, 2, 3, 0, 4, 0, 5] == got


def test_a_client_is_given_a_limited_number_of_times():
    clients, started = SharedClients(), iter(range(9))
    got = [clients.get("a", lambda: next(started)) for _ in range(130)]

    assert [0] * 64 + [1] * 64 + [2] * 2 == got


def test_a_client_that_does_not_start_is_started_by_the_next_who_asks():
    def fail() -> None:
        raise OSError("no")

    clients = SharedClients()
    with pytest.raises(OSError, match="no"):
        clients.get("a", fail)

    assert 1 == clients.get("a", lambda: 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_forks_starts_its_own():
    clients = SharedClients()
    clients.get("a", lambda: 1)
    child = os.fork()
    if not child:
        os._exit(clients.get("a", lambda: 2))
    _, status = os.waitpid(child, 0)

    assert 2 == os.waitstatus_to_exitcode(status)


@pytest.fixture
def open_table():
    pytest.importorskip("s3fs")

    def open_at(location: str, **options: str) -> object:
        opened = connect(StorageRef(location, tuple(sorted(options.items()))))
        return opened._fs._client

    return open_at


def test_tables_of_one_store_share_its_client(open_table):
    options = {"endpoint_url": "http://127.0.0.1:1", "key": "a", "secret": "b"}

    assert open_table("s3://lake/t", **options) is open_table("s3://other/u", **options)


def test_tables_that_are_reached_in_another_way_do_not_share_a_client(open_table):
    first = open_table("s3://lake/t", key="a", secret="b")

    assert first is not open_table("s3://lake/t", key="a", secret="c")


def test_a_dropped_client_is_started_again():
    clients = SharedClients()
    first, second = object(), object()
    clients.get("a", lambda: first)
    clients.drop(first)
    clients.drop(object())

    assert clients.get("a", lambda: second) is second


def test_a_client_without_credentials_is_given_to_nobody_more(tmp_path, monkeypatch, open_table):
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    location, options = "s3://lake/t", {"endpoint_url": "http://127.0.0.1:1"}
    storage = connect(StorageRef(location, tuple(options.items())))
    refused = storage._fs._client
    with pytest.raises(PermissionDeniedError, match="credentials"):
        storage.read("file")

    assert open_table(location, **options) is not refused


@pytest.mark.parametrize("change", ["variable", "file"])
def test_a_change_of_the_credentials_of_this_process_starts_a_client(tmp_path, monkeypatch, change):
    pytest.importorskip("s3fs")
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    first, again = (open_storage("s3://lake/t")._fs._client for _ in range(2))
    if change == "variable":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    else:
        file.write_text("[default]\n")

    assert first is again
    assert open_storage("s3://lake/t")._fs._client is not first
