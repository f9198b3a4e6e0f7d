"""The ends of parquet files, each read once where possible.

A footer of Hudi's holds the file's bloom filter, some 440 kB by default; files of a table have
footers of much the same length, and the first ones tell how long, and where the filter is in it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FormatError
from reconciler.index.slim_footers import FooterEnds, FooterSlimmer, SlimFooter
from reconciler.storage.api import Storage

_TAIL: Final = struct.Struct("<i4s")
_MAGIC: Final = b"PAR1"
#: what is read of a file's end before any footer's length is known, and beyond a known length
_FIRST_READ: Final = 64 * 1024
_MARGIN: Final = 2 * 1024
#: bytes that are worth another call of the system
_WORTH_A_CALL: Final = 64 * 1024


@dataclass(slots=True)
class FooterTails:
    """Reads footers of files of one table, from several threads at once.

    ``length``: bytes at the end of a file that its footer is expected to fit in.
    """

    storage: Storage
    length: int = _FIRST_READ

    def read(self, path: str, size: int) -> bytes:
        """The file's end from the footer's first byte on, what ``index_of`` takes.

        Raises FormatError where the file does not end as a parquet file, NotFoundError, and
        StorageError.
        """
        length = min(self.length, size)
        tail = self.storage.read_range(path, size - length, length)
        if len(tail) != length:
            raise damaged_file_error(path, "it is shorter than it was listed")
        if size < _TAIL.size:
            said = f"it has {size} bytes, which are too few for a parquet file"
            raise damaged_file_error(path, said if size else "it is empty")
        whole = _footer_length(tail, size)
        if not whole:
            raise damaged_file_error(path, "it does not end as a parquet file does")
        if whole > length:
            self.length = max(self.length, whole + _MARGIN)
            head = self.storage.read_range(path, size - whole, whole - length)
            tail = head + tail
        return tail[-whole:]


@dataclass(slots=True)
class SlimFooterTails:
    """Reads footers of one table without what no index needs, from several threads at once.

    ``head_bytes``, ``tail_bytes``: bytes at a footer's beginning and at the file's end that a long value, such
    as a bloom filter, is expected to lie between; 0 where none was met.
    """

    tails: FooterTails
    slimmer: FooterSlimmer
    head_bytes: int = 0
    tail_bytes: int = 0

    def read(self, path: str, size: int) -> SlimFooter | memoryview:
        """The footer cut apart; of one that cannot be, the file's end as ``FooterTails`` reads it.

        Raises as ``FooterTails.read``.
        """
        found = self._read_ends(path, size) if self.head_bytes else None
        if found is not None:
            return found
        tail = self.tails.read(path, size)
        cut = self.slimmer.slim(tail)
        if cut is None:
            return memoryview(tail)
        # Two short reads cost less than a long one where a read is a call of the system. Over a
        # network each is a round trip, which takes as long as half a megabyte does.
        is_near = "://" not in self.tails.storage.location
        if is_near and len(tail) - cut.head_bytes - cut.tail_bytes > _WORTH_A_CALL:
            self.head_bytes = max(self.head_bytes, cut.head_bytes + _MARGIN)
            self.tail_bytes = max(self.tail_bytes, cut.tail_bytes + _MARGIN)
        return cut

    def _read_ends(self, path: str, size: int) -> SlimFooter | None:
        """The footer by its ends; None where these do not do, for whatever reason."""
        storage, first, last = self.tails.storage, self.head_bytes, self.tail_bytes
        tail = storage.read_range(path, max(0, size - last), last)
        whole = _footer_length(tail, size)
        gap = whole - first - last
        if len(tail) != last or gap <= 0:
            return None
        head = storage.read_range(path, size - whole, first)
        return (
            self.slimmer.slim(FooterEnds(first=head, last=tail, gap=gap))
            if len(head) == first
            else None
        )


def _footer_length(tail: bytes, size: int) -> int:
    """How long a file's end is from the footer on; 0 where it does not end as a parquet file."""
    if len(tail) < _TAIL.size:
        return 0
    footer, magic = _TAIL.unpack(tail[-_TAIL.size :])
    is_footer = magic == _MAGIC and 0 < footer <= size - _TAIL.size
    return footer + _TAIL.size if is_footer else 0


def damaged_file_error(path: str, problem: str) -> FormatError:
    """The error about a base file that cannot be what it claims to be."""
    return FormatError(path, problem, "restore the file from a copy")
