"""Pieces of bytes on their way from task to task, in files of one disk that all of them see.

An attempt at a task writes one file, whole and of a name of its own. What reads it maps it into
memory: the pieces are not copied, and their pages are the system's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa

from reconciler.errors import ReconcilerError

#: bytes that go to a file together where pieces are small
_BUFFER: Final = 256 * 1024
#: pieces begin at multiples of it: Arrow's vectors are aligned so
_ALIGNED: Final = 64
#: whole numbers that the index of a file has of each piece: place, offset, bytes
_NUMBERS: Final = 3


class Piece(Protocol):
    """Something that can be sent."""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write it to a file of Arrow's; ``compressed``: it goes through a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file of ``count`` pieces for places ``first`` to ``last``; ``at``: where its index is."""

    path: str
    at: int
    count: int
    first: int
    last: int


class Shelf:
    """One new file of a folder; without ``kept`` it is gone after the block.

    Raises ReconcilerError, naming the folder, when the disk does not take it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._index: list[tuple[int, int, int]] = []
        self._path = ""
        self._sink: Any = None
        self._kept = False

    def __enter__(self) -> Self:
        try:
            handle, self._path = tempfile.mkstemp(dir=self._folder)
            os.close(handle)
            self._sink = pa.BufferedOutputStream(pa.OSFile(self._path, "wb"), _BUFFER)
        except OSError as error:
            raise self._refused(error) from None
        return self

    def put(self, place: int, piece: Piece) -> None:
        """``place``: who is to get it, from 0 on; in the order in which they are put."""
        try:
            start = self._sink.tell()
            piece.write(self._sink, compressed=False)
            length = self._sink.tell() - start
            self._sink.write(bytes(-length % _ALIGNED))
        except OSError as error:
            raise self._refused(error) from None
        self._index.append((place, start, length))

    def kept(self) -> Kept:
        """The file, complete: it stays."""
        index = np.array(self._index, np.int64).reshape(-1, _NUMBERS)
        index = index[np.argsort(index[:, 0], kind="stable")]
        try:
            at = self._sink.tell()
            self._sink.write(index.tobytes())
            self._sink.close()
        except OSError as error:
            raise self._refused(error) from None
        self._kept = True
        first, last = (int(index[0, 0]), int(index[-1, 0])) if len(index) else (0, -1)
        return Kept(path=self._path, at=at, count=len(index), first=first, last=last)

    def __exit__(self, *_: object) -> None:
        if self._kept:
            return
        with suppress(OSError):
            self._sink.close()
        Path(self._path).unlink(missing_ok=True)

    def _refused(self, error: OSError) -> ReconcilerError:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return ReconcilerError(
            f"{self._folder}: does not take the rows on their way to new files: {reason}; make "
            "room there, or have temporary files elsewhere (spark.local.dir, else TMPDIR)"
        )


def pieces_of(files: Iterable[Kept], place: int) -> Iterator[pa.Buffer]:
    """What was put for a place, file by file; it stays in the memory of the file.

    Raises ReconcilerError for a file that went away.
    """
    for kept in files:
        if not kept.first <= place <= kept.last:
            continue
        data = _mapped(kept.path)
        numbers = np.frombuffer(data, np.int64, kept.count * _NUMBERS, kept.at)
        index = numbers.reshape(-1, _NUMBERS)
        start, end = np.searchsorted(index[:, 0], [place, place + 1])
        for _, offset, length in index[start:end].tolist():
            yield data.slice(offset, length)


def _mapped(path: str) -> pa.Buffer:
    """The file is closed; its memory is there as long as something refers to it."""
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise ReconcilerError(
            f"{path}: rows on their way to new files cannot be read back: {error}; let nothing "
            "clean that folder while tables are clustered"
        ) from None
