"""Fixtures of servers that tests start themselves; loaded by the conftest at the root."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers.proxy import FaultyProxy, running_proxy
from tests.servers.s3 import S3Bucket, S3Server, ServerUnavailableError


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, one for the whole run.

    Where it can't be had the test is skipped with the reason; with CI=true it fails.
    """
    try:
        server = S3Server(tmp_path_factory.mktemp("s3-server"))
    except ServerUnavailableError as problem:
        if os.environ.get("CI") == "true":
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    yield server
    server.stop()


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
