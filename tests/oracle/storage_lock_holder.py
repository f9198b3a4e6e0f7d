"""Hudi's own storage-based lock provider in a process, on an object of a real store."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reconciler.errors import ChangedError, NotFoundError
from reconciler.hudi.timeline.storage_lock import STORAGE_LOCK_FILE
from reconciler.storage.api import Storage
from tests.oracle.bundles import java
from tests.oracle.java_classes import compile_classes

#: the variable by which the client of Hudi finds the server of the lock's object
LOCK_URL: Final = "TEST_LOCK_URL"


class HudiLockHolder:
    """A process that takes and releases the lock as a writer of Hudi does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._read() == "ready"

    def try_lock(self, ms: int) -> bool:
        """Wait so long for the lock; return whether it is held now."""
        return self._ask(f"lock {ms}") == "held"

    def unlock(self) -> None:
        assert self._ask("unlock") == "free"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def hudi_lock_holder(version: str, storage: Storage, validity_s: int) -> Iterator[HudiLockHolder]:
    """Run the provider of a version of Hudi for the lock of the table in ``storage``."""
    with TemporaryDirectory() as folder, serve_lock_file(storage) as url:
        classes = compile_classes(version, Path(folder), "StorageLockHolder", "S3StorageLockClient")
        command = [java(), "-XX:TieredStopAtLevel=1", "-cp", classes, "StorageLockHolder"]
        with subprocess.Popen(
            [*command, str(validity_s)],
            env=os.environ | {LOCK_URL: url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield HudiLockHolder(process)
            finally:
                process.kill()


@contextmanager
def serve_lock_file(storage: Storage) -> Iterator[str]:
    """Serve the lock file by HTTP, with its version as ETag."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.storage = storage  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self) -> None:
        try:
            found = self.server.storage.read_version(STORAGE_LOCK_FILE)
        except NotFoundError:
            self._answer(404)
            return
        self._answer(200, found.data, found.version)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            version = self.server.storage.replace_version(
                STORAGE_LOCK_FILE, data, self.headers["If-Match"]
            )
        except ChangedError:
            self._answer(412)
            return
        self._answer(200, b"", version)

    def _answer(self, status: int, body: bytes = b"", version: str | None = None) -> None:
        self.send_response(status)
        if version is not None:
            self.send_header("ETag", version)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Print nothing."""
