"""Storages that wrap a storage: recording, failing.

All can be pickled with the storage they wrap. ``ref`` is the wrapped storage's, so opening it again
gives the storage without the wrapper.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from reconciler.storage.api import (
    DeletionResult,
    FolderListing,
    Storage,
    StorageEntry,
    StorageRef,
    VersionedFile,
)

_T = TypeVar("_T")

MUTATIONS: Final = frozenset(
    {
        "create",
        "create_from",
        "replace",
        "replace_version",
        "delete",
        "delete_many",
        "remove_folder",
    }
)


@dataclass(frozen=True, slots=True)
class StorageCall:
    """One call of a storage; ``paths`` has one element except for ``delete_many``."""

    method: str
    paths: tuple[str, ...]

    @property
    def mutates(self) -> bool:
        return self.method in MUTATIONS


class _StorageWrapper:
    """Passes every method through ``_intercept``, which subclasses define."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    @property
    def location(self) -> str:
        return self._inner.location

    @property
    def ref(self) -> StorageRef:
        return self._inner.ref

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        return self._intercept(StorageCall("list", (folder,)), lambda: self._inner.list(folder))

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        return self._intercept(StorageCall("walk", ("",)), lambda: self._inner.walk(descend))

    def read(self, path: str) -> bytes:
        return self._intercept(StorageCall("read", (path,)), lambda: self._inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._intercept(
            StorageCall("read_range", (path,)), lambda: self._inner.read_range(path, start, length)
        )

    def stat(self, path: str) -> StorageEntry | None:
        return self._intercept(StorageCall("stat", (path,)), lambda: self._inner.stat(path))

    def create(self, path: str, data: bytes) -> None:
        self._intercept(
            StorageCall("create", (path,)),
            lambda: self._inner.create(path, data),
            lambda: self._inner.create(path, data[: len(data) // 2]),
        )

    def create_from(self, path: str, file: str) -> None:
        def half() -> None:
            data = Path(file).read_bytes()
            self._inner.create(path, data[: len(data) // 2])

        self._intercept(
            StorageCall("create_from", (path,)), lambda: self._inner.create_from(path, file), half
        )

    def replace(self, path: str, data: bytes) -> None:
        self._intercept(
            StorageCall("replace", (path,)),
            lambda: self._inner.replace(path, data),
            lambda: self._inner.replace(path, data[: len(data) // 2]),
        )

    def read_version(self, path: str) -> VersionedFile:
        return self._intercept(
            StorageCall("read_version", (path,)), lambda: self._inner.read_version(path)
        )

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        return self._intercept(
            StorageCall("replace_version", (path,)),
            lambda: self._inner.replace_version(path, data, version),
        )

    def delete(self, path: str) -> bool:
        return self._intercept(StorageCall("delete", (path,)), lambda: self._inner.delete(path))

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        return self._intercept(
            StorageCall("delete_many", tuple(paths)),
            lambda: self._inner.delete_many(paths),
            lambda: self._inner.delete_many(paths[: len(paths) // 2]),
        )

    def remove_folder(self, path: str) -> bool:
        return self._intercept(
            StorageCall("remove_folder", (path,)), lambda: self._inner.remove_folder(path)
        )

    def _intercept(
        self, call: StorageCall, act: Callable[[], _T], torn: Callable[[], Any] | None = None
    ) -> _T:
        """Run the call or not; ``torn`` does half of it where that is possible."""
        raise NotImplementedError


class RecordingStorage(_StorageWrapper):
    """Records every call in ``calls``, before it is made."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.calls: builtins.list[StorageCall] = []

    @property
    def mutations(self) -> builtins.list[StorageCall]:
        return [call for call in self.calls if call.mutates]

    @property
    def counts(self) -> Counter[str]:
        return Counter(call.method for call in self.calls)

    def _intercept(self, call: StorageCall, act: Callable[[], _T], torn: object = None) -> _T:  # noqa: ARG002
        self.calls.append(call)
        return act()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFault:
    """Which call fails, and how.

    ``at`` counts from 1 over the calls that ``among`` selects. ``mode``: before the call; after it
    (done, but the caller does not know); or torn (half of the bytes or paths; like ``before`` where
    there is no half). ``is_permanent``: every later selected call fails too, as after a crash.
    """

    at: int
    mode: Literal["before", "after", "torn"] = "before"
    among: Literal["mutations", "calls"] = "mutations"
    is_permanent: bool = True


class FaultyStorage(_StorageWrapper):
    """Raises a given exception at the n-th call; ``call_count``: selected calls so far."""

    def __init__(self, inner: Storage, fault: StorageFault, error: BaseException) -> None:
        super().__init__(inner)
        self._fault, self._error = fault, error
        self.call_count = 0

    def _intercept(
        self, call: StorageCall, act: Callable[[], _T], torn: Callable[[], Any] | None = None
    ) -> _T:
        fault = self._fault
        if fault.among == "mutations" and not call.mutates:
            return act()
        self.call_count += 1
        if self.call_count < fault.at or (self.call_count > fault.at and not fault.is_permanent):
            return act()
        if self.call_count == fault.at:
            if fault.mode == "after":
                act()
            elif fault.mode == "torn" and torn is not None:
                torn()
        raise self._error
