"""Open the storage of a location."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import StorageError
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.local import LocalStorage
from reconciler.storage.locations import (
    LOCAL_SCHEMES,
    find_local_path,
    make_absolute,
    names_local_host,
)

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_SPELLINGS: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def open_storage(ref: StorageRef | str, options: Mapping[str, str] | None = None) -> Storage:
    """Return the storage at a location; nothing is read yet.

    ``options`` are passed to the store's client and never printed. Raises StorageError for an
    invalid location.
    """
    if isinstance(ref, str):
        ref = StorageRef(ref, tuple(sorted((options or {}).items())))
    location = normalise_location(ref.location)
    if "://" not in location:
        return LocalStorage(location)
    from reconciler.storage.clients import connect  # noqa: PLC0415 (loaded only for remote tables)

    return connect(replace(ref, location=location))


def normalise_location(location: str) -> str:
    """Return one spelling of a location: an absolute local path or a URL without last slash.

    >>> normalise_location("/a//b/"), normalise_location("file:///a/b%20c")
    ('/a/b', '/a/b c')
    >>> normalise_location("file:/a"), normalise_location("s3a://bucket/t/")
    ('/a', 's3://bucket/t')
    """
    if not location:
        raise StorageError("''", "is an empty location")
    match = _SCHEME.match(location)
    if match is None or match[1].lower() in LOCAL_SCHEMES:
        if names_local_host(location):
            raise StorageError(location, "names a host; a local location is file:///path")
        return make_absolute(find_local_path(location) or "")
    scheme = match[1].lower()
    rest = location[match.end() - 1 :].lstrip("/").rstrip("/")
    if not rest:
        raise StorageError(location, "names no bucket or folder")
    if scheme == "hdfs" and location[match.end() - 1 :].startswith("///"):
        rest = f"/{rest}"
    return f"{_SPELLINGS.get(scheme, scheme)}://{rest}"
