"""Start a real S3 server on the loopback address: versitygw, built by Go under ``./ci/test --all``.

``S3_SERVER=<file>`` names a versitygw binary for machines without a network. A usual run takes the
binary if it is there, and moto's server otherwise: building takes two minutes of a core.
"""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.selection import EVERY_CASE

VERSION: Final = "v1.8.0"
KEY: Final = "test-key"
SECRET: Final = "test-secret-that-nobody-else-has"
REGION: Final = "us-east-1"
_MODULE: Final = "github.com/versity/versitygw/cmd/versitygw"
_CACHE: Final = Path(__file__).parents[2] / ".oracle"
_START_S: Final = 60
_bucket_number = count(1)


class ServerUnavailableError(Exception):
    """The server could not be found, built or started; says why."""


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
    """A running server; ``endpoint`` is its URL. It ends with ``stop``."""

    def __init__(self, folder: Path) -> None:
        """Start the server with its data in a folder; raises ServerUnavailableError."""
        port = find_free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        with (folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                find_server(port, folder),
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=os.environ | {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
            )
        _wait_until_open(port, self._process, folder / "server.log")

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
    if named := os.environ.get("S3_SERVER"):
        if not os.access(named, os.X_OK):
            raise ServerUnavailableError(f"S3_SERVER is set, but {named} is no program")
        return Path(named)
    folder = _CACHE.resolve() / f"versitygw-{VERSION}"
    program = folder / "versitygw"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "building").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # tests run in two processes
        if not program.is_file():
            if not EVERY_CASE:
                raise ServerUnavailableError("versitygw is built under ./ci/test --all")
            _build(folder)
    return program


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise ServerUnavailableError("no Go to build versitygw: install Go, or set S3_SERVER")
    done = subprocess.run(
        [go, "install", f"{_MODULE}@{VERSION}"],
        env=os.environ | {"GOBIN": str(folder)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    if done.returncode:
        raise ServerUnavailableError(f"Go could not build {_MODULE}: {done.stderr[-1500:]}")


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.kill()
    raise ServerUnavailableError(f"the S3 server did not start: {log.read_text()[-1500:]}")
