"""Blocks of rows between the stages of a job, which later stages may read again and again.

The protocols here have two implementations: Spark's in ``staging``, and the local one below. The
local one writes spill files and runs one task after the other, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

from reconciler.spark.spill_files import ShuffleBlock, SpillFile, SpillWriter, read_blocks

#: the number of a shuffle partition, from 0 on, and a block for it
BlockForPartition = tuple[int, ShuffleBlock]
#: a task of the last stage: takes its number and its blocks, yields results
Receive = Callable[[int, Iterator[Any]], Iterator[Any]]
#: a task of an earlier stage: takes its number and its items, yields blocks for the next stage
Send = Callable[[int, Iterator[Any]], Iterator[BlockForPartition]]


class RowSource(Protocol):
    """The input rows of a job, in the tasks that read them."""

    def shuffle(self, send: Send, count: int) -> StagedRows:
        """Turn each task's items into blocks and send them to ``count`` partitions."""


class StagedRows(Protocol):
    """Blocks by shuffle partition; each partition has all blocks sent to it, in any order.

    Where a task runs again or twice, the blocks of one attempt count.
    """

    def union(self, other: Self) -> Self:
        """Return the blocks of both; they have the same number of partitions."""

    def shuffle(self, send: Send, count: int) -> Self:
        """Turn each partition's blocks into others for ``count`` partitions; these stay."""

    def collect(self, receive: Receive) -> list[Any]:
        """Run ``receive`` on every partition and return all results."""


class LocalRowSource:
    """Items of this process, in parts that stand for the tasks of a cluster."""

    def __init__(self, parts: Sequence[Iterable[Any]], folder: str) -> None:
        self._parts, self._folder = parts, folder

    def shuffle(self, send: Send, count: int) -> LocalStagedRows:
        parts = enumerate(self._parts)
        files = [
            write_spill_file(send(number, iter(items)), self._folder) for number, items in parts
        ]
        return LocalStagedRows(files, count, self._folder)


class LocalStagedRows:
    """Blocks in spill files of a folder; the caller removes the folder."""

    def __init__(self, files: Sequence[SpillFile], count: int, folder: str) -> None:
        self._files, self._count, self._folder = files, count, folder

    def union(self, other: LocalStagedRows) -> LocalStagedRows:
        assert self._count == other._count, "both have the same number of partitions"
        return LocalStagedRows([*self._files, *other._files], self._count, self._folder)

    def shuffle(self, send: Send, count: int) -> LocalStagedRows:
        files = [
            write_spill_file(blocks, self._folder) for blocks in map(send, *self._partitions())
        ]
        return LocalStagedRows(files, count, self._folder)

    def collect(self, receive: Receive) -> list[Any]:
        return [result for blocks in map(receive, *self._partitions()) for result in blocks]

    def _partitions(self) -> tuple[Iterable[int], Iterable[Iterator[Any]]]:
        partitions = range(self._count)
        return partitions, (read_blocks(self._files, partition) for partition in partitions)


def write_spill_file(blocks: Iterable[BlockForPartition], folder: str) -> SpillFile:
    """Write the blocks that a task sends into one file; raises as ``SpillWriter`` does."""
    with SpillWriter(folder) as writer:
        for partition, block in blocks:
            writer.write(partition, block)
        return writer.finish()
