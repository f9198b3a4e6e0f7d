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


class ShuffleBlock(Protocol):
    """Something that can be sent."""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write it to a file of Arrow's; ``compressed``: it goes through a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillFile:
    """A file of ``block_count`` pieces for places ``first_partition`` to ``last_partition``; ``index_offset``: where its index is."""

    path: str
    index_offset: int
    block_count: int
    first_partition: int
    last_partition: int


class SpillWriter:
    """One new file of a folder; without ``finish`` it is gone after the block.

    Raises ReconcilerError, naming the folder, when the disk does not take it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._index: list[tuple[int, int, int]] = []
        self._path = ""
        self._sink: Any = None
        self._finished = False

    def __enter__(self) -> Self:
        try:
            handle, self._path = tempfile.mkstemp(dir=self._folder)
            os.close(handle)
            self._sink = pa.BufferedOutputStream(pa.OSFile(self._path, "wb"), _BUFFER)
        except OSError as error:
            raise self._disk_error(error) from None
        return self

    def write(self, partition: int, block: ShuffleBlock) -> None:
        """``partition``: who is to get it, from 0 on; in the order in which they are put."""
        try:
            start = self._sink.tell()
            block.write(self._sink, compressed=False)
            length = self._sink.tell() - start
            self._sink.write(bytes(-length % _ALIGNED))
        except OSError as error:
            raise self._disk_error(error) from None
        self._index.append((partition, start, length))

    def finish(self) -> SpillFile:
        """The file, complete: it stays."""
        index = np.array(self._index, np.int64).reshape(-1, _NUMBERS)
        index = index[np.argsort(index[:, 0], kind="stable")]
        try:
            at = self._sink.tell()
            self._sink.write(index.tobytes())
            self._sink.close()
        except OSError as error:
            raise self._disk_error(error) from None
        self._finished = True
        first, last = (int(index[0, 0]), int(index[-1, 0])) if len(index) else (0, -1)
        return SpillFile(
            path=self._path,
            index_offset=at,
            block_count=len(index),
            first_partition=first,
            last_partition=last,
        )

    def __exit__(self, *_: object) -> None:
        if self._finished:
            return
        with suppress(OSError):
            self._sink.close()
        Path(self._path).unlink(missing_ok=True)

    def _disk_error(self, error: OSError) -> ReconcilerError:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return ReconcilerError(
            f"{self._folder}: does not take the rows on their way to new files: {reason}; make "
            "room there, or have temporary files elsewhere (spark.local.dir, else TMPDIR)"
        )


def read_blocks(files: Iterable[SpillFile], partition: int) -> Iterator[pa.Buffer]:
    """What was put for a place, file by file; it stays in the memory of the file.

    Raises ReconcilerError for a file that went away.
    """
    for kept in files:
        if not kept.first_partition <= partition <= kept.last_partition:
            continue
        data = _map_file(kept.path)
        numbers = np.frombuffer(data, np.int64, kept.block_count * _NUMBERS, kept.index_offset)
        index = numbers.reshape(-1, _NUMBERS)
        start, end = np.searchsorted(index[:, 0], [partition, partition + 1])
        for _, offset, length in index[start:end].tolist():
            yield data.slice(offset, length)


def _map_file(path: str) -> pa.Buffer:
    """The file is closed; its memory is there as long as something refers to it."""
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise ReconcilerError(
            f"{path}: rows on their way to new files cannot be read back: {error}; let nothing "
            "clean that folder while tables are clustered"
        ) from None
