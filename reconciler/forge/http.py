"""HTTP for the few messages that leave this program: JSON to a code forge or a webhook.

Whole URLs and header values may be secrets, so no message of this module has more of them than
scheme and host. Redirects are not followed: they would carry the secrets elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector, Request

#: what a server says when another try may go better
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
#: what says that it did nothing with the request
_TURNED_AWAY: Final = frozenset({403, 429})
_REDIRECTS: Final = range(300, 400)
_MOST_BYTES: Final = 64 * 1024**2
_URL: Final = re.compile(r"[!-~]+")
_HEADER: Final = re.compile(r"[ -~]*")


class HttpError(ReconcilerError):
    """A request that came to nothing.

    ``status`` is None where nothing was answered; ``body`` is what the server said of it, to be
    shown only where it can't repeat a secret.
    """

    def __init__(self, message: str, *, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(message)
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered; the names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for an answer, seconds, how often to ask, and how to pause between.

    ``longest_pause``: of what a server asks for. ``is_repeatable``: whether a request that may have
    arrived already may be sent again.
    """

    sleep: Callable[[float], None]
    timeout: float = 10
    tries: int = 3
    longest_pause: float = 10
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request; ``body`` is sent as JSON."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def place(url: str) -> str:
    """Where a URL leads without what may be secret in it; HttpError where it can't be asked.

    >>> place("https://hooks.example.com:8443/T0/secret?key=1")
    'https://hooks.example.com:8443'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise HttpError("is not a URL as https://host/path")
    where = f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")
    if not _URL.fullmatch(url):
        raise HttpError("has characters that no URL has, as blanks or line breaks")
    if "@" in parts.netloc:
        raise HttpError(f"{where}: a name or password in a URL is not supported")
    return where


def send(request: Outgoing, patience: Patience) -> Reply:
    """The answer to a request; HttpError where there is none, or one that is no success."""
    where = place(request.url)
    opener, message = _prepared(request, where)
    for left in reversed(range(patience.tries)):
        try:
            return _once(opener, message, where, patience.timeout)
        except _TryAgainError as error:
            if not left or not (patience.is_repeatable or error.never_arrived):
                raise error.cause from None
            asked = min(error.pause_s, patience.longest_pause)
            patience.sleep(asked or 2.0 ** (patience.tries - 1 - left))
    raise AssertionError("one try at least")


class _TryAgainError(Exception):
    def __init__(self, cause: HttpError, *, never_arrived: bool, pause_s: int = 0) -> None:
        super().__init__(cause)
        self.cause, self.never_arrived, self.pause_s = cause, never_arrived, pause_s


def _prepared(request: Outgoing, where: str) -> tuple[OpenerDirector, Request]:
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415 (heavy)

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    headers = {"User-Agent": "hudi-reconciler"} | dict(request.headers)
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            raise HttpError(f"{where}: header {name} has a line break or no ASCII in its value")
    message = Request(  # noqa: S310 (place() lets only http and https through)
        request.url, data=request.body, headers=headers, method=request.method
    )
    return build_opener(Stay), message


def _once(opener: OpenerDirector, message: Request, where: str, timeout: float) -> Reply:
    from http.client import HTTPException  # noqa: PLC0415 (heavy)
    from urllib.error import HTTPError  # noqa: PLC0415

    try:
        with opener.open(message, timeout=timeout) as answer:
            names = {name.lower(): value for name, value in answer.headers.items()}
            return Reply(status=answer.status, headers=names, body=answer.read(_MOST_BYTES))
    except HTTPError as error:
        with error:
            raise _refused(error, _body(error), where) from None
    except OSError as error:
        raise _unanswered(error, where, timeout) from None
    except (HTTPException, ValueError):  # their words may repeat the URL
        raise HttpError(f"{where}: the answer is not HTTP") from None


def _body(error: HTTPError) -> bytes:
    from http.client import HTTPException  # noqa: PLC0415 (heavy)

    try:
        return error.read(_MOST_BYTES)
    except (OSError, HTTPException):
        return b""


def _refused(error: HTTPError, body: bytes, where: str) -> Exception:
    hint = "; a redirect is not followed" if error.code in _REDIRECTS else ""
    cause = HttpError(f"{where}: answered {error.code}{hint}", status=error.code, body=body)
    after = error.headers.get("Retry-After", "")
    if error.code not in _PASSING and not (error.code in _TURNED_AWAY and after):
        return cause  # GitHub says 403 to who asks too often, and how long to wait
    pause = int(after) if after.isdecimal() and after.isascii() else 0
    return _TryAgainError(cause, never_arrived=error.code in _TURNED_AWAY, pause_s=pause)


def _unanswered(error: OSError, where: str, timeout: float) -> Exception:
    reason = getattr(error, "reason", error)  # of a URLError
    if isinstance(reason, TimeoutError):
        cause = HttpError(f"{where}: no answer within {timeout:g} s")
        return _TryAgainError(cause, never_arrived=False)
    said = getattr(reason, "verify_message", None)  # of a certificate
    if said:
        return HttpError(f"{where}: its certificate is not trusted: {said}")
    if isinstance(reason, ConnectionResetError):
        cause = HttpError(f"{where}: closed the connection without an answer")
        return _TryAgainError(cause, never_arrived=False)
    why = (isinstance(reason, OSError) and reason.strerror) or type(reason).__name__
    cause = HttpError(f"{where}: cannot be reached: {why}")
    return _TryAgainError(cause, never_arrived=isinstance(reason, ConnectionRefusedError))
