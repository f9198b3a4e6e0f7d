"""Names below a table's root: which are allowed, and which are nobody's business.

Hadoop's checksummed local file system writes ``.NAME.crc`` beside every NAME; a publisher writes
``NAME.<uuid>`` before the name itself appears (Hudi does, and so do we). Neither is part of a
table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import count
from typing import Final

from reconciler.errors import StorageError

_TEMPORARY: Final = re.compile(
    r".+\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.DOTALL
)
_UUID_LENGTH: Final = 36
_counter: Iterator[int] = count()


def check_path(path: str) -> str:
    """The path itself, if it can only name something below the root; StorageError otherwise.

    >>> checked("p=1/file.parquet")
    'p=1/file.parquet'
    """
    if (
        path.startswith("/")
        or "\0" in path
        or (path and not all(_is_name(p) for p in path.split("/")))
    ):
        raise StorageError(path, "is not a path below the table's folder, so it is not touched")
    return path


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..")


def is_hidden(name: str) -> bool:
    """Side files and half-published files, which no listing shows.

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
    """The checksum file that belongs to a path.

    >>> side_file("a/b.parquet"), side_file("b")
    ('a/.b.parquet.crc', '.b.crc')
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def make_temporary_path(path: str) -> str:
    """A name beside the path to write to before publishing, in the form Hudi uses.

    Unique within the process; its middle spells "reconc", so that people can tell whose it is. Who
    finds it taken (another machine, an earlier crash) asks again.
    """
    return f"{path}.{os.getpid() & 0xFFFFFFFF:08x}-7265-636f-6e63-{next(_counter):012x}"


def join_path(root: str, path: str) -> str:
    """The full name of a path below the root, for messages and for the store.

    >>> join("/t", "a"), join("/t", "")
    ('/t/a', '/t')
    """
    return f"{root.rstrip('/')}/{path}" if path else root
