"""A file read in ranges, for Parquet readers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from reconciler.errors import FormatError


class RangeSource(Protocol):
    """A source that reads ranges of files."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``start``."""


def open_range_file(source: RangeSource, path: str, size: int) -> Any:
    """Open a file of a known size for Arrow."""
    return pa.PythonFile(_RangeFile(source, path, size), mode="r")


def open_parquet(source: RangeSource, path: str, size: int, **options: Any) -> Any:
    """Open a Parquet file with Arrow; INT96 times are read in microseconds."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    file = open_range_file(source, path, size)
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us", **options)


@contextmanager
def reading_parquet(path: str) -> Iterator[None]:
    """Turn errors of Arrow inside the block into a FormatError naming ``path``.

    Arrow raises OSError for damaged pages, and UnicodeDecodeError for damaged names of columns.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        message = f"cannot be read as parquet: {' '.join(str(problem).split())}"
        raise FormatError(path, message, "the file is damaged; restore it from a copy") from None


class _RangeFile(io.RawIOBase):
    """A file whose every read is one range request; seeking reads nothing."""

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
        remaining = max(self._size - self._at, 0)
        wanted = remaining if size < 0 else min(size, remaining)
        data = self._source.read_range(self._path, self._at, wanted) if wanted else b""
        self._at += len(data)
        return data
