"""Check paths below a table's root, and recognise names that are not part of a table.

Hadoop's checksummed local file system writes ``.NAME.crc`` next to every NAME. Hudi and this tool
publish a file by writing ``NAME.<uuid>`` first. Neither is part of a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final

from reconciler.errors import NotFoundError, StorageError
from reconciler.storage.api import FolderListing, Storage, StorageEntry

_TEMPORARY: Final = re.compile(
    r".+\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.DOTALL
)
_UUID_LENGTH: Final = 36
_counter: Iterator[int] = count()


def check_path(path: str) -> str:
    """Return the path if it is inside the root; StorageError otherwise.

    >>> check_path("p=1/file.parquet")
    'p=1/file.parquet'
    """
    if (
        path.startswith("/")
        or "\0" in path
        or (path and not all(_is_name(p) for p in path.split("/")))
    ):
        raise StorageError(path, "is not a path below the table's folder")
    return path


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..")


def is_hidden(name: str) -> bool:
    """Return whether a name is a checksum file or a temporary file, which listings omit.

    >>> is_hidden(".f.parquet.crc"), is_hidden("f.parquet"), is_hidden(".hoodie")
    (True, False, False)
    >>> is_hidden("1.clean.00000001-7265-636f-6e63-000000000000")
    True
    """
    if name.startswith("."):
        if name.endswith(".crc"):
            return True
    elif name.endswith("_$folder$"):
        return True  # the folder markers of older Hadoop connectors on object stores
    return (
        len(name) > _UUID_LENGTH + 1
        and name[-_UUID_LENGTH - 1] == "."
        and _TEMPORARY.fullmatch(name) is not None
    )


def checksum_file(path: str) -> str:
    """Return the checksum file of a path.

    >>> checksum_file("a/b.parquet"), checksum_file("b")
    ('a/.b.parquet.crc', '.b.crc')
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def make_temporary_path(path: str) -> str:
    """Return a new temporary path next to ``path``, in the form Hudi uses.

    It is unique within the process. Its middle spells "reconc" in hex, which shows that
    this program made it. A caller that finds it taken, by another machine or an earlier crash,
    calls again.
    """
    return f"{path}.{os.getpid() & 0xFFFFFFFF:08x}-7265-636f-6e63-{next(_counter):012x}"


def list_if_exists(storage: Storage, folder: str) -> list[StorageEntry]:
    """Return the entries of a folder, none if it does not exist."""
    try:
        return storage.list(folder)
    except NotFoundError:
        return []


def list_files_below(storage: Storage, root: str, folder: str = "") -> Iterator[tuple[str, str]]:
    """Yield the folder, relative to the root, and the name of every file below a root."""
    for entry in list_if_exists(storage, f"{root}/{folder}" if folder else root):
        if entry.is_folder:
            inner = f"{folder}/{entry.name}" if folder else entry.name
            yield from list_files_below(storage, root, inner)
        else:
            yield folder, entry.name


def walk_folders(
    scan: Callable[[str], tuple[FolderListing, Iterable[str]]], descend: Callable[[str], bool]
) -> Iterator[FolderListing]:
    """Walk as ``Storage.walk`` does; ``scan`` returns a folder's listing and the folders in it."""
    waiting = [""]
    while waiting:
        path = waiting.pop()
        try:
            folder, below = scan(path)
        except NotFoundError:
            if not path:
                raise
            continue  # removed during the walk
        yield folder
        waiting += (child for child in below if descend(child))


def join_path(root: str, path: str) -> str:
    """Return the full name of a path below the root, for messages and for the store.

    >>> join_path("/t", "a"), join_path("/t", "")
    ('/t/a', '/t')
    """
    return f"{root.rstrip('/')}/{path}" if path else root
