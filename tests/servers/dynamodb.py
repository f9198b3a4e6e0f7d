"""Start DynamoDB on the loopback address: dynalite, which npm installs under ``./ci/test --all``.

``DYNAMODB_SERVER`` names a dynalite program for machines without a network. It does one request at
a time, so that conditions of writes hold.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers.programs import find_free_port, find_program, install_with_npm, start_server

VERSION: Final = "4.0.0"
_PACKAGE: Final = f"dynalite@{VERSION}"


@contextmanager
def run_dynamodb(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a server until the block ends; yields its URL and its process.

    Raises ServerUnavailableError.
    """
    program = find_program(
        "DYNAMODB_SERVER",
        f"dynalite-{VERSION}",
        "node_modules/.bin/dynalite",
        lambda place: install_with_npm(place, _PACKAGE, "DYNAMODB_SERVER"),
    )
    port = find_free_port()
    command = [str(program), "--port", str(port), "--createTableMs", "100"]
    server = start_server(command, port, folder / "server.log")
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait(10)
