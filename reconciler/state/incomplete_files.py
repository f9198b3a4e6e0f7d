"""Tell files that are still being written from damaged ones."""

from __future__ import annotations

from typing import Final

from reconciler.storage.api import Storage

#: a file that was changed longer ago is no longer being written
_WRITING_MS: Final = 10_000


def is_being_written(storage: Storage, path: str, observed_ms: int) -> bool:
    """Return whether a damaged file may just be incomplete, because Hudi writes it in place.

    Source: HoodieStorage.createImmutableFileInPath, which uses a temporary name only on HDFS.
    """
    if not path.startswith(".hoodie/"):
        return False
    entry = storage.stat(path)
    return entry is None or entry.modified_ms > observed_ms - _WRITING_MS
