"""Files in memory with the interface of a table's storage."""

from __future__ import annotations

from reconciler.errors import NotFoundError
from reconciler.storage.api import StorageEntry


class MemorySource:
    """A source of files; ``files``: bytes by path."""

    files: dict[str, bytes]

    def list(self, folder):
        found = {}
        for path, data in self.files.items():
            if path.startswith(f"{folder}/"):
                name, _, below = path.removeprefix(f"{folder}/").partition("/")
                found[name] = StorageEntry(name, len(data), 0, bool(below))
        if not found:
            raise NotFoundError(folder, "is not there")
        return [*found.values()]

    def read(self, path):
        if path not in self.files:
            raise NotFoundError(path, "is not there")
        return self.files[path]

    def read_range(self, path, start, length):
        return self.files[path][start : start + length]
