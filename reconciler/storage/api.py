"""Bytes at paths below one root. Knows nothing of Hudi.

Every path is relative to the root, uses ``/`` and never starts with it; ``""`` is the root itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """One thing in a folder. ``modified_ms`` is in milliseconds since the epoch (0 if unknown)."""

    name: str
    size: int
    modified_ms: int
    is_folder: bool


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One folder of a walk with the names and sizes of its files, in no particular order."""

    path: str
    names: list[str]
    sizes: list[int]


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What became of one path: ``existed`` tells a removal from a file that was gone already."""

    path: str
    existed: bool
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StorageRef:
    """Where a storage is and how to reach it: picklable, so that executors can open their own.

    ``options`` may hold credentials, so they are not part of the ``repr``. ``secrets`` are texts
    among them that no message may repeat.
    """

    location: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Storage(Protocol):
    """What every store offers.

    Raises, from every method: NotFoundError, PermissionDeniedError, StorageError; each names the
    path. Nothing here retries a failed write.
    """

    @property
    def location(self) -> str:
        """An absolute path without scheme for local tables, else a URL without trailing slash."""

    @property
    def ref(self) -> StorageRef:
        """How another process opens the same storage."""

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        """The direct children; NotFoundError when the folder is not there."""

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        """Every folder below and including the root, in one listing pass.

        ``descend(path)`` is asked before a folder is entered. Flat stores know no empty folders.
        """

    def read(self, path: str) -> bytes:
        """The whole file."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``; a negative start counts from the end."""

    def stat(self, path: str) -> StorageEntry | None:
        """The entry at the path, None when nothing is there."""

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet, whole or not at all; AlreadyExistsError otherwise.

        Parent folders are made. On a local disk the bytes and the folder are synced.
        """

    def create_from(self, path: str, file: str) -> None:
        """As ``create``, with the bytes of a file of this machine's disk, which stays.

        Memory: a piece of it at a time where the store's client takes pieces, at most 64 MiB.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whether or not it exists, whole or not at all."""

    def delete(self, path: str) -> bool:
        """Remove one file; True when it was there."""

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        """Remove many files, one outcome each, in the order given; raises nothing per path."""

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; True when it is gone afterwards. Never recursive."""
