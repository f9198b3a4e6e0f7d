"""Replace an object of a store only if nobody else has changed it, by the store's own condition.

S3 compares the ETag (``If-Match``). Other stores of fsspec are refused, except the memory of tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Final

from reconciler.errors import ChangedError, UnsupportedError
from reconciler.storage.api import VersionedFile
from reconciler.storage.paths import join_path, make_temporary_path

#: what stores answer if the object is not the expected one: changed, removed, or changing now
_CHANGED_CODES: Final = frozenset({"PreconditionFailed", "412", "NoSuchKey", "404"})
_CONFLICT_CODES: Final = frozenset({"ConditionalRequestConflict", "409"})
#: S3 asks to repeat a request that met another one at the same object
_CONFLICT_TRIES: Final = 5
#: the ETag of no object that was written whole
_NO_VERSION: Final = '"00000000000000000000000000000000"'
_MEMORY_GUARD: Final = threading.Lock()


def compute_version(data: bytes) -> str:
    """Return the version of a file in a store that has none of its own: a digest of its bytes."""
    return hashlib.sha256(data).hexdigest()


class VersionedObjects(ABC):
    """The part of a remote storage that reads and replaces versions of objects."""

    _fs: Any
    _family: str
    _replaces_versions = False

    @property
    @abstractmethod
    def location(self) -> str: ...
    @abstractmethod
    def read(self, path: str) -> bytes: ...
    @abstractmethod
    def _resolve(self, path: str) -> str: ...
    @abstractmethod
    def _translate_errors(self, path: str) -> AbstractContextManager[None]: ...

    def read_version(self, path: str) -> VersionedFile:
        if self._family != "s3":
            data = self.read(path)
            return VersionedFile(data, compute_version(data))
        with self._translate_errors(path):
            return _read_s3_object(self._fs, self._resolve(path))

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        full = join_path(self.location, path)
        if self._family not in ("s3", "memory"):
            raise UnsupportedError(
                f"{full}: only s3:// and local disks replace a file on the condition that it has "
                "not changed"
            )
        if self._family == "s3" and not self._replaces_versions:
            self._try_conditional_replace(path)
            self._replaces_versions = True
        with self._translate_errors(path):
            written = self._replace_object(path, data, version)
        if written is None:
            raise ChangedError(full, "was changed by another process")
        return written

    def _replace_object(self, path: str, data: bytes, version: str | None) -> str | None:
        replace = _replace_s3_object if self._family == "s3" else _replace_in_memory
        return replace(self._fs, self._resolve(path), data, version)

    def _try_conditional_replace(self, path: str) -> None:
        """Replace an object of another version next to ``path``; trust a store that refuses it."""
        probe = make_temporary_path(path)
        with self._translate_errors(probe):
            self._fs.pipe_file(self._resolve(probe), b"?")
            try:
                is_refused = self._replace_object(probe, b"!", _NO_VERSION) is None
            finally:
                with contextlib.suppress(Exception):
                    self._fs.rm_file(self._resolve(probe))
        if not is_refused:
            raise UnsupportedError(
                f"{join_path(self.location, path)}: the store replaces an object whose ETag is not "
                "the expected one (If-Match); use a store with conditional writes"
            )


def _read_s3_object(filesystem: Any, full: str) -> VersionedFile:
    """Return the bytes and the ETag of one object, from one request."""
    from fsspec.asyn import sync  # noqa: PLC0415 (heavy)

    bucket, key, _version = filesystem.split_path(full)

    async def read() -> VersionedFile:
        answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=key)  # noqa: SLF001
        async with answer["Body"] as body:
            return VersionedFile(await body.read(), answer["ETag"])

    found: VersionedFile = sync(filesystem.loop, read)
    return found


def _replace_s3_object(filesystem: Any, full: str, data: bytes, version: str | None) -> str | None:
    """Write an object if its ETag is ``version``, or if there is none for None.

    Returns the new ETag; None if the object is another one. Raises the client's errors.
    """
    bucket, key, _version = filesystem.split_path(full)
    condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
    for attempt in range(_CONFLICT_TRIES):
        try:
            answer = filesystem.call_s3(
                "put_object", Bucket=bucket, Key=key, Body=data, **condition
            )
        except OSError as error:
            code = _find_code(error)
            if code in _CHANGED_CODES or isinstance(error, FileNotFoundError | FileExistsError):
                return None
            if code in _CONFLICT_CODES and attempt + 1 < _CONFLICT_TRIES:
                continue
            raise
        return str(answer["ETag"])
    raise AssertionError("the last try returns or raises")


def _replace_in_memory(filesystem: Any, full: str, data: bytes, version: str | None) -> str | None:
    """Do the same for fsspec's file system in memory."""
    with _MEMORY_GUARD:
        try:
            current = compute_version(filesystem.cat_file(full))
        except FileNotFoundError:
            current = None
        if current != version:
            return None
        filesystem.pipe_file(full, data)
        return compute_version(data)


def _find_code(error: OSError) -> str | None:
    response = getattr(error.__cause__, "response", None)
    return response.get("Error", {}).get("Code") if isinstance(response, dict) else None
