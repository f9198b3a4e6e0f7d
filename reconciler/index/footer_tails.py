"""Read the ends of Parquet files, each with one request if possible.

A Hudi footer holds the file's bloom filter, some 440 kB by default. The footers of one table have
similar lengths, so the first ones show how many bytes to read and where the filter lies.
"""

from __future__ import annotations

import struct
from typing import Final

from reconciler.errors import FormatError
from reconciler.index.slim_footers import FooterEnds, FooterSlimmer, SlimFooter
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage

_TAIL: Final = struct.Struct("<i4s")
_MAGIC: Final = b"PAR1"
#: bytes read from the end of the first file, and bytes read beyond the longest footer so far
_FIRST_READ: Final = 64 * 1024
_MARGIN: Final = 2 * 1024
#: saving this many bytes is worth another system call
_WORTH_A_CALL: Final = 64 * 1024


@dataclass(slots=True)
class FooterTails:
    """Reads the footers of one table's files; safe to use from several threads.

    ``length``: the number of bytes in which the next footer is expected to fit.
    """

    storage: Storage
    length: int = _FIRST_READ

    def read(self, path: str, size: int) -> bytes:
        """Return the end of a file from the footer's first byte on, as ``index_footers`` takes it.

        Raises FormatError if the file does not end like a Parquet file, NotFoundError and
        StorageError.
        """
        length = min(self.length, size)
        tail = self.storage.read_range(path, size - length, length)
        if len(tail) != length:
            raise damaged_file_error(path, "it is shorter than its listed size")
        if size < _TAIL.size:
            problem = f"it has only {size} bytes, too few for a Parquet file"
            raise damaged_file_error(path, problem if size else "it is empty")
        whole = _footer_length(tail, size)
        if not whole:
            raise damaged_file_error(path, "it does not end like a Parquet file")
        if whole > length:
            self.length = max(self.length, whole + _MARGIN)
            head = self.storage.read_range(path, size - whole, whole - length)
            tail = head + tail
        return tail[-whole:]


@dataclass(slots=True)
class SlimFooterTails:
    """Reads the footers of one table without their bloom filters; safe for several threads.

    ``head_bytes``, ``tail_bytes``: lengths at the start of the footer and at the end of the file; a
    long value, such as a bloom filter, is expected between them. 0 until one was met.
    """

    tails: FooterTails
    slimmer: FooterSlimmer
    head_bytes: int = 0
    tail_bytes: int = 0

    def read(self, path: str, size: int) -> SlimFooter | memoryview:
        """Return the footer in parts; in another form, the end of the file like ``FooterTails``.

        Raises the same errors as ``FooterTails.read``.
        """
        ends = self._read_ends(path, size) if self.head_bytes else None
        if ends is not None:
            return ends
        tail = self.tails.read(path, size)
        cut = self.slimmer.slim(tail)
        if cut is None:
            return memoryview(tail)
        # On a local disk a read is a system call, and two short ones cost less than a long one.
        # Over a network each is a round trip, which takes as long as half a megabyte.
        is_near = "://" not in self.tails.storage.location
        if is_near and len(tail) - cut.head_bytes - cut.tail_bytes > _WORTH_A_CALL:
            self.head_bytes = max(self.head_bytes, cut.head_bytes + _MARGIN)
            self.tail_bytes = max(self.tail_bytes, cut.tail_bytes + _MARGIN)
        return cut

    def _read_ends(self, path: str, size: int) -> SlimFooter | None:
        """Return the footer read by its two ends; None if that does not suffice."""
        storage, first, last = self.tails.storage, self.head_bytes, self.tail_bytes
        tail = storage.read_range(path, max(0, size - last), last)
        whole = _footer_length(tail, size)
        gap = whole - first - last
        if len(tail) != last or gap <= 0:
            return None
        head = storage.read_range(path, size - whole, first)
        is_read = len(head) == first
        return self.slimmer.slim(FooterEnds(first=head, last=tail, gap=gap)) if is_read else None


def _footer_length(tail: bytes, size: int) -> int:
    """Return the bytes from the footer to the end of the file; 0 if it is not a Parquet file."""
    if len(tail) < _TAIL.size:
        return 0
    footer, magic = _TAIL.unpack(tail[-_TAIL.size :])
    is_footer = magic == _MAGIC and 0 < footer <= size - _TAIL.size
    return footer + _TAIL.size if is_footer else 0


def damaged_file_error(path: str, problem: str) -> FormatError:
    """Return the error for a damaged base file."""
    return FormatError(path, problem, "restore the file from a copy")
