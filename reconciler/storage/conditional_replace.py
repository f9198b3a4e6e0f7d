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
from reconciler.storage.api import Storage, StorageRef, VersionedFile
from reconciler.storage.own_objects import find_own_version, make_token, make_token_options
from reconciler.storage.paths import join_path
from reconciler.storage.remote_errors import find_code
from reconciler.storage.request_budget import RequestPolicy
from reconciler.storage.s3_requests import repeat_broken_reads

#: what stores answer if the object is not the expected one: changed, removed, or changing now
_CHANGED_CODES: Final = frozenset({"PreconditionFailed", "412", "NoSuchKey", "404"})
#: the ETag of no object that was written whole
_NO_VERSION: Final = '"00000000000000000000000000000000"'
#: one name for all probes, so that the next one removes what a kill has left; listings omit it
_PROBE: Final = "probe.00000001-7265-636f-6e63-000000000000"
_MEMORY_GUARD: Final = threading.Lock()


def compute_version(data: bytes) -> str:
    """Return the version of a file in a store that has none of its own: a digest of its bytes."""
    return hashlib.sha256(data).hexdigest()


def replace_if_unchanged(storage: Storage, path: str, data: bytes, version: str | None) -> None:
    """Replace a file that still has a version, as ``replace_version``, where the store can do it.

    Another store replaces the file in any case. Raises ChangedError.
    """
    try:
        storage.replace_version(path, data, version)
    except UnsupportedError:
        storage.replace(path, data)


class VersionedObjects(ABC):
    """The part of a remote storage that reads and replaces versions of objects."""

    _fs: Any
    _ref: StorageRef
    _family: str
    _policy: RequestPolicy
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
            full = self._resolve(path)
            return repeat_broken_reads(lambda: _read_s3_object(self._fs, full), self._policy, path)

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
        full = self._resolve(path)
        if self._family != "s3":
            return _replace_in_memory(self._fs, full, data, version)
        token = make_token(self._ref.writer) if self._ref.writer else ""
        return _replace_s3_object(self._fs, full, data, version, token)

    def _try_conditional_replace(self, path: str) -> None:
        """Replace an object of another version, a probe; trust a store that refuses it.

        Other processes that use the same probe change nothing about the answer.
        """
        with self._translate_errors(_PROBE):
            self._fs.pipe_file(self._resolve(_PROBE), b"?")
            try:
                is_refused = self._replace_object(_PROBE, b"!", _NO_VERSION) is None
            finally:
                with contextlib.suppress(Exception):
                    self._fs.rm_file(self._resolve(_PROBE))
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


def _replace_s3_object(
    filesystem: Any, full: str, data: bytes, version: str | None, token: str
) -> str | None:
    """Write an object if its ETag is ``version``, or if there is none for None.

    Returns the new ETag; None if the object is another one. ``token``: tells a replacement whose
    answer was lost from that of another writer. Raises the client's errors.
    """
    bucket, key, _version = filesystem.split_path(full)
    condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
    marks = make_token_options("s3", token) if token else {}
    try:
        answer = filesystem.call_s3(
            "put_object", Bucket=bucket, Key=key, Body=data, **condition, **marks
        )
    except OSError as error:
        is_other = isinstance(error, FileNotFoundError | FileExistsError)
        if not is_other and find_code(error) not in _CHANGED_CODES:
            raise
    else:
        return str(answer["ETag"])
    try:
        return find_own_version(filesystem, full, token) if token else None
    except (FileNotFoundError, PermissionError):
        return None


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
