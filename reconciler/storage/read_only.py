"""A storage that refuses every change, for commands that only read, and previews of writes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from reconciler.errors import PermissionDeniedError
from reconciler.storage.api import FolderListing, Storage, StorageEntry, StorageRef, VersionedFile
from reconciler.storage.paths import join_path


class ReadOnlyStorage:
    """Reads from a storage, and raises PermissionDeniedError for every change.

    It can be pickled with the storage. ``ref`` is the storage's, so opening it again gives the
    storage without the refusal.
    """

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

    def create(self, path: str, _data: bytes) -> NoReturn:
        self._refuse("create", path)

    def create_from(self, path: str, _file: str) -> NoReturn:
        self._refuse("create_from", path)

    def replace(self, path: str, _data: bytes) -> NoReturn:
        self._refuse("replace", path)

    def read_version(self, path: str) -> VersionedFile:
        return self._inner.read_version(path)

    def replace_version(self, path: str, _data: bytes, _version: str | None) -> NoReturn:
        self._refuse("replace_version", path)

    def delete(self, path: str) -> NoReturn:
        self._refuse("delete", path)

    def delete_many(self, paths: Sequence[str]) -> NoReturn:
        self._refuse("delete_many", paths[0] if paths else "")

    def remove_folder(self, path: str) -> NoReturn:
        self._refuse("remove_folder", path)

    def _refuse(self, method: str, path: str) -> NoReturn:
        raise PermissionDeniedError(
            join_path(self.location, path), f"{method} on a read-only storage"
        )
