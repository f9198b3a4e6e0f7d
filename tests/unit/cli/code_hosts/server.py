"""A server in this process that says what a test wants, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class Server(HTTPServer):
    """Answers with what the test says, in turn, and remembers what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/SECRET?token=SECRET"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, headers, said = self.server.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PATCH = answer  # noqa: N815 (http.server's names)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def serving() -> Iterator[Server]:
    """A server for the block; proxies of the environment must be off for 127.0.0.1."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
