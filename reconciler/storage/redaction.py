"""Remove credentials from messages of store clients."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

_MIN_SECRET: Final = 4
"""Shorter texts may be parts of common words and are not treated as secrets."""
_MIN_PART: Final = 8
_MASK: Final = "***"
_URL: Final = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*)://([^\s'\"<>]+)")
#: schemes whose URLs have a user before the @; in other stores it is a container's name
_WEB_SCHEMES: Final = ("http", "https", "ftp", "sftp")


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, whole or in the parts that clients split them into.

    >>> redact_secrets("GET https://a/b?sv=1&sig=c2VjcmV0MQ%3D%3D", ["sv=1&sig=c2VjcmV0MQ=="])
    'GET https://a/b?sv=1&sig=***'
    """
    parts = {part for secret in secrets for part in _list_spellings(secret)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, _MASK)
    return text


def redact_urls(text: str, url: str = "") -> str:
    """Return the text without the credentials of its URLs and of ``url``.

    Credentials are the key and secret before an @, and a query.

    >>> redact_urls("s3://key:se/cret@lake/a.csv: gone, https://x/b.avro?sv=1&sig=abc")
    's3://***@lake/a.csv: gone, https://x/b.avro?***'
    >>> redact_urls("/key:secret@lake/a.csv: gone", "s3://key:secret@lake/a.csv")
    '/***@lake/a.csv: gone'
    >>> redact_urls("hdfs://host:8020/a@b.csv, abfs://box@account/c?.parquet")
    'hdfs://host:8020/a@b.csv, abfs://box@account/c?.parquet'
    """
    credentials = [
        secret
        for match in _URL.finditer(f"{url} {text}")
        for secret in _find_credentials(*match.groups())
    ]
    for secret in credentials:  # credentials of URLs are hidden whatever their length
        text = text.replace(f"://{secret}@", f"://{_MASK}@").replace(f"?{secret}", f"?{_MASK}")
    return redact_secrets(text, credentials)


def _find_credentials(scheme: str, rest: str) -> Iterator[str]:
    """Yield the credentials of a URL; in some stores the text before the @ is only a name."""
    location, _, query = rest.partition("?")
    user_part, at, _ = location.rpartition("@")
    named, _, secret = user_part.partition(":")
    if at and (secret and not re.match(r"\d+/", secret)):
        yield from (user_part, secret)
    elif at and scheme.lower() in _WEB_SCHEMES and "/" not in named:
        yield user_part
    if "=" in query:
        yield query


def _list_spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret and of the secrets inside it."""
    for whole in (secret, *_find_json_texts(secret)):
        if len(whole) >= _MIN_SECRET:
            yield from _spell_variants(whole)
        for pair in re.split("[;&?]", whole):
            value = pair.partition("=")[2]
            if len(value) >= _MIN_PART:
                yield from _spell_variants(value)


def _spell_variants(text: str) -> set[str]:
    return {text, text.strip(), unquote(text), quote(text), quote(text, safe="")}


def _find_json_texts(secret: str) -> list[str]:
    """Return the texts in a secret that is JSON."""
    if not secret.startswith("{"):
        return []
    try:
        return list(_collect_texts(json.loads(secret)))
    except (ValueError, RecursionError):
        return []


def _collect_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _collect_texts(inner)
