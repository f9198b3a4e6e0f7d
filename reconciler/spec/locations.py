"""Locations of tables: one spelling for plans, and an identity to compare tables."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote

_FILE: Final = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "wasbs": "abfs", "abfss": "abfs"}


def resolve_location(text: str, folder: str) -> str:
    """Return an absolute path without scheme, or a URL without trailing slash.

    Relative paths start from ``folder``. Symbolic links stay as written.

    >>> resolve_location("../orders/", "/repo/specs"), resolve_location("file:///a//b", "/")
    ('/repo/orders', '/a/b')
    >>> resolve_location("//a", "/")
    '/a'
    >>> resolve_location("S3://lake/orders/", "/")
    's3://lake/orders'
    """
    if is_file := _FILE.match(text):
        text = unquote(text[is_file.end() :])
    elif "://" in text:
        scheme, _, rest = text.partition("://")
        return f"{scheme.lower()}://{rest.rstrip('/')}"
    path = os.path.abspath(os.path.join(folder, text))  # noqa: PTH100, PTH118 (links stay)
    return f"/{path.lstrip('/')}"


def normalize_store(location: str) -> str:
    """Return a resolved location with one scheme per store, whatever client's scheme it has.

    >>> normalize_store("s3a://lake//orders"), normalize_store("/a/b")
    ('s3://lake/orders', '/a/b')
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    return f"{_ALIASES.get(scheme, scheme)}://{re.sub('/+', '/', rest)}"


def location_identity(location: str) -> str:
    """Return a text that is equal for two spellings of one location, with links followed."""
    return normalize_store(location) if "://" in location else os.path.realpath(location)


def compile_glob(pattern: str, folder: str) -> re.Pattern[str]:
    """Return the regular expression of a glob: ``*`` and ``?`` stop at a slash, ``**`` does not.

    It matches normalized locations. A glob that does not start with ``**`` is resolved first.

    >>> bool(compile_glob("../lake/*", "/repo/specs").fullmatch("/repo/lake/orders"))
    True
    >>> bool(compile_glob("s3a://lake/**", "/").fullmatch("s3://lake/sales/orders"))
    True
    """
    is_anywhere = pattern.startswith("**")
    text = pattern if is_anywhere else normalize_store(resolve_location(pattern, folder))
    parts = re.split(r"(\*\*|\*|\?)", text)
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts), re.DOTALL)
