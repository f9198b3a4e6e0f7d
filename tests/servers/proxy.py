"""A proxy before an HTTP server that fails, delays, cuts and counts chosen requests.

with running_proxy(server.endpoint) as proxy:
    proxy.faults.append(Fault("lose", lambda request: request.method == "PUT"))
    ...
    assert [request.method for request in proxy.requests] == ["PUT", "PUT"]
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, Final, Literal
from urllib.parse import urlsplit

#: what happens to a request: the server never gets it (``drop``, ``hang``, ``status``), gets half
#: of its body (``halve``), or does it and the client gets no answer (``lose``), half of it
#: (``cut``), or all of it late (``delay``)
FaultKind = Literal["drop", "hang", "status", "halve", "lose", "cut", "delay"]

_HOP_HEADERS: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedRequest:
    """A request; ``path`` begins with a slash and includes the query."""

    method: str
    path: str
    headers: dict[str, str]
    size: int


@dataclass(slots=True)
class Fault:
    """What happens to the next ``times`` requests that ``selects`` returns true for.

    ``seconds``: of a delay. ``status`` and ``code``: of an answer that the server did not give.
    """

    kind: FaultKind
    selects: Callable[[ProxiedRequest], bool] = lambda _: True
    times: int = 1
    seconds: float = 0.0
    status: int = 503
    code: str = "SlowDown"


@dataclass(slots=True)
class FaultyProxy:
    """A running proxy; ``requests`` are all that came. The first fault that selects one acts."""

    endpoint: str
    faults: list[Fault] = field(default_factory=list)
    requests: list[ProxiedRequest] = field(default_factory=list)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)

    def take(self, request: ProxiedRequest) -> Fault | None:
        """Record a request and return the fault that it gets."""
        with self._turn:
            self.requests.append(request)
            for fault in self.faults:
                if fault.times > 0 and fault.selects(request):
                    fault.times -= 1
                    return fault
        return None

    def wait(self, seconds: float | None) -> None:
        """Wait, at most until the proxy ends."""
        self._ended.wait(seconds)

    def end(self) -> None:
        self._ended.set()


def make_random_faults(seed: int, rate: float) -> list[Fault]:
    """Return faults of every kind but ``hang`` that together hit a share of all requests.

    The same seed hits the same requests, if they come in the same order.
    """
    random = Random(seed)
    faults = [
        Fault("status", status=503, code="SlowDown"),
        Fault("status", status=429, code="TooManyRequests"),
        Fault("delay", seconds=0.3),
        *(Fault(kind) for kind in ("drop", "halve", "lose", "cut")),
    ]
    for fault in faults:
        fault.times = sys.maxsize
        fault.selects = lambda _: random.random() < rate / len(faults)
    return faults


@contextmanager
def running_proxy(upstream: str) -> Iterator[FaultyProxy]:
    """Run a proxy before the server at a URL ``http://host:port``."""
    target = urlsplit(upstream).netloc
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    proxy = FaultyProxy(f"http://127.0.0.1:{server.server_port}")
    server.proxy, server.target = proxy, target  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.end()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that close their connections."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.removeprefix("do_") in _METHODS:
            return self._pass_on
        raise AttributeError(name)

    def _pass_on(self) -> None:
        proxy: FaultyProxy = self.server.proxy
        body = self._read_body()
        request = ProxiedRequest(
            method=self.command, path=self.path, headers=dict(self.headers), size=len(body)
        )
        fault = proxy.take(request)
        kind = fault.kind if fault else None
        if fault and kind == "status":
            self._answer(fault.status, [], _error_body(fault.code))
            return
        if kind == "hang":
            proxy.wait(None)
        if fault and kind == "delay":
            proxy.wait(fault.seconds)
        if kind == "halve":
            self._send_half(body)
        if kind in ("hang", "drop", "halve"):
            self.close_connection = True
            return
        status, headers, answer = self._ask_server(body)
        if kind == "lose":
            self.close_connection = True
            return
        self._answer(status, headers, answer, is_cut=kind == "cut")

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _ask_server(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        with closing(self._open_request(len(body))) as connection:
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()

    def _send_half(self, body: bytes) -> None:
        with closing(self._open_request(len(body))) as connection:
            connection.endheaders(body[: len(body) // 2])

    def _open_request(self, size: int) -> HTTPConnection:
        connection = HTTPConnection(self.server.target, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in (*_HOP_HEADERS, "expect"):
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(size))
        return connection

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, *, is_cut: bool = False
    ) -> None:
        size = str(len(body))
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                size = value
            elif name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", size)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if is_cut else body)
        if is_cut:
            self.close_connection = True


def _error_body(code: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<Error><Code>{code}</Code><Message>made by the proxy</Message></Error>"
    ).encode()
