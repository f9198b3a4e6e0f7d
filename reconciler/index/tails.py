"""The ends of parquet files, each read once where possible.

A footer of Hudi's holds the file's bloom filter, some 440 kB by default; files of a table have
footers of much the same length, and the first ones tell how long.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FormatError
from reconciler.storage.api import Storage

_TAIL: Final = struct.Struct("<i4s")
_MAGIC: Final = b"PAR1"
#: what is read of a file's end before any footer's length is known, and beyond a known length
_FIRST: Final = 64 * 1024
_MARGIN: Final = 2 * 1024


@dataclass(slots=True)
class Tails:
    """Reads footers of files of one table, from several threads at once.

    ``length``: bytes at the end of a file that its footer is expected to fit in.
    """

    storage: Storage
    length: int = _FIRST

    def read(self, path: str, size: int) -> bytes:
        """The file's end from the footer's first byte on, what ``index_of`` takes.

        Raises FormatError where the file does not end as a parquet file, NotFoundError, and
        StorageError.
        """
        length = min(self.length, size)
        tail = self.storage.read_range(path, size - length, length)
        if len(tail) != length or length < _TAIL.size:
            raise damaged(path, "it is shorter than it was listed")
        footer, magic = _TAIL.unpack(tail[-_TAIL.size :])
        whole = footer + _TAIL.size
        if magic != _MAGIC or not 0 < footer <= size - _TAIL.size:
            raise damaged(path, "it does not end as a parquet file does")
        if whole > length:
            self.length = max(self.length, whole + _MARGIN)
            head = self.storage.read_range(path, size - whole, whole - length)
            tail = head + tail
        return tail[-whole:]


def damaged(path: str, problem: str) -> FormatError:
    """The error about a base file that cannot be what it claims to be."""
    return FormatError(path, problem, "restore the file from a copy")
