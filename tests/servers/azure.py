"""Start Azurite, Microsoft's own emulator of Azure Storage, which npm installs.

``AZURE_SERVER=<file>`` names an ``azurite-blob`` for machines without a network.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from itertools import count
from pathlib import Path
from typing import Final

from tests.servers.programs import (
    ServerUnavailableError,
    find_free_port,
    find_program,
    install_with_npm,
    start_server,
)

VERSION: Final = "3.35.0"
_ACCOUNT: Final = "devstoreaccount1"
#: the key of every emulator, from its manual
_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_container_number = count(1)


class AzureServer:
    """A running server; ``endpoint`` is the URL of its one account, below its ``address``."""

    def __init__(self, folder: Path) -> None:
        """Start the server with its data in a folder; raises ServerUnavailableError."""
        if importlib.util.find_spec("adlfs") is None:
            raise ServerUnavailableError("no adlfs: pip install adlfs (the extra azure)")
        port = find_free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.endpoint = f"{self.address}/{_ACCOUNT}"
        command = [
            *(str(_find_server()), "--skipApiVersionCheck", "--disableTelemetry", "--silent"),
            *("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)),
        ]
        self._process = start_server(command, port, folder / "server.log")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def make_container(self) -> str:
        """Create a container that no other test has; returns its URL."""
        from azure.storage.blob import BlobServiceClient  # noqa: PLC0415 (comes with adlfs)

        name = f"lake-{os.getpid()}-{next(_container_number)}"
        with BlobServiceClient.from_connection_string(self._connection) as client:
            client.create_container(name)
        return f"abfs://{name}"

    @property
    def options(self) -> dict[str, str]:
        """Return storage options as an environment has them."""
        return {"connection_string": self._connection}

    @property
    def _connection(self) -> str:
        account = f"AccountName={_ACCOUNT};AccountKey={_KEY}"
        return f"DefaultEndpointsProtocol=http;{account};BlobEndpoint={self.endpoint};"


@functools.cache
def _find_server() -> Path:
    return find_program(
        "AZURE_SERVER",
        f"azurite-{VERSION}",
        "node_modules/.bin/azurite-blob",
        lambda folder: install_with_npm(folder, f"azurite@{VERSION}", "AZURE_SERVER"),
    )
