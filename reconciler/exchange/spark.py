"""Pieces of bytes from the tasks of one stage to those of the next, which Java never opens."""

from __future__ import annotations

import contextlib
import functools
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from reconciler.cluster.spark import is_one_host, unburden
from reconciler.exchange.held import Receive, Sent, shelved
from reconciler.exchange.shelves import Kept, Piece, pieces_of

#: what a task makes of its items
Send = Callable[[Iterator[Any]], Iterator[Sent]]


class Through(Protocol):
    """A way for pieces of bytes from the tasks of a stage to those of the next."""

    def __call__(self, source: Any, send: Send, count: int, receive: Receive) -> list[Any]:
        """What ``receive`` makes for each of ``count`` places of what ``send`` has for it.

        ``source``: an RDD. Of tasks that run again or twice the pieces of one attempt come.
        """


#: opens a way in a SparkContext; what the block leaves on disks is removed after it
Exchange = Callable[[Any], AbstractContextManager[Through]]


def exchange_of(context: Any) -> Exchange:
    """By files where every worker can map them, else through Spark's shuffle."""
    return by_files if is_one_host(context) else by_shuffle


@contextlib.contextmanager
def by_files(_context: Any) -> Iterator[Through]:
    """Files of the session's own folder, which Spark removes if we cannot: nothing is copied."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with scratch(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_by_files, folder)


def _by_files(above: str, source: Any, send: Send, count: int, receive: Receive) -> list[Any]:
    with scratch(above) as folder:
        files: list[Kept] = source.mapPartitions(_Shelved(send, folder)).collect()
        places = source.context.parallelize(range(count), count)
        found: list[Any] = places.mapPartitions(Fetched(receive, files)).collect()
        return found


@contextlib.contextmanager
def scratch(above: str) -> Iterator[str]:
    """A new folder that is gone after the block."""
    folder = tempfile.mkdtemp(prefix="reconciler-", dir=above)
    try:
        yield folder
    finally:
        # a task that has not noticed its end may write there still: Spark's own end removes that
        shutil.rmtree(folder, ignore_errors=True)


class _Shelved:
    """Writes what is sent into one file of an attempt; picklable."""

    def __init__(self, send: Send, folder: str) -> None:
        self._send, self._folder = send, folder

    def __call__(self, items: Iterator[Any]) -> Iterator[Kept]:
        unburden()
        yield shelved(self._send(items), self._folder)


class Fetched:
    """Hands a place's pieces on; picklable."""

    def __init__(self, receive: Receive, files: Sequence[Kept]) -> None:
        self._receive, self._files = receive, files

    def __call__(self, places: Iterator[int]) -> Iterator[Any]:
        unburden()
        for place in places:
            yield from self._receive(place, pieces_of(self._files, place))


@contextlib.contextmanager
def by_shuffle(_context: Any) -> Iterator[Through]:
    """Spark's shuffle."""
    yield _by_shuffle


def _by_shuffle(source: Any, send: Send, count: int, receive: Receive) -> list[Any]:
    """As ``RDD.partitionBy``, but nothing waits in the Python worker.

    A piece of a megabyte is sent as soon as it is made, and comes one by one.
    """
    from pyspark import RDD  # noqa: PLC0415 (heavy)
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    context = source.context
    keyed = source.mapPartitions(Framed(send), preservesPartitioning=True)
    keyed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
    pairs = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
    partitioner = context._jvm.PythonPartitioner(count, id(send))  # noqa: SLF001
    sent = context._jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))  # noqa: SLF001
    pieces = RDD(sent, context, NoOpSerializer())
    found: list[Any] = pieces.mapPartitionsWithIndex(receive).collect()
    return found


class Framed:
    """What Java's side of a shuffle is written: the place, then the bytes; picklable."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def __call__(self, items: Iterator[Any]) -> Iterator[bytes]:
        unburden()
        for place, piece in self._send(items):
            yield struct.pack("!q", place)
            yield written(piece)


def written(piece: Piece) -> bytes:
    """A piece as it goes through a network."""
    sink = pa.BufferOutputStream()
    piece.write(sink, compressed=True)
    found: bytes = sink.getvalue().to_pybytes()
    return found
