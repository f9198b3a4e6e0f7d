"""A storage that passes every call to another one; subclasses change what they concern."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence

from reconciler.storage.api import (
    DeletionResult,
    FolderListing,
    Storage,
    StorageEntry,
    StorageRef,
    VersionedFile,
)


class PassingStorage:
    """Passes every call to ``inner``, whose location and reference it has."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    @property
    def location(self) -> str:
        return self._inner.location

    @property
    def ref(self) -> StorageRef:
        return self._inner.ref

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        return self._inner.list(folder)

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        return self._inner.walk(descend)

    def read(self, path: str) -> bytes:
        return self._inner.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._inner.read_range(path, start, length)

    def stat(self, path: str) -> StorageEntry | None:
        return self._inner.stat(path)

    def create(self, path: str, data: bytes) -> None:
        self._inner.create(path, data)

    def create_from(self, path: str, file: str) -> None:
        self._inner.create_from(path, file)

    def replace(self, path: str, data: bytes) -> None:
        self._inner.replace(path, data)

    def read_version(self, path: str) -> VersionedFile:
        return self._inner.read_version(path)

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        return self._inner.replace_version(path, data, version)

    def delete(self, path: str) -> bool:
        return self._inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        return self._inner.delete_many(paths)

    def remove_folder(self, path: str) -> bool:
        return self._inner.remove_folder(path)
