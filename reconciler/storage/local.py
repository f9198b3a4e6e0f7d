"""A folder on a local or mounted disk.

``create`` writes a temporary file, syncs it and hard-links it to its name. The link fails if the
name exists, and nobody sees a partial file. A ``.crc`` file is removed before its file changes,
because Hadoop refuses a file with a wrong ``.crc`` and accepts one without.
"""
# os functions are used directly, because their order and errors matter here:
# ruff: noqa: PTH101, PTH102, PTH105, PTH106, PTH108, PTH112, PTH114, PTH120, PTH123, PTH208

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import stat as modes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final

from reconciler.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    PermissionDeniedError,
    StorageError,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import (
    DeletionResult,
    FolderListing,
    StorageEntry,
    StorageRef,
    VersionedFile,
)
from reconciler.storage.conditional_replace import compute_version
from reconciler.storage.folder_locks import lock_folder
from reconciler.storage.local_entries import build_entry, not_a_file_error, stat_files
from reconciler.storage.paths import (
    check_path,
    checksum_file,
    is_hidden,
    join_path,
    make_temporary_path,
    walk_folders,
)

_CHUNK_BYTES: Final = 1 << 20
_NO_LINKS: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EMLINK})

_WriteContent = Callable[[BinaryIO], Any]


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """The files below ``location``, an absolute path."""

    location: str

    @property
    def ref(self) -> StorageRef:
        return StorageRef(self.location)

    def list(self, folder: str) -> builtins.list[StorageEntry]:
        full = self._resolve(folder)
        with _translate_errors(full):
            entries: list[StorageEntry] = []
            with os.scandir(full) as items:
                for item in items:
                    if is_hidden(name := item.name):
                        continue
                    try:
                        status = item.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted since the listing
                    entries.append(build_entry(name, item.path, status))
        return sorted(entries, key=lambda entry: entry.name)

    def walk(self, descend: Callable[[str], bool]) -> Iterator[FolderListing]:
        return walk_folders(self.scan_folder, descend)

    def scan_folder(self, path: str) -> tuple[FolderListing, Sequence[str]]:
        """Return the files of one folder, and the paths of the folders in it."""
        full = join_path(self.location, path)
        with _translate_errors(full), _open_folder(full) as handle:
            names, sizes, below = stat_files(handle, full)
        prefix = f"{path}/" if path else ""
        return FolderListing(path, names, sizes), [prefix + name for name in below]

    def stat_folder(self, path: str) -> os.stat_result:
        """Return what the system says of a folder of a walk; only the root may be a link to one."""
        full = join_path(self.location, path)
        try:
            return os.lstat(full) if path else os.stat(full)  # noqa: PTH116
        except OSError:  # only now, because a plan asks for ten thousand folders
            with _translate_errors(full):
                raise

    def read(self, path: str) -> bytes:
        full = self._resolve(path)
        with _translate_errors(full), open(full, "rb", opener=_open_file) as file:
            return file.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        full = self._resolve(path)
        with _translate_errors(full), open(full, "rb", buffering=0, opener=_open_file) as file:
            if start < 0:
                start = max(0, os.fstat(file.fileno()).st_size + start)
            return _read_at(file.fileno(), start, length)

    def stat(self, path: str) -> StorageEntry | None:
        full = self._resolve(path)
        try:
            with _translate_errors(full):
                return build_entry(path.rpartition("/")[2], full, os.lstat(full))
        except NotFoundError:
            return None

    def create(self, path: str, data: bytes) -> None:
        self._create_file(path, (lambda file: file.write(data)) if data else None)

    def create_from(self, path: str, file: str) -> None:
        self._create_file(path, lambda target: _copy_file(file, target))

    def _create_file(self, path: str, fill: _WriteContent | None) -> None:
        """Create a file; ``fill`` writes its content, None for an empty file."""
        full = self._resolve(path)
        with _translate_errors(full):
            self._make_folder(os.path.dirname(full))
            if os.path.lexists(full):
                raise AlreadyExistsError(full, "already exists")
            _remove_side_file(full)
            if fill:
                _publish(full, fill)
            else:
                os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            _sync_folder(os.path.dirname(full))

    def replace(self, path: str, data: bytes) -> None:
        self.replace_by(path, lambda file: file.write(data))

    def replace_by(self, path: str, fill: _WriteContent) -> None:
        """Like ``replace``, with the bytes that ``fill`` writes to a new file."""
        full = self._resolve(path)
        with _translate_errors(full):
            self._make_folder(os.path.dirname(full))
            written = _write_temporary(full, fill)
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(written, modes.S_IMODE(os.lstat(full).st_mode))
                _remove_side_file(full)
                os.replace(written, full)
            except BaseException:
                os.unlink(written)
                raise
            _sync_folder(os.path.dirname(full))

    def read_version(self, path: str) -> VersionedFile:
        return VersionedFile(data := self.read(path), compute_version(data))

    def replace_version(self, path: str, data: bytes, version: str | None) -> str:
        full = self._resolve(path)
        with _translate_errors(full):
            self._make_folder(os.path.dirname(full))
            with _open_folder(os.path.dirname(full)) as handle:
                lock_folder(handle, full)
                if version != (self.read_version(path).version if self.stat(path) else None):
                    raise ChangedError(full, "was changed by another process")
                self.replace(path, data)
        return compute_version(data)

    def delete(self, path: str) -> bool:
        full = self._resolve(path)
        with _translate_errors(full):
            existed = _remove_file(full)
            if existed:
                _sync_folder(os.path.dirname(full))
        return existed

    def delete_many(self, paths: Sequence[str]) -> builtins.list[DeletionResult]:
        inside: dict[str, str | None] = {}
        return [self._delete_one(path, inside) for path in paths]

    def _delete_one(self, path: str, inside: dict[str, str | None]) -> DeletionResult:
        """Delete one of many; ``inside`` caches the problem of each parent folder."""
        parent, slash, name = path.rpartition("/")
        try:
            if parent not in inside:
                inside[parent] = self._check_parent(parent)
            if (problem := inside[parent]) is not None:
                return DeletionResult(path, existed=False, error=problem)
            check_path(name)
            full = f"{self.location}/{parent}{slash}{name}"
            with _translate_errors(full):
                return DeletionResult(path, existed=_remove_file(full))
        except StorageError as error:
            return DeletionResult(path, existed=False, error=str(error))

    def _check_parent(self, parent: str) -> str | None:
        try:
            self._resolve(f"{parent}/x" if parent else "x")
        except StorageError as error:
            return str(error)
        return None

    def remove_folder(self, path: str) -> bool:
        full = self._resolve(path)
        if not path:
            raise StorageError(full, "is the table's own folder, which is never removed")
        with _translate_errors(full):
            return _remove_empty(full) or _remove_orphans(full)

    def _resolve(self, path: str) -> str:
        """Return the absolute path; raises StorageError for a symbolic link on the way."""
        full = join_path(self.location, check_path(path))
        parent = path.rpartition("/")[0]
        at = self.location  # the location itself may contain links; the user named it
        for name in parent.split("/") if parent else ():
            at = join_path(at, name)
            if os.path.islink(at):
                raise StorageError(
                    join_path(self.location, parent),
                    "is behind a symbolic link, which is not followed; "
                    "make it a real folder or mount it there",
                )
        return full

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        self._make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        _sync_folder(os.path.dirname(folder))


