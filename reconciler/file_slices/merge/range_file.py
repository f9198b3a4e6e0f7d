"""A file that is read in ranges, as parquet readers want one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from reconciler.errors import FormatError


class RangeSource(Protocol):
    """Where ranges of files are read."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``."""


def open_range_file(source: RangeSource, path: str, size: int) -> Any:
    """The file of a known size, for Arrow."""
    return pa.PythonFile(_RangeFile(source, path, size), mode="r")


@contextmanager
def reading_parquet(path: str) -> Iterator[None]:
    """What Arrow cannot make sense of inside the block becomes a FormatError naming ``path``."""
    try:
        yield
    except (pa.ArrowException, OSError) as problem:  # damaged pages are an OSError of Arrow's
        raise FormatError(
            path,
            f"cannot be read as parquet: {' '.join(str(problem).split())}",
            "the file is damaged; restore it from a copy",
        ) from None


class _RangeFile(io.RawIOBase):
    """Seeks for nothing; every read is one range."""

    def __init__(self, source: RangeSource, path: str, size: int) -> None:
        super().__init__()
        self._source, self._path, self._size, self._at = source, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = (0, self._at, self._size)[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        data = self._source.read_range(self._path, self._at, wanted) if wanted else b""
        self._at += len(data)
        return data
