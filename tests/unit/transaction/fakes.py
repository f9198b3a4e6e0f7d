"""A store and a clock in memory, so that modification times are the test's own."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.errors import AlreadyExistsError, ChangedError, NotFoundError
from reconciler.storage.api import (
    DeletionResult,
    FolderListing,
    StorageEntry,
    StorageRef,
    VersionedFile,
)
from reconciler.storage.conditional_replace import compute_version
from reconciler.transaction.process import Process


@dataclass
class FakeClock:
    """Starts at 2026-01-01 00:00:00 UTC; sleeping is what moves it."""

    ms: int = 1_767_225_600_000
    while_sleeping: Callable[[], None] = lambda: None
    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += int(seconds * 1000)
        self.while_sleeping()

    def pass_seconds(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


@dataclass
class Shelf:
    """Files in a dictionary: path -> (bytes, modification time)."""

    clock: FakeClock
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    location: str = "memory://shelf"

    @property
    def ref(self) -> StorageRef:
        return StorageRef(self.location)

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        prefix = f"{folder}/" if folder else ""
        found: dict[str, StorageEntry] = {}
        for path, (data, modified_ms) in self.files.copy().items():
            if path.startswith(prefix):
                name, slash, _ = path[len(prefix) :].partition("/")
                found[name] = StorageEntry(
                    name, 0 if slash else len(data), modified_ms, bool(slash)
                )
        if not found:
            raise NotFoundError(folder, "is not there")
        return [found[name] for name in sorted(found)]

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise NotFoundError(path, "is not there")
        return self.files[path][0]

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.read(path)[start:][:length]

    def stat(self, path: str) -> StorageEntry | None:
        if path not in self.files:
            return None
        data, modified_ms = self.files[path]
        return StorageEntry(path.rpartition("/")[2], len(data), modified_ms, is_folder=False)

    def create(self, path: str, data: bytes) -> None:
        if path in self.files:
            raise AlreadyExistsError(path, "exists already")
        self.files[path] = (data, self.clock.ms)

    def replace(self, path: str, data: bytes) -> None:
        self.files[path] = (data, self.clock.ms)

    def read_version(self, path: str) -> VersionedFile:
        return VersionedFile(data := self.read(path), compute_version(data))

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        current = self.read_version(path).version if path in self.files else None
        if version != current:
            raise ChangedError(path, "was changed")
        self.replace(path, data)
        return compute_version(data)

    def delete(self, path: str) -> bool:
        return self.files.pop(path, None) is not None

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        return [DeletionResult(path, existed=self.delete(path)) for path in paths]

    def remove_folder(self, path: str) -> bool:
        return not any(name.startswith(f"{path}/") for name in self.files)


def process(host: str = "here", pid: int = 1, living: frozenset[int] = frozenset()) -> Process:
    """A process of a host on which the ``living`` ones run."""
    return Process(
        who="ann",
        host=host,
        pid=pid,
        started="boot+1",
        tool="reconciler 0",
        is_running=lambda other, _started: other == pid or other in living,
    )
