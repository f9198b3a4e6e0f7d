"""JSON to and from a forge's API, page by page. The token goes to the API's own host only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from reconciler.forge.api import ForgeError
from reconciler.forge.http import HttpError, Outgoing, Patience, Reply, place, send
from reconciler.render import words

#: the parts of a path, each quoted by itself
Path = tuple[str | int, ...]

_MOST_PAGES: Final = 200
_LONGEST_WORD: Final = 300
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?', re.ASCII)
_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One forge's API.

    ``base`` is its URL without a slash at the end. ``advice`` says what to do about a status, or
    nothing. ``token`` never appears in an error, whatever the forge answers.
    """

    name: str
    base: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    patience: Patience
    advice: Callable[[int], str]

    def get(self, path: Path, **query: str | int) -> Any:
        """The document at a path."""
        return _parsed(self._send("GET", self._url(path, query)), self.name)

    def pages(self, path: Path, **query: str | int) -> Iterator[Mapping[str, Any]]:
        """Every object of a list."""
        url: str | None = self._url(path, {**query, "per_page": 100})
        for _ in range(_MOST_PAGES):
            if url is None:
                return
            reply = self._send("GET", url)
            listed = _parsed(reply, self.name)
            if not isinstance(listed, list):
                raise self._odd("a list")
            yield from (item for item in listed if isinstance(item, dict))
            url = self._next(reply)
        raise ForgeError(f"{self.name}: a list has more than {_MOST_PAGES} pages")

    def change(self, method: str, path: Path, **document: Any) -> Mapping[str, Any]:
        """What became of a change; an answer without a body is an empty object.

        A POST is not repeated where it may have arrived: the error says that it is unsure then.
        """
        body = json.dumps(document).encode() if document else None
        reply = self._send(method, self._url(path, {}), body)
        found = _parsed(reply, self.name) if reply.body.strip() else {}
        if not isinstance(found, dict):
            raise self._odd("an object")
        return found

    def ask(self, url: str, **document: Any) -> Mapping[str, Any]:
        """What a POST that changes nothing answers; ``url`` is another of the forge's."""
        self._check_origin(url)
        reply = self._send("POST", url, json.dumps(document).encode(), is_question=True)
        found = _parsed(reply, self.name)
        if not isinstance(found, dict):
            raise self._odd("an object")
        return found

    def _odd(self, wanted: str) -> ForgeError:
        return ForgeError(f"{self.name}: {place(self.base)} answered, but not with {wanted}")

    def _url(self, path: Path, query: Mapping[str, str | int]) -> str:
        parts = "/".join(quote(str(part), safe="") for part in path)
        return f"{self.base}/{parts}" + (f"?{urlencode(query)}" if query else "")

    def _next(self, reply: Reply) -> str | None:
        found = _NEXT.search(reply.headers.get("link", ""))
        if found is None:
            return None
        self._check_origin(found[1])
        return found[1]

    def _check_origin(self, url: str) -> None:
        try:
            is_ours = place(url) == place(self.base)
        except HttpError:
            is_ours = False
        if not is_ours:
            raise ForgeError(
                f"{self.name}: {place(self.base)} points to another host, to which the token must "
                "not go; is the API's URL right?"
            )

    def _send(
        self, method: str, url: str, body: bytes | None = None, *, is_question: bool = False
    ) -> Reply:
        if not _TOKEN.fullmatch(self.token):
            raise ForgeError(f"{self.name}: the token has characters that no token has, as blanks")
        repeatable = method != "POST" or is_question
        patience = replace(self.patience, is_repeatable=repeatable)
        request = Outgoing(method=method, url=url, headers=self.headers, body=body)
        try:
            return send(request, patience)
        except HttpError as error:
            raise self._explained(error, is_unsure=not repeatable) from None

    def _explained(self, error: HttpError, *, is_unsure: bool) -> ForgeError:
        status = error.status
        said = _said(error.body).replace(self.token, "***")
        advice = "" if status is None else self.advice(status)
        return ForgeError(
            f"{self.name}: {error}" + said + advice,
            status=status,
            is_unsure=is_unsure and (status is None or status >= 500),  # noqa: PLR2004 (HTTP's)
        )


def _parsed(reply: Reply, name: str) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise ForgeError(f"{name}: answered with something that is not JSON") from None


def _said(body: bytes) -> str:
    """What an error's document says, as a part of a sentence."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    found = document.get("message") or document.get("error") if isinstance(document, dict) else ""
    text = words.plain(found if isinstance(found, str) else json.dumps(found) if found else "")
    return f": {text[:_LONGEST_WORD]}" if text else ""


def text_of(document: Mapping[str, Any], *keys: str) -> str:
    """The text at a path of keys; empty where there is none."""
    found: Any = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def number_of(document: Mapping[str, Any], key: str, name: str) -> int:
    """The whole number at a key; ForgeError where there is none."""
    found = document.get(key)
    if type(found) is not int:
        raise ForgeError(f"{name}: an answer lacks the number {key!r}")
    return found
