"""JSON client of a code host's API. The token is sent to the API's own host only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from reconciler.cli.code_hosts.http import (
    HttpError,
    HttpRequest,
    HttpResponse,
    RetryPolicy,
    find_origin,
    send,
)
from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

#: the parts of a path, each quoted separately
Path = tuple[str | int, ...]

_MAX_PAGES: Final = 200
_MAX_DETAIL_LENGTH: Final = 300
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?', re.ASCII)
_TOKEN: Final = re.compile(r"[!-~]+")


class CodeHostError(ReconcilerError):
    """A code host refused a request or cannot be reached.

    ``is_outcome_unknown``: the request may have been executed nevertheless.
    """

    def __init__(
        self, message: str, *, status: int | None = None, is_outcome_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.is_outcome_unknown = status, is_outcome_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """The API of one code host.

    ``base`` is its URL without a slash at the end. ``suggest_permission`` returns what to do about
    a status, or "". ``token`` never appears in an error, whatever the code host answers.
    """

    name: str
    base: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    retry_policy: RetryPolicy
    suggest_permission: Callable[[int], str]

    def get(self, path: Path, **query: str | int) -> Any:
        """Return the document at a path."""
        return _parse_json(self._send("GET", self._build_url(path, query)), self.name)

    def list_objects(self, path: Path, **query: str | int) -> Iterator[Mapping[str, Any]]:
        """Yield every object of a list, over all its pages."""
        url: str | None = self._build_url(path, {**query, "per_page": 100})
        for _ in range(_MAX_PAGES):
            if url is None:
                return
            reply = self._send("GET", url)
            listed = _parse_json(reply, self.name)
            if not isinstance(listed, list):
                raise self._unexpected_answer("a list")
            yield from (item for item in listed if isinstance(item, dict))
            url = self._next_page(reply)
        raise CodeHostError(f"{self.name}: a list has more than {_MAX_PAGES} pages")

    def send_change(self, method: str, path: Path, **document: Any) -> Mapping[str, Any]:
        """Send a change and return the answer; an answer without a body is an empty object.

        A POST that may have arrived is not repeated. Its error has ``is_outcome_unknown``.
        """
        body = json.dumps(document).encode() if document else None
        reply = self._send(method, self._build_url(path, {}), body)
        return self._parse_object(reply) if reply.body.strip() else {}

    def query(self, url: str, **document: Any) -> Mapping[str, Any]:
        """Return the answer to a POST that changes nothing, at another URL of the code host."""
        self._check_origin(url)
        body = json.dumps(document).encode()
        return self._parse_object(self._send("POST", url, body, is_read_only=True))

    def _parse_object(self, reply: HttpResponse) -> Mapping[str, Any]:
        document = _parse_json(reply, self.name)
        if not isinstance(document, dict):
            raise self._unexpected_answer("an object")
        return document

    def _unexpected_answer(self, expected: str) -> CodeHostError:
        return CodeHostError(
            f"{self.name}: {find_origin(self.base)} did not answer with {expected}"
        )

    def _build_url(self, path: Path, query: Mapping[str, str | int]) -> str:
        parts = "/".join(quote(str(part), safe="") for part in path)
        return f"{self.base}/{parts}" + (f"?{urlencode(query)}" if query else "")

    def _next_page(self, reply: HttpResponse) -> str | None:
        link = _NEXT.search(reply.headers.get("link", ""))
        if link is None:
            return None
        self._check_origin(link[1])
        return link[1]

    def _check_origin(self, url: str) -> None:
        try:
            is_same = find_origin(url) == find_origin(self.base)
        except HttpError:
            is_same = False
        if not is_same:
            raise CodeHostError(
                f"{self.name}: {find_origin(self.base)} points to another host, which must not get "
                "the token; check the URL of the API"
            )

    def _send(
        self, method: str, url: str, body: bytes | None = None, *, is_read_only: bool = False
    ) -> HttpResponse:
        if not _TOKEN.fullmatch(self.token):
            raise CodeHostError(f"{self.name}: the token has invalid characters, such as blanks")
        is_repeatable = method != "POST" or is_read_only
        retry_policy = replace(self.retry_policy, is_repeatable=is_repeatable)
        request = HttpRequest(method=method, url=url, headers=self.headers, body=body)
        try:
            return send(request, retry_policy)
        except HttpError as error:
            raise self._explain_error(error, is_outcome_unknown=not is_repeatable) from None

    def _explain_error(self, error: HttpError, *, is_outcome_unknown: bool) -> CodeHostError:
        status = error.status
        detail = _error_detail(error.body).replace(self.token, "***")
        advice = "" if status is None else self.suggest_permission(status)
        return CodeHostError(
            f"{self.name}: {error}" + detail + advice,
            status=status,
            is_outcome_unknown=is_outcome_unknown and (status is None or status >= 500),  # noqa: PLR2004 (HTTP's)
        )


def _parse_json(reply: HttpResponse, name: str) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise CodeHostError(f"{name}: the answer is not JSON") from None


def _error_detail(body: bytes) -> str:
    """Return the message of an error's document, to be appended to a sentence."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = document.get("message") or document.get("error") if isinstance(document, dict) else ""
    if message and not isinstance(message, str):
        message = json.dumps(message)
    text = words.escape_text(message or "")
    return f": {text[:_MAX_DETAIL_LENGTH]}" if text else ""


def get_text(document: Mapping[str, Any], *keys: str) -> str:
    """Return the text at a path of keys; "" if there is none."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def get_number(document: Mapping[str, Any], key: str, name: str) -> int:
    """Return the whole number at a key; raise CodeHostError if there is none."""
    value = document.get(key)
    if type(value) is not int:
        raise CodeHostError(f"{name}: the answer has no number {key!r}")
    return value
