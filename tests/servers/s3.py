"""Start a real S3 server on the loopback address: versitygw, built by Go under ``./ci/test --all``.

``S3_SERVER=<file>`` names a versitygw binary for machines without a network. A usual run takes the
binary if it is there, and moto's server otherwise: building takes two minutes of a core.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.servers.programs import (
    ServerUnavailableError,
    build_with_go,
    find_free_port,
    find_program,
    start_server,
)

VERSION: Final = "v1.8.0"
KEY: Final = "test-key"
SECRET: Final = "test-secret-that-nobody-else-has"
REGION: Final = "us-east-1"
_MODULE: Final = "github.com/versity/versitygw/cmd/versitygw"
_bucket_number = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Bucket:
    """An empty bucket; ``endpoint``: the server's URL, or that of a proxy before it."""

    name: str
    endpoint: str

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    @property
    def options(self) -> dict[str, str]:
        """Return storage options as an environment has them."""
        region = json.dumps({"region_name": REGION})
        return {
            "endpoint_url": self.endpoint,
            "key": KEY,
            "secret": SECRET,
            "client_kwargs": region,
        }

    def client(self) -> Any:
        """Return botocore's own client, which shows and changes what reconciler hides."""
        return make_client(self.endpoint)

    def object_keys(self) -> list[str]:
        """Return the keys of all objects, at most 1 000."""
        listed = self.client().list_objects_v2(Bucket=self.name)
        return [entry["Key"] for entry in listed.get("Contents", [])]


class S3Server:
    """A running server; ``endpoint`` is its URL. It ends with ``stop``.

    ``data``: the folder in which each bucket is a folder of its objects; None for moto's server.
    """

    def __init__(self, folder: Path) -> None:
        """Start the server with its data in a folder; raises ServerUnavailableError."""
        port = find_free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        command = find_server(port, folder)
        self.data = folder / "data" if "posix" in command else None
        self._process = start_server(command, port, folder / "server.log", environment)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def make_bucket(self, endpoint: str | None = None) -> S3Bucket:
        """Create a bucket that no other test has."""
        name = f"lake-{os.getpid()}-{next(_bucket_number)}"
        make_client(self.endpoint).create_bucket(Bucket=name)
        return S3Bucket(name=name, endpoint=endpoint or self.endpoint)


def make_client(endpoint: str) -> Any:
    from botocore.config import Config  # noqa: PLC0415 (comes with the extra s3)
    from botocore.session import get_session  # noqa: PLC0415

    return get_session().create_client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name=REGION,
        config=Config(s3={"addressing_style": "path"}),
    )


def find_server(port: int, folder: Path) -> Sequence[str]:
    """Return the command of a server that keeps its data in a folder."""
    data = folder / "data"
    data.mkdir()
    if importlib.util.find_spec("s3fs") is None:
        raise ServerUnavailableError("no s3fs: pip install 's3fs' (the extra s3)")
    try:
        program = find_versitygw()
    except ServerUnavailableError:
        if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
            raise
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    sidecar = folder / "attributes"
    sidecar.mkdir()
    return [
        *(str(program), "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive"),
        *("--region", REGION, "posix", "--sidecar", str(sidecar), str(data)),
    ]


@functools.cache
def find_versitygw() -> Path:
    """Return the versitygw binary, built by Go into the folder of the Hudi bundles."""
    return find_program(
        "S3_SERVER",
        f"versitygw-{VERSION}",
        "versitygw",
        lambda folder: build_with_go(folder, f"{_MODULE}@{VERSION}", "S3_SERVER"),
    )
