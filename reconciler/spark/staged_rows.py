"""Blocks of rows between the stages of a job, which later stages may read again and again.

Blocks are in spill files where all tasks see the same disk: on Spark (``staging``), or here, one
task after the other and without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

from reconciler.spark.spill_files import ShuffleBlock, SpillFile, SpillWriter, read_blocks

#: the number of a shuffle partition, from 0 on, and a block for it
BlockForPartition = tuple[int, ShuffleBlock]
#: a task of the last stage: takes its number and its blocks, yields results
Receive = Callable[[int, Iterator[Any]], Iterator[Any]]
#: a task of an earlier stage: takes its number and its items, yields blocks for the next stage
Send = Callable[[int, Iterator[Any]], Iterator[BlockForPartition]]
#: runs a task for each of so many partitions, without items, and returns all results
RunTasks = Callable[[Receive, int], list[Any]]


class RowSource(Protocol):
    """The input rows of a job, in the tasks that read them."""

    def shuffle(self, send: Send, count: int) -> StagedRows:
        """Turn each task's items into blocks and send them to ``count`` partitions."""


class StagedRows(Protocol):
    """Blocks by shuffle partition; each partition has all blocks sent to it, in any order.

    If a task runs again or twice, the blocks of one attempt count.
    """

    def union(self, other: Self) -> Self:
        """Return the blocks of both; they have the same number of partitions."""

    def shuffle(self, send: Send, count: int) -> Self:
        """Turn each partition's blocks into others for ``count`` partitions; these stay."""

    def collect(self, receive: Receive) -> list[Any]:
        """Run ``receive`` on every partition and return all results."""

    def discard(self) -> None:
        """Free the disk; the blocks cannot be read afterwards."""


class LocalRowSource:
    """Items of this process, in parts that stand for the tasks of a cluster.

    ``run``: runs its tasks; one after the other if it is not given.
    """

    def __init__(
        self,
        parts: Sequence[Iterable[Any]],
        folder: str,
        run: RunTasks | None = None,
    ) -> None:
        self._parts, self._folder, self._run = parts, folder, run or _run_in_process

    def shuffle(self, send: Send, count: int) -> StagedInFiles:
        def write(number: int, _items: Iterator[Any]) -> Iterator[SpillFile]:
            return write_spill_file(send, self._folder, number, iter(self._parts[number]))

        files = self._run(write, len(self._parts))
        return StagedInFiles(self._run, files, count, self._folder)


def _run_in_process(task: Receive, count: int) -> list[Any]:
    return [result for partition in range(count) for result in task(partition, iter(()))]


class StagedInFiles:
    """Blocks in spill files of a folder that all tasks see; the caller removes the folder."""

    def __init__(self, run: RunTasks, files: Sequence[SpillFile], count: int, folder: str) -> None:
        self._run, self._files, self._count, self._folder = run, files, count, folder

    def union(self, other: StagedInFiles) -> StagedInFiles:
        assert self._count == other._count, "both have the same number of partitions"
        files = [*self._files, *other._files]
        return StagedInFiles(self._run, files, self._count, self._folder)

    def shuffle(self, send: Send, count: int) -> StagedInFiles:
        files = self.collect(partial(write_spill_file, send, self._folder))
        return StagedInFiles(self._run, files, count, self._folder)

    def collect(self, receive: Receive) -> list[Any]:
        return self._run(partial(_receive_blocks, receive, self._files), self._count)

    def discard(self) -> None:
        for file in self._files:
            Path(file.path).unlink(missing_ok=True)


def _receive_blocks(
    receive: Receive, files: Sequence[SpillFile], partition: int, _items: Iterator[Any]
) -> Iterator[Any]:
    """Run a task on its blocks in spill files."""
    return receive(partition, read_blocks(files, partition))


def write_spill_file(
    send: Send, folder: str, number: int, items: Iterator[Any]
) -> Iterator[SpillFile]:
    """Write the blocks that a task sends into one file; raises as ``SpillWriter`` does."""
    with SpillWriter(folder) as writer:
        for partition, block in send(number, items):
            writer.write(partition, block)
        yield writer.finish()
