"""Pieces of bytes that wait for their places: a job's stages may ask for them again and again.

Works without Spark: here they lie on shelves of the local disk, and one task runs after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

from reconciler.spark.spill_files import ShuffleBlock, SpillFile, SpillWriter, read_blocks

#: where a piece goes, from 0 on, and the piece
BlockForPartition = tuple[int, ShuffleBlock]
#: what a task makes of its number and its items: something, or pieces for the next stage
Receive = Callable[[int, Iterator[Any]], Iterator[Any]]
Send = Callable[[int, Iterator[Any]], Iterator[BlockForPartition]]


class RowSource(Protocol):
    """Items in the tasks where they come from."""

    def shuffle(self, send: Send, count: int) -> StagedRows:
        """Send each task's items, made into pieces, to so many places."""


class StagedRows(Protocol):
    """Pieces at their places, each with all that was sent there, in any order.

    Of tasks that run again or twice the pieces of one attempt come.
    """

    def union(self, other: Self) -> Self:
        """The pieces of both, which have equally many places."""

    def shuffle(self, send: Send, count: int) -> Self:
        """Send what is made of each place's pieces to so many other places; these stay."""

    def collect(self, receive: Receive) -> list[Any]:
        """What is made of each place's pieces."""


class LocalRowSource:
    """Items of this process, in parts that stand for the tasks of a cluster."""

    def __init__(self, parts: Sequence[Iterable[Any]], folder: str) -> None:
        self._parts, self._folder = parts, folder

    def shuffle(self, send: Send, count: int) -> LocalStagedRows:
        parts = enumerate(self._parts)
        kept = [
            write_spill_file(send(number, iter(items)), self._folder) for number, items in parts
        ]
        return LocalStagedRows(kept, count, self._folder)


class LocalStagedRows:
    """Pieces on shelves of a folder, which is the caller's to remove."""

    def __init__(self, files: Sequence[SpillFile], count: int, folder: str) -> None:
        self._files, self._count, self._folder = files, count, folder

    def union(self, other: LocalStagedRows) -> LocalStagedRows:
        assert self._count == other._count, "places of both are the same"
        return LocalStagedRows([*self._files, *other._files], self._count, self._folder)

    def shuffle(self, send: Send, count: int) -> LocalStagedRows:
        kept = [write_spill_file(made, self._folder) for made in map(send, *self._partitions())]
        return LocalStagedRows(kept, count, self._folder)

    def collect(self, receive: Receive) -> list[Any]:
        return [one for made in map(receive, *self._partitions()) for one in made]

    def _partitions(self) -> tuple[Iterable[int], Iterable[Iterator[Any]]]:
        places = range(self._count)
        return places, (read_blocks(self._files, place) for place in places)


def write_spill_file(sent: Iterable[BlockForPartition], folder: str) -> SpillFile:
    """What a task sends, in one file; raises as ``Shelf`` does."""
    with SpillWriter(folder) as shelf:
        for place, piece in sent:
            shelf.write(place, piece)
        return shelf.finish()