def _copy_file(file: str, target: BinaryIO) -> None:
    """Copy a file. A read error names the source; a write error is left to the caller."""
    with _translate_errors(file):
        source = open(file, "rb")  # noqa: SIM115 (closed below)
    with source:
        while True:
            with _translate_errors(file):
                piece = source.read(_CHUNK_BYTES)
            if not piece:
                return
            target.write(piece)


def _publish(full: str, fill: _WriteContent) -> None:
    """Write bytes to a name that must be free; FileExistsError when it is taken."""
    written = _write_temporary(full, fill)
    try:
        os.link(written, full)
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise StorageError(
                full,
                f"the file system has no hard links ({os.strerror(error.errno or 0)}), which are "
                "needed to create a file atomically; use another file system",
            ) from None
        raise
    finally:
        os.unlink(written)


def _write_temporary(full: str, fill: _WriteContent) -> str:
    """Write and sync a temporary file next to ``full``; return its name."""
    while True:
        name = make_temporary_path(full)
        try:
            handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            continue  # left by another machine or an earlier crash
        break
    try:
        with open(handle, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(name)
        raise
    return name


def _remove_file(full: str) -> bool:
    _remove_side_file(full)
    try:
        os.unlink(full)
    except FileNotFoundError:
        return False
    return True


def _remove_side_file(full: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(checksum_file(full))


def _remove_orphans(folder: str) -> bool:
    """Remove a folder that holds only checksum files whose files are missing."""
    names = set(os.listdir(folder))
    if any(not _is_orphan(name, names) for name in names):
        return False
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/{name}")
    return _remove_empty(folder)


def _remove_empty(folder: str) -> bool:
    """Remove a folder that is empty or missing; return False if it has entries."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _is_orphan(name: str, names: set[str]) -> bool:
    return name.startswith(".") and name.endswith(".crc") and name[1:-4] not in names


def _sync_folder(folder: str) -> None:
    with _open_folder(folder) as handle:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some mounts cannot sync a folder
                raise


@contextlib.contextmanager
def _open_folder(folder: str) -> Iterator[int]:
    """Open a folder, so that its files are looked up in it and not from the root."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _read_at(handle: int, start: int, length: int) -> bytes:
    """Return at most ``length`` bytes; fewer only at the end of the file."""
    data = os.pread(handle, length, start)
    while data and len(data) < length:
        more = os.pread(handle, length - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def _open_file(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextlib.contextmanager
def _translate_errors(full: str) -> Iterator[None]:
    """Turn the system's errors into this package's, which name the path."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(full, "does not exist") from None
    except FileExistsError:
        raise AlreadyExistsError(full, "already exists") from None
    except PermissionError as error:
        problem = f"{error.strerror or error}; give this user access to it and the folders above"
        raise PermissionDeniedError(full, problem) from None
    except NotADirectoryError as error:
        problem = f"{error.strerror}; its path leads through a file, correct the path"
        raise StorageError(full, problem) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise not_a_file_error(full, modes.S_IFLNK) from None
        raise StorageError(full, error.strerror or str(error)) from None
