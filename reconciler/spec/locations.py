"""Locations in spec files: one spelling for plans, and globs that select tables by location."""

from __future__ import annotations

import re
from typing import Final

from reconciler.lazy_dataclass import dataclass
from reconciler.storage.locations import (
    find_local_path,
    identify_text,
    make_absolute,
    split_url,
    use_store_scheme,
)

_WILDCARDS: Final = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def resolve_location(text: str, folder: str) -> str:
    """Return an absolute path without scheme, or a URL without trailing slash.

    Relative paths start from ``folder``. Symbolic links stay as written.

    >>> resolve_location("../orders/", "/repo/specs"), resolve_location("file:///a//b", "/")
    ('/repo/orders', '/a/b')
    >>> resolve_location("//a", "/"), resolve_location("local:///a", "/")
    ('/a', '/a')
    >>> resolve_location("S3://lake/orders/", "/")
    's3://lake/orders'
    """
    local = find_local_path(text)
    if local is not None:
        return make_absolute(local, folder)
    scheme, rest = split_url(text)
    return f"{scheme}://{rest}"


@dataclass(frozen=True, slots=True)
class LocationGlob:
    """A glob of locations: ``*`` and ``?`` stop at a slash, ``**`` does not.

    ``place`` and ``details`` are globs of those of an identity, ``text`` of what is written.
    """

    text: re.Pattern[str]
    place: re.Pattern[str]
    details: tuple[re.Pattern[str] | None, ...] = ()

    def matches(self, location: str) -> bool:
        """Return whether a resolved location matches in any of its spellings.

        >>> glob = compile_glob("abfss://c@prod.dfs.core.windows.net/**", "/")
        >>> glob.matches("az://c/t"), glob.matches("abfs://c@prod.blob.core.windows.net/t")
        (True, True)
        >>> glob.matches("abfss://c@test.dfs.core.windows.net/t")
        False
        """
        if self.text.fullmatch(use_store_scheme(location)):
            return True
        identity = identify_text(location) if location else None
        if identity is None or not self.place.fullmatch(identity.place):
            return False
        pairs = zip(self.details, identity.details, strict=False)
        return all(not glob or not detail or glob.fullmatch(detail) for glob, detail in pairs)


def compile_glob(pattern: str, folder: str) -> LocationGlob:
    """Return the glob of a pattern. One that does not start with ``**`` is resolved first.

    >>> compile_glob("../lake/*", "/repo/specs").matches("/repo/lake/orders")
    True
    >>> compile_glob("s3a://lake/**", "/").matches("s3://lake/sales/orders")
    True
    """
    if pattern.startswith("**"):
        anywhere = _compile_text(pattern)
        return LocationGlob(anywhere, anywhere)
    text = resolve_location(pattern, folder)
    identity = identify_text(text)
    return LocationGlob(
        text=_compile_text(use_store_scheme(text)),
        place=_compile_text(identity.place),
        details=tuple(_compile_text(detail) if detail else None for detail in identity.details),
    )


def _compile_text(text: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*|\*|\?)", text)
    return re.compile("".join(_WILDCARDS.get(part, re.escape(part)) for part in parts), re.DOTALL)
