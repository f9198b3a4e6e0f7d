"""Start fake-gcs-server, a server of Google Cloud Storage, which Go builds.

``GCS_SERVER=<file>`` names a binary for machines without a network.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from itertools import count
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from tests.servers.programs import (
    ServerUnavailableError,
    build_with_go,
    find_free_port,
    find_program,
    start_server,
)

VERSION: Final = "v1.56.1"
_MODULE: Final = "github.com/fsouza/fake-gcs-server"
_bucket_number = count(1)


class GoogleServer:
    """A running server with its objects in memory; ``endpoint`` is its URL."""

    def __init__(self, folder: Path) -> None:
        """Start the server; raises ServerUnavailableError."""
        if importlib.util.find_spec("gcsfs") is None:
            raise ServerUnavailableError("no gcsfs: pip install gcsfs (the extra gcs)")
        port = find_free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        command = [
            *(str(_find_server()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-public-host", f"127.0.0.1:{port}", "-external-url", self.endpoint),
            *("-backend", "memory", "-log-level", "error"),
        ]
        self._process = start_server(command, port, folder / "server.log")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def make_bucket(self) -> str:
        """Create a bucket that no other test has; returns its URL."""
        name = f"lake-{os.getpid()}-{next(_bucket_number)}"
        url = f"{self.endpoint}/storage/v1/b?project=test"
        body = json.dumps({"name": name}).encode()
        with urlopen(Request(url, body, {"Content-Type": "application/json"})):
            return f"gs://{name}"

    @property
    def options(self) -> dict[str, str]:
        """Return storage options as an environment has them."""
        return {"endpoint_url": self.endpoint, "token": "anon"}


@functools.cache
def _find_server() -> Path:
    return find_program(
        "GCS_SERVER",
        f"fake-gcs-server-{VERSION}",
        "fake-gcs-server",
        lambda folder: build_with_go(folder, f"{_MODULE}@{VERSION}", "GCS_SERVER"),
    )
