"""HTTP requests with JSON to a code host or a webhook.

URLs and header values may be secrets, so messages of this module only show scheme and host.
Redirects are not followed: they would send the secrets elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector, Request

#: statuses after which another try may succeed
_TRANSIENT_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
#: statuses that say that the request was not executed
_REFUSED_STATUSES: Final = frozenset({403, 429})
_REDIRECTS: Final = range(300, 400)
_MAX_BYTES: Final = 64 * 1024**2
_URL: Final = re.compile(r"[!-~]+")
_HEADER: Final = re.compile(r"[ -~]*")


class HttpError(ReconcilerError):
    """A request failed.

    ``status`` is None without an answer. ``body`` is the server's explanation; show it only where
    it cannot repeat a secret.
    """

    def __init__(self, message: str, *, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(message)
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """The answer of a server; the names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Timeout in seconds, number of tries, and the pause between tries.

    ``longest_pause`` limits the pause that a server asks for. ``is_repeatable``: whether a request
    that may have arrived can be sent again.
    """

    sleep: Callable[[float], None]
    timeout: float = 10
    tries: int = 3
    longest_pause: float = 10
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request; ``body`` is sent as JSON."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def find_origin(url: str) -> str:
    """Return scheme, host and port of a URL, which are no secrets; HttpError if it is invalid.

    >>> find_origin("https://hooks.example.com:8443/T0/secret?key=1")
    'https://hooks.example.com:8443'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise HttpError("not a URL such as https://host/path")
    origin = f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")
    if not _URL.fullmatch(url):
        raise HttpError("the URL has invalid characters, such as blanks or line breaks")
    if "@" in parts.netloc:
        raise HttpError(f"{origin}: user names and passwords in URLs are not supported")
    return origin


def send(request: HttpRequest, retry_policy: RetryPolicy) -> HttpResponse:
    """Send a request and return the answer; HttpError if there is none, or if it is an error."""
    origin = find_origin(request.url)
    opener, message = _build_request(request, origin)
    for left in reversed(range(retry_policy.tries)):
        try:
            return _send_once(opener, message, origin, retry_policy.timeout)
        except _RetryableError as error:
            if not left or not (retry_policy.is_repeatable or error.never_arrived):
                raise error.cause from None
            pause = min(error.pause_s, retry_policy.longest_pause)
            retry_policy.sleep(pause or 2.0 ** (retry_policy.tries - 1 - left))
    raise AssertionError("there is at least one try")


class _RetryableError(Exception):
    def __init__(self, cause: HttpError, *, never_arrived: bool, pause_s: int = 0) -> None:
        super().__init__(cause)
        self.cause, self.never_arrived, self.pause_s = cause, never_arrived, pause_s


def _build_request(request: HttpRequest, origin: str) -> tuple[OpenerDirector, Request]:
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415 (slow to import)

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    headers = {"User-Agent": "hudi-reconciler"} | dict(request.headers)
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            raise HttpError(
                f"{origin}: header {name} has a line break or a character that is not ASCII"
            )
    message = Request(  # noqa: S310 (find_origin allows only http and https)
        request.url, data=request.body, headers=headers, method=request.method
    )
    return build_opener(NoRedirects), message


def _send_once(
    opener: OpenerDirector, message: Request, origin: str, timeout: float
) -> HttpResponse:
    from http.client import HTTPException  # noqa: PLC0415 (slow to import)
    from urllib.error import HTTPError  # noqa: PLC0415

    try:
        with opener.open(message, timeout=timeout) as answer:
            names = {name.lower(): value for name, value in answer.headers.items()}
            return HttpResponse(status=answer.status, headers=names, body=answer.read(_MAX_BYTES))
    except HTTPError as error:
        with error:
            raise _error_from_status(error, _read_body(error), origin) from None
    except OSError as error:
        raise _error_from_failure(error, origin, timeout) from None
    except (HTTPException, ValueError):  # their messages may repeat the URL
        raise HttpError(f"{origin}: the answer is not HTTP") from None


def _read_body(error: HTTPError) -> bytes:
    from http.client import HTTPException  # noqa: PLC0415 (slow to import)

    try:
        return error.read(_MAX_BYTES)
    except (OSError, HTTPException):
        return b""


def _error_from_status(error: HTTPError, body: bytes, origin: str) -> Exception:
    hint = "; redirects are not followed" if error.code in _REDIRECTS else ""
    cause = HttpError(f"{origin}: answered {error.code}{hint}", status=error.code, body=body)
    after = error.headers.get("Retry-After", "")
    if error.code not in _TRANSIENT_STATUSES and not (error.code in _REFUSED_STATUSES and after):
        return cause  # GitHub answers 403 to too many requests, with the time to wait
    pause = int(after) if after.isdecimal() and after.isascii() else 0
    return _RetryableError(cause, never_arrived=error.code in _REFUSED_STATUSES, pause_s=pause)


def _error_from_failure(error: OSError, origin: str, timeout: float) -> Exception:
    reason = getattr(error, "reason", error)  # of a URLError
    if isinstance(reason, TimeoutError):
        cause = HttpError(f"{origin}: no answer within {timeout:g} s")
        return _RetryableError(cause, never_arrived=False)
    rejected = getattr(reason, "verify_message", None)  # of a certificate
    if rejected:
        return HttpError(f"{origin}: its certificate is not trusted: {rejected}")
    if isinstance(reason, ConnectionResetError):
        cause = HttpError(f"{origin}: closed the connection without an answer")
        return _RetryableError(cause, never_arrived=False)
    why = (isinstance(reason, OSError) and reason.strerror) or type(reason).__name__
    cause = HttpError(f"{origin}: cannot be reached: {why}")
    return _RetryableError(cause, never_arrived=isinstance(reason, ConnectionRefusedError))
