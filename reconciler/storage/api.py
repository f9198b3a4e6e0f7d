"""The interface of a storage: bytes at paths below one root. It knows nothing of Hudi.

Every path is relative to the root and uses ``/``, without a leading one; ``""`` is the root.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Protocol

from reconciler.lazy_dataclass import dataclass

#: gets the units of work that are done, such as files or bytes
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A file or folder. ``modified_ms``: milliseconds since 1970, 0 if unknown."""

    name: str
    size: int
    modified_ms: int
    is_folder: bool


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One folder of a walk, with names and sizes of its files in any order."""

    path: str
    names: list[str]
    sizes: list[int]


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The outcome of deleting one path; ``existed``: the file was there and is removed.

    A store with bulk deletes does not tell whether a file was there, and its callers have listed it
    before: ``existed`` is True for every file that is gone then.
    """

    path: str
    existed: bool
    error: str | None = None


@dataclass(frozen=True, slots=True)
class VersionedFile:
    """The bytes of a file, and the version that ``replace_version`` compares.

    Equal bytes may have equal versions, as with the ETags of S3.
    """

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class StorageRef:
    """A storage's location and options; picklable, so that executors can open it themselves.

    ``options`` may hold credentials and are not part of the ``repr``. ``secrets``: texts that no
    message may contain. ``writer``: a random text of the run that writes, by which it recognises
    its own objects; processes that open the reference share it. ``creates_exclusively``: the store
    has refused to create an object twice. ``surroundings``: differs if what a client finds
    credentials in has changed; 0 in a process where it never does.
    """

    location: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    writer: str = field(default="", repr=False, compare=False)
    creates_exclusively: bool = field(default=False, repr=False, compare=False)
    surroundings: int = field(default=0, repr=False, compare=False)


class Storage(Protocol):
    """The operations of every store.

    Every method raises NotFoundError, PermissionDeniedError and StorageError, which name the path.
    No method retries a failed write.
    """

    @property
    def location(self) -> str:
        """An absolute path without scheme for local tables, else a URL without trailing slash."""

    @property
    def ref(self) -> StorageRef:
        """The reference with which another process opens the same storage."""

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        """Return the direct children; NotFoundError when the folder is missing."""

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        """Yield every folder below and including the root, in one listing pass.

        ``descend(path)`` decides whether to enter a folder. Flat stores have no empty folders.
        """

    def read(self, path: str) -> bytes:
        """Return the whole file."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``start``; a negative start counts from the end."""

    def stat(self, path: str) -> StorageEntry | None:
        """Return the entry at the path, None when nothing is there."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, whole or not at all; AlreadyExistsError when it exists.

        Parent folders are created. On a local disk, the bytes and the folder are synced.
        """

    def create_from(self, path: str, file: str) -> None:
        """Like ``create``, with the bytes of a local file, which stays.

        Memory: one chunk if the store's client writes chunks, at most 64 MiB.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whether or not it exists, whole or not at all."""

    def read_version(self, path: str) -> VersionedFile:
        """Return the whole file with its version."""

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        """Write a file that still has a version, or that is missing if ``version`` is None.

        Returns the new version. Raises ChangedError, and writes nothing, if the file is another
        one. A store that cannot compare and write in one step raises UnsupportedError.
        """

    def delete(self, path: str) -> bool:
        """Remove one file; return whether it was there."""

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        """Remove many files; return one result each, in order.

        A file that the store refuses to delete has its error. Raises StorageError, with the first
        file that is left, if the store did not take a whole request: files may be deleted.
        """

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; return whether it is gone. Never recursive."""
