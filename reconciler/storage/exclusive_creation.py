"""Create objects of a store on the condition that there is none, whole or not at all.

The condition is the store's own (If-None-Match and its kin), also for uploads in parts. A store
must have refused a probe before it is trusted; references to the storage remember that it did.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from reconciler.errors import (
    AlreadyExistsError,
    PermissionDeniedError,
    ReconcilerError,
    StorageError,
    UnreachableError,
    UnsupportedError,
)
from reconciler.storage.api import StorageEntry, StorageRef
from reconciler.storage.own_objects import has_token, make_token, make_token_options
from reconciler.storage.paths import is_hidden, join_path, make_temporary_path
from reconciler.storage.remote_errors import refuse_taken

_MAX_WHOLE_READ: Final = 64 * 1024 * 1024  # most bytes of a local file in one request
_UPLOAD_OPTIONS: Final[Mapping[str, Mapping[str, int]]] = {
    "s3": {"chunksize": 16 * 1024 * 1024, "max_concurrency": 4},
    "gs": {"chunksize": 32 * 1024 * 1024},
}
#: one name for all probes, so that the next one removes what a kill has left; listings omit it
_PROBE_NAME: Final = "probe"
_PROBE: Final = f"{_PROBE_NAME}.00000000-7265-636f-6e63-000000000000"
#: how often a probe that no other process knows is tried: another one may remove it as left behind
_OWN_PROBES: Final = 3
_OVERWROTE: Final = "it overwrote an existing object despite the condition"


class ExclusiveObjects(ABC):
    """The part of a remote storage that creates objects."""

    _fs: Any
    _ref: StorageRef
    _family: str
    _client_package: str
    _creates_exclusively: bool

    @property
    @abstractmethod
    def location(self) -> str: ...
    @abstractmethod
    def stat(self, path: str) -> StorageEntry | None: ...
    @abstractmethod
    def _resolve(self, path: str) -> str: ...
    @abstractmethod
    def _require_writes(self, path: str) -> None: ...
    @abstractmethod
    def _translate_errors(self, path: str) -> AbstractContextManager[None]: ...
    @abstractmethod
    def _list_children(self, full: str) -> list[dict[str, Any]]: ...

    def create(self, path: str, data: bytes) -> None:
        self._require_creation(path)
        with self._translate_errors(path):
            self._create_object(self._resolve(path), data)

    def create_from(self, path: str, file: str) -> None:
        limit = math.inf if self._family == "memory" else _MAX_WHOLE_READ
        try:
            with open(file, "rb") as source:  # noqa: PTH123
                is_whole = os.fstat(source.fileno()).st_size <= limit
                data = source.read() if is_whole else None
        except OSError as error:
            raise StorageError(file, error.strerror or str(error)) from None
        if data is not None:
            self.create(path, data)
            return
        self._require_creation(path)
        if self.stat(path) is not None:  # before the upload: the store says so only at its end
            raise AlreadyExistsError(join_path(self.location, path), "already exists")
        with self._translate_errors(path):
            self._create_in_parts(self._resolve(path), file)

    def _require_creation(self, path: str) -> None:
        self._require_writes(path)
        if not self._creates_exclusively:
            self._try_exclusive_creation(path)
            self._creates_exclusively = True

    def _create_object(self, full: str, data: bytes) -> None:
        with self._accept_own_object(full) as options:
            self._fs.pipe_file(full, data, mode="create", **options)

    def _create_in_parts(self, full: str, file: str) -> None:
        """Upload a file in parts; the object appears, on its condition, with the last of them."""
        parts = _UPLOAD_OPTIONS.get(self._family, {})
        with self._accept_own_object(full) as options:
            self._fs.put_file(file, full, mode="create", **parts, **options)
        if self._family == "gs":  # a server may append a part that it gets twice
            self._fs.invalidate_cache()
            stored = int(self._fs.info(full)["size"])
            if stored != os.stat(file).st_size:  # noqa: PTH116
                raise StorageError(full, f"the store holds {stored} bytes, not those of the file")

    @contextlib.contextmanager
    def _accept_own_object(self, full: str) -> Iterator[dict[str, Any]]:
        """Give the options of a creation, and take a refusal for success if the object is its own.

        An upload in parts is gone (FileNotFoundError) when its end is asked for a second time.
        """
        token = make_token(self._ref.writer) if self._ref.writer else ""
        try:
            with refuse_taken(full):
                yield make_token_options(self._family, token) if token else {}
        except (FileExistsError, FileNotFoundError):
            if not token or not has_token(self._fs, self._family, full, token):
                raise

    def _try_exclusive_creation(self, path: str) -> None:
        """Raise UnsupportedError unless the store refuses to create a probe twice.

        Old clients and some S3-compatible stores ignore the condition and overwrite. If the probe
        was not refused, another process may have removed it in between: one more, with a name of
        this process alone, decides.
        """
        try:
            problem = self._find_creation_problem(_PROBE)
            if problem == _OVERWROTE:
                problem = self._try_own_probes()
        finally:
            self._remove_quietly(_PROBE)
        if problem is not None:
            raise UnsupportedError(
                f"{join_path(self.location, path)}: the store or its client cannot create a file "
                f"exclusively ({problem}); upgrade {self._client_package} or use a store with "
                "conditional writes"
            )

    def _try_own_probes(self) -> str | None:
        """Try probes of this process alone; the shared one stays meanwhile.

        A kill thus leaves the shared one too, by which the next run knows that it has to look.
        """
        self._remove_own_probes()
        problem: str | None = _OVERWROTE
        for _ in range(_OWN_PROBES):
            probe = make_temporary_path(_PROBE_NAME)
            try:
                problem = self._find_creation_problem(probe)
            finally:
                self._remove_quietly(probe)
            if problem != _OVERWROTE:
                break
        return problem

    def _find_creation_problem(self, probe: str) -> str | None:
        """Return why the store cannot be trusted; None if it refuses to create an object twice."""
        full = self._resolve(probe)
        try:
            with self._translate_errors(probe):
                try:
                    self._create_object(full, b"?")
                except FileExistsError:  # left behind by a kill, or of another process
                    self._remove_own_probes()
                    return None
                self._create_object(full, b"?")
        except AlreadyExistsError:
            return None
        except TypeError as error:
            return str(error)
        except ReconcilerError as error:
            if isinstance(error, PermissionDeniedError | UnreachableError):
                raise
            return str(error)
        return _OVERWROTE

    def _remove_own_probes(self) -> None:
        """Remove the probes of single processes that kills have left."""
        with contextlib.suppress(Exception):
            for child in self._list_children(self._resolve("")):
                name = str(child["name"]).rstrip("/").rpartition("/")[2]
                if name.startswith(f"{_PROBE_NAME}.") and is_hidden(name) and name != _PROBE:
                    self._remove_quietly(name)

    def _remove_quietly(self, probe: str) -> None:
        with contextlib.suppress(Exception):
            self._fs.rm_file(self._resolve(probe))
