"""Spill files: blocks that travel from task to task through a disk that all tasks see.

Every attempt at a task writes one file with a name of its own. Readers map the file into memory, so
blocks are not copied and the system can drop their pages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa

from reconciler.errors import ReconcilerError
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.temporary_folders import make_disk_error

#: bytes that are buffered before a write, for small blocks
_BUFFER: Final = 256 * 1024
#: blocks start at multiples of this, because Arrow aligns its vectors so
_ALIGNED: Final = 64
#: integers per block in a file's index: partition, offset, bytes
_NUMBERS: Final = 3


class ShuffleBlock(Protocol):
    """A block of data that can be sent from task to task."""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write the block to an Arrow stream; ``compressed``: it goes through a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillFile:
    """A finished spill file with ``block_count`` blocks, and the partitions that it has blocks for.

    ``index_offset``: where the file's index begins. An empty file has a ``last_partition`` of -1.
    """

    path: str
    index_offset: int
    block_count: int
    first_partition: int
    last_partition: int


class SpillWriter:
    """Writes a new spill file of a folder; without ``finish`` the file goes after the block.

    Raises ReconcilerError, naming the folder, when the disk refuses a write.
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
        """Append a block for a partition; a partition's blocks are read back in this order."""
        try:
            start = self._sink.tell()
            block.write(self._sink, compressed=False)
            length = self._sink.tell() - start
            self._sink.write(bytes(-length % _ALIGNED))
        except OSError as error:
            raise self._disk_error(error) from None
        self._index.append((partition, start, length))

    def finish(self) -> SpillFile:
        """Write the index, close the file and return it; the file stays."""
        index = np.array(self._index, np.int64).reshape(-1, _NUMBERS)
        index = index[np.argsort(index[:, 0], kind="stable")]
        try:
            index_offset = self._sink.tell()
            self._sink.write(index.tobytes())
            self._sink.close()
        except OSError as error:
            raise self._disk_error(error) from None
        self._finished = True
        first, last = (int(index[0, 0]), int(index[-1, 0])) if len(index) else (0, -1)
        return SpillFile(
            path=self._path,
            index_offset=index_offset,
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
        return make_disk_error(self._folder, "the spill file", error)


def read_blocks(files: Iterable[SpillFile], partition: int) -> Iterator[pa.Buffer]:
    """Yield the blocks of a partition, file by file; they stay in the memory of the mapped file.

    Raises ReconcilerError for a missing file.
    """
    for file in files:
        if not file.first_partition <= partition <= file.last_partition:
            continue
        data = _map_file(file.path)
        numbers = np.frombuffer(data, np.int64, file.block_count * _NUMBERS, file.index_offset)
        index = numbers.reshape(-1, _NUMBERS)
        start, end = np.searchsorted(index[:, 0], [partition, partition + 1])
        for _, offset, length in index[start:end].tolist():
            yield data.slice(offset, length)


def _map_file(path: str) -> pa.Buffer:
    """Map a file into memory; the mapping lives as long as something refers to it."""
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise ReconcilerError(
            f"{path}: cannot read the spill file: {error}; let nothing remove files of that folder "
            "while reconciler runs"
        ) from None
