"""Folder trees in memory, because many tests unpack and copy the same tables."""

from __future__ import annotations

import calendar
import os
import struct
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: the id of Info-ZIP's extra field with the modification time in UTC
_TIMES = 0x5455
_HAS_MODIFIED = 1


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file; ``data``: None if only the size matters."""

    path: str
    data: bytes | None
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Tree:
    """The files and the folders below a folder, parents first; paths are relative."""

    folders: tuple[str, ...]
    files: tuple[TreeFile, ...]

    @classmethod
    def from_folder(cls, folder: Path | str) -> Tree:
        """Read a folder with modification times; data files without content, see ``unpack``."""
        folders, files = [], []
        for at, _, names in os.walk(folder):
            below = os.path.relpath(at, folder)
            folders.append(below)
            for name in names:
                full = os.path.join(at, name)
                status = os.stat(full)
                data = None if is_data(full) else Path(full).read_bytes()
                path = os.path.join(below, name)
                files.append(TreeFile(path, data, status.st_size, status.st_mtime_ns))
        return cls(tuple(folders), tuple(files))

    def write(self, folder: Path | str) -> None:
        """Write the tree into a folder, which may exist."""
        for path in self.folders:
            os.makedirs(os.path.join(folder, path), exist_ok=True)
        for file in self.files:
            handle = os.open(
                os.path.join(folder, file.path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644
            )
            try:
                if file.data is None:
                    os.truncate(handle, file.size)
                elif file.data:
                    os.write(handle, file.data)
                os.utime(handle, ns=(file.modified_ns, file.modified_ns))
            finally:
                os.close(handle)


def is_data(path: str) -> bool:
    """Return whether a path is a data file, which planning does not open."""
    return path.endswith(".parquet") and ".hoodie/" not in path


def unpack(archive: Path, folder: Path, *, hollow: bool = False) -> Path:
    """Unpack a zip into a folder and return the folder.

    Modification times are kept, because table version 6 depends on them. ``hollow``: data files
    get their size without content.
    """
    _read_archive(archive, hollow=hollow).write(folder)
    return folder


@lru_cache(maxsize=8)
def _read_archive(archive: Path, *, hollow: bool) -> Tree:
    folders, files = {""}, []
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if entry.is_dir():
                folders.add(entry.filename)
                continue
            folders.add(os.path.dirname(entry.filename))
            data = None if hollow and is_data(entry.filename) else opened.read(entry)
            modified_ns = _modified_seconds(entry) * 10**9
            files.append(TreeFile(entry.filename, data, entry.file_size, modified_ns))
    return Tree(tuple(sorted(folders)), tuple(files))


def _modified_seconds(entry: zipfile.ZipInfo) -> int:
    """Return the modification time in seconds.

    Without the extra field, a zip stores even seconds without a zone; UTC is assumed.
    """
    rest = entry.extra
    while len(rest) > 4:
        kind, length = struct.unpack_from("<HH", rest)
        if kind == _TIMES and rest[4] & _HAS_MODIFIED:
            return int(struct.unpack_from("<i", rest, 5)[0])
        rest = rest[4 + length :]
    return calendar.timegm((*entry.date_time, 0, 0, 0))
