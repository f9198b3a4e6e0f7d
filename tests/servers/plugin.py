"""Fixtures of servers that tests start themselves; loaded by the conftest at the root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.servers.azure import AzureServer
from tests.servers.gcs import GoogleServer
from tests.servers.programs import ServerUnavailableError
from tests.servers.proxy import FaultyProxy, running_proxy
from tests.servers.s3 import S3Bucket, S3Server

_Server = TypeVar("_Server", S3Server, GoogleServer, AzureServer)


def _run_server(
    kind: Callable[[Path], _Server], factory: pytest.TempPathFactory
) -> Iterator[_Server]:
    """Run a server for a fixture.

    Where it can't be had the test is skipped with the reason; with CI=true it fails.
    """
    try:
        server = kind(factory.mktemp("server"))
    except ServerUnavailableError as problem:
        if os.environ.get("CI") == "true":
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, one for the whole run."""
    yield from _run_server(S3Server, tmp_path_factory)


@pytest.fixture(scope="session")
def google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    """A server of Google Cloud Storage, one for the whole run."""
    yield from _run_server(GoogleServer, tmp_path_factory)


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """A server of Azure's blobs, one for the whole run."""
    yield from _run_server(AzureServer, tmp_path_factory)


@pytest.fixture
def s3_bucket(s3_server: S3Server) -> S3Bucket:
    """An empty bucket of the server."""
    return s3_server.make_bucket()


@pytest.fixture
def s3_proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    """A proxy before the server that fails, delays and cuts requests."""
    with running_proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxied_bucket(s3_server: S3Server, s3_proxy: FaultyProxy) -> S3Bucket:
    """An empty bucket that is reached through the proxy."""
    return s3_server.make_bucket(s3_proxy.endpoint)
