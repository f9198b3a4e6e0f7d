"""Keeping credentials out of what clients of stores say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

_SHORTEST: Final = 4
"""Shorter texts are parts of common words; nothing so short is a secret."""
_PART: Final = 8
_INSTEAD: Final = "***"


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, whole or in the parts that clients take them apart into.

    >>> redacted("GET https://a/b?sv=1&sig=c2VjcmV0MQ%3D%3D failed", ["sv=1&sig=c2VjcmV0MQ=="])
    'GET https://a/b?sv=1&sig=*** failed'
    """
    parts = {part for secret in secrets for part in _parts(secret)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, _INSTEAD)
    return text


def _parts(secret: str) -> Iterator[str]:
    """The ways in which a secret, or the secrets in it, may be spelled."""
    for whole in (secret, *_leaves(secret)):
        if len(whole) >= _SHORTEST:
            yield from _spellings(whole)
        for pair in re.split("[;&?]", whole):
            value = pair.partition("=")[2]
            if len(value) >= _PART:
                yield from _spellings(value)


def _spellings(text: str) -> set[str]:
    return {text, text.strip(), unquote(text), quote(text), quote(text, safe="")}


def _leaves(secret: str) -> list[str]:
    """The texts in a secret that is JSON."""
    if not secret.startswith("{"):
        return []
    try:
        return list(_texts(json.loads(secret)))
    except (ValueError, RecursionError):
        return []


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
