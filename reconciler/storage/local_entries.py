"""Entries of folders on a local disk, as the system describes them."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Sequence
from typing import Final

from reconciler.errors import StorageError
from reconciler.storage.api import StorageEntry
from reconciler.storage.paths import is_hidden, join_path
from reconciler.storage.statx import read_modes_and_sizes

_FORMAT: Final = 0o170000
_REGULAR: Final = 0o100000
_FOLDER: Final = 0o040000
#: a suffix that no hidden file has
_PLAIN: Final = ".parquet"
#: from so many entries on, asking for all at once is quicker
_MANY: Final = 16


def stat_files(handle: int, full: str) -> tuple[list[str], list[int], list[str]]:
    """Return names and sizes of the files in an open folder, and the names of its folders.

    Sorted names are looked up faster by the system, as most file systems keep files that were
    created together near each other.
    """
    listed = sorted(os.listdir(handle))
    shown = [name for name in listed if name.endswith(_PLAIN) or not is_hidden(name)]
    known = read_modes_and_sizes(handle, shown) if len(shown) >= _MANY else None
    names, found, sizes = (shown, *known) if known else _stat_each(handle, shown)
    below: list[str] = []
    if found and (found.count(found[0]) < len(found) or found[0] & _FORMAT != _REGULAR):
        names, sizes, below = _sort_out(full, names, found, sizes)
    if len(shown) < len(listed):
        below += _list_hidden_folders(handle)
    return names, sizes, below


def _stat_each(handle: int, names: Sequence[str]) -> tuple[list[str], list[int], list[int]]:
    """Return the names that are still there, and their modes and sizes."""
    there: list[str] = []
    found: list[int] = []
    sizes: list[int] = []
    for name in names:  # runs for every file of small partitions: keep it minimal
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed during the walk
        there.append(name)
        found.append(status.st_mode)
        sizes.append(status.st_size)
    return there, found, sizes


def _sort_out(
    full: str, names: Sequence[str], found: Sequence[int], sizes: Sequence[int]
) -> tuple[list[str], list[int], list[str]]:
    """Return names and sizes of files, and names of folders; StorageError for anything else."""
    files: list[tuple[str, int]] = []
    below: list[str] = []
    for name, mode, size in zip(names, found, sizes, strict=True):
        if (kind := mode & _FORMAT) not in (_REGULAR, _FOLDER):
            raise not_a_file_error(join_path(full, name), mode)
        if kind == _FOLDER:
            below.append(name)
        else:
            files.append((name, size))
    return [name for name, _ in files], [size for _, size in files], below


def _list_hidden_folders(handle: int) -> list[str]:
    """Return folders with names of hidden files. Looking again beats a stat per checksum file."""
    with os.scandir(handle) as items:
        return [i.name for i in items if is_hidden(i.name) and i.is_dir(follow_symlinks=False)]


def build_entry(name: str, full: str, status: os.stat_result) -> StorageEntry:
    is_folder = modes.S_ISDIR(status.st_mode)
    if not is_folder and not modes.S_ISREG(status.st_mode):
        raise not_a_file_error(full, status.st_mode)
    size = 0 if is_folder else status.st_size
    return StorageEntry(name, size, status.st_mtime_ns // 1_000_000, is_folder)


def not_a_file_error(full: str, mode: int) -> StorageError:
    if modes.S_ISLNK(mode):
        return StorageError(
            full,
            "is a symbolic link, which is not followed because it may leave the table; "
            "replace it with the real file or folder",
        )
    return StorageError(full, "is neither a file nor a folder")
