"""A storage that refuses every change, for commands that only read, and previews of writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from reconciler.errors import PermissionDeniedError
from reconciler.storage.passing import PassingStorage
from reconciler.storage.paths import join_path


class ReadOnlyStorage(PassingStorage):
    """Reads from a storage, and raises PermissionDeniedError for every change.

    It can be pickled with the storage. ``ref`` is the storage's, so opening it again gives the
    storage without the refusal.
    """

    def create(self, path: str, data: bytes) -> NoReturn:  # noqa: ARG002
        self._refuse("create", path)

    def create_from(self, path: str, file: str) -> NoReturn:  # noqa: ARG002
        self._refuse("create_from", path)

    def replace(self, path: str, data: bytes) -> NoReturn:  # noqa: ARG002
        self._refuse("replace", path)

    def replace_version(self, path: str, data: bytes, version: str | None) -> NoReturn:  # noqa: ARG002
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
