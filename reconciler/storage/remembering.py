"""A storage that reads a file which never changes once a run, however many stages ask for it."""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from reconciler.storage.api import DeletionResult, Storage, StorageEntry
from reconciler.storage.passing import PassingStorage

#: most bytes of all remembered files; the one that was not asked for the longest is forgotten
_MOST_BYTES: Final = 32 * 1024 * 1024
#: a part of a file that is not larger is answered from the whole file, which one request reads
_WHOLE_FILE: Final = 4 * 1024 * 1024

#: size and modification time of a file, as its folder was listed last
_Version = tuple[int, int]


class RememberingStorage(PassingStorage):
    """Reads from a storage, and remembers files that do not change.

    ``is_unchanging`` says of a path whether its file is written once. What is remembered of it
    counts only as long as the last listing of its folder shows the same size and modification time.
    A file that no listing has shown is not remembered. Listings never are. Pickled, it forgets.
    ``ref`` is the storage's, so opening it again gives the storage without the memory.
    """

    def __init__(self, inner: Storage, is_unchanging: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self._is_unchanging = is_unchanging
        self._versions: dict[str, dict[str, _Version]] = {}
        self._contents: OrderedDict[tuple[str, _Version], bytes] = OrderedDict()
        self._bytes = 0
        self._guard = Lock()

    def __reduce__(self) -> tuple[type[RememberingStorage], tuple[Storage, Callable[[str], bool]]]:
        return RememberingStorage, (self._inner, self._is_unchanging)

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        entries = self._inner.list(folder)
        start = f"{folder}/" if folder else ""
        versions = {
            entry.name: (entry.size, entry.modified_ms)
            for entry in entries
            if not entry.is_folder and self._is_unchanging(start + entry.name)
        }
        with self._guard:
            self._versions[folder] = versions
        return entries

    def read(self, path: str) -> bytes:
        version = self._find_version(path)
        if version is None:
            return self._inner.read(path)
        known = self._recall(path, version)
        if known is not None:
            return known
        data = self._inner.read(path)
        if len(data) == version[0]:
            self._remember(path, version, data)
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        version = self._find_version(path)
        if version is None or start < 0 or not 0 < version[0] <= _WHOLE_FILE:
            return self._inner.read_range(path, start, length)
        return self.read(path)[start : start + length]

    def replace(self, path: str, data: bytes) -> None:
        self._forget(path)
        self._inner.replace(path, data)

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        self._forget(path)
        return self._inner.replace_version(path, data, version)

    def delete(self, path: str) -> bool:
        self._forget(path)
        return self._inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        for path in paths:
            self._forget(path)
        return self._inner.delete_many(paths)

    def _find_version(self, path: str) -> _Version | None:
        folder, _, name = path.rpartition("/")
        with self._guard:
            return self._versions.get(folder, {}).get(name)

    def _forget(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self._guard:
            self._versions.get(folder, {}).pop(name, None)

    def _recall(self, path: str, version: _Version) -> bytes | None:
        with self._guard:
            data = self._contents.get((path, version))
            if data is not None:
                self._contents.move_to_end((path, version))
            return data

    def _remember(self, path: str, version: _Version, data: bytes) -> None:
        with self._guard:
            if (path, version) not in self._contents:
                self._contents[path, version] = data
                self._bytes += len(data)
            while self._bytes > _MOST_BYTES:
                _oldest, dropped = self._contents.popitem(last=False)
                self._bytes -= len(dropped)
