"""Read the entries that clients of remote stores list."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconciler.storage.api import StorageEntry


def build_entries(infos: list[dict[str, Any]], folder: str) -> list[StorageEntry]:
    """Return the entries of a folder's children; some stores list the folder itself too."""
    return [build_entry(info) for info in infos if info["name"].rstrip("/") != folder]


def build_entry(info: Mapping[str, Any]) -> StorageEntry:
    is_folder = info["type"] == "directory"
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    return StorageEntry(
        name, 0 if is_folder else int(info.get("size") or 0), read_modified_ms(info), is_folder
    )


def read_modified_ms(info: Mapping[str, Any]) -> int:
    """Return milliseconds since 1970; each client has its own field for it."""
    for key in ("LastModified", "last_modified", "mtime", "updated", "created"):
        value = info.get(key)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value * 1000)
    return 0
