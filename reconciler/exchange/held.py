"""Pieces of bytes that wait for their places: a job's stages may ask for them again and again.

Works without Spark: here they lie on shelves of the local disk, and one task runs after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

from reconciler.exchange.shelves import Kept, Piece, Shelf, pieces_of

#: where a piece goes, from 0 on, and the piece
Sent = tuple[int, Piece]
#: what a task makes of its number and its items: something, or pieces for the next stage
Receive = Callable[[int, Iterator[Any]], Iterator[Any]]
Resend = Callable[[int, Iterator[Any]], Iterator[Sent]]


class Brought(Protocol):
    """Items in the tasks where they come from."""

    def sent(self, resend: Resend, count: int) -> Held:
        """Send each task's items, made into pieces, to so many places."""


class Held(Protocol):
    """Pieces at their places, each with all that was sent there, in any order.

    Of tasks that run again or twice the pieces of one attempt come.
    """

    def beside(self, other: Self) -> Self:
        """The pieces of both, which have equally many places."""

    def sent(self, resend: Resend, count: int) -> Self:
        """Send what is made of each place's pieces to so many other places; these stay."""

    def collected(self, receive: Receive) -> list[Any]:
        """What is made of each place's pieces."""


class LocalItems:
    """Items of this process, in parts that stand for the tasks of a cluster."""

    def __init__(self, parts: Sequence[Iterable[Any]], folder: str) -> None:
        self._parts, self._folder = parts, folder

    def sent(self, resend: Resend, count: int) -> LocalHeld:
        parts = enumerate(self._parts)
        kept = [shelved(resend(number, iter(items)), self._folder) for number, items in parts]
        return LocalHeld(kept, count, self._folder)


class LocalHeld:
    """Pieces on shelves of a folder, which is the caller's to remove."""

    def __init__(self, files: Sequence[Kept], count: int, folder: str) -> None:
        self._files, self._count, self._folder = files, count, folder

    def beside(self, other: LocalHeld) -> LocalHeld:
        assert self._count == other._count, "places of both are the same"
        return LocalHeld([*self._files, *other._files], self._count, self._folder)

    def sent(self, resend: Resend, count: int) -> LocalHeld:
        kept = [shelved(made, self._folder) for made in map(resend, *self._places())]
        return LocalHeld(kept, count, self._folder)

    def collected(self, receive: Receive) -> list[Any]:
        return [one for made in map(receive, *self._places()) for one in made]

    def _places(self) -> tuple[Iterable[int], Iterable[Iterator[Any]]]:
        places = range(self._count)
        return places, (pieces_of(self._files, place) for place in places)


def shelved(sent: Iterable[Sent], folder: str) -> Kept:
    """What a task sends, in one file; raises as ``Shelf`` does."""
    with Shelf(folder) as shelf:
        for place, piece in sent:
            shelf.put(place, piece)
        return shelf.kept()
