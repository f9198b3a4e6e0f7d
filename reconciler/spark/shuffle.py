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

from reconciler.spark.jobs import drop_zip_caches, is_single_host
from reconciler.spark.spill_files import ShuffleBlock, SpillFile, read_blocks
from reconciler.spark.staged_rows import BlockForPartition, Receive, write_spill_file

#: what a task makes of its items
SendItems = Callable[[Iterator[Any]], Iterator[BlockForPartition]]


class Shuffle(Protocol):
    """A way for pieces of bytes from the tasks of a stage to those of the next."""

    def __call__(self, source: Any, send: SendItems, count: int, receive: Receive) -> list[Any]:
        """What ``receive`` makes for each of ``count`` places of what ``send`` has for it.

        ``source``: an RDD. Of tasks that run again or twice the pieces of one attempt come.
        """


#: opens a way in a SparkContext; what the block leaves on disks is removed after it
ShuffleOpener = Callable[[Any], AbstractContextManager[Shuffle]]


def choose_shuffle(context: Any) -> ShuffleOpener:
    """By files where every worker can map them, else through Spark's shuffle."""
    return open_file_shuffle if is_single_host(context) else open_spark_shuffle


@contextlib.contextmanager
def open_file_shuffle(_context: Any) -> Iterator[Shuffle]:
    """Files of the session's own folder, which Spark removes if we cannot: nothing is copied."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with make_scratch_folder(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_shuffle_by_files, folder)


def _shuffle_by_files(
    above: str, source: Any, send: SendItems, count: int, receive: Receive
) -> list[Any]:
    with make_scratch_folder(above) as folder:
        files: list[SpillFile] = source.mapPartitions(_SpillTask(send, folder)).collect()
        places = source.context.parallelize(range(count), count)
        found: list[Any] = places.mapPartitions(FetchTask(receive, files)).collect()
        return found


@contextlib.contextmanager
def make_scratch_folder(above: str) -> Iterator[str]:
    """A new folder that is gone after the block."""
    folder = tempfile.mkdtemp(prefix="reconciler-", dir=above)
    try:
        yield folder
    finally:
        # a task that has not noticed its end may write there still: Spark's own end removes that
        shutil.rmtree(folder, ignore_errors=True)


class _SpillTask:
    """Writes what is sent into one file of an attempt; picklable."""

    def __init__(self, send: SendItems, folder: str) -> None:
        self._send, self._folder = send, folder

    def __call__(self, items: Iterator[Any]) -> Iterator[SpillFile]:
        drop_zip_caches()
        yield write_spill_file(self._send(items), self._folder)


class FetchTask:
    """Hands a place's pieces on; picklable."""

    def __init__(self, receive: Receive, files: Sequence[SpillFile]) -> None:
        self._receive, self._files = receive, files

    def __call__(self, places: Iterator[int]) -> Iterator[Any]:
        drop_zip_caches()
        for place in places:
            yield from self._receive(place, read_blocks(self._files, place))


@contextlib.contextmanager
def open_spark_shuffle(_context: Any) -> Iterator[Shuffle]:
    """Spark's shuffle."""
    yield _shuffle_by_spark


def _shuffle_by_spark(source: Any, send: SendItems, count: int, receive: Receive) -> list[Any]:
    """As ``RDD.partitionBy``, but nothing waits in the Python worker.

    A piece of a megabyte is sent as soon as it is made, and comes one by one.
    """
    from pyspark import RDD  # noqa: PLC0415 (heavy)
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    context = source.context
    keyed = source.mapPartitions(FrameTask(send), preservesPartitioning=True)
    keyed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
    pairs = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
    partitioner = context._jvm.PythonPartitioner(count, id(send))  # noqa: SLF001
    sent = context._jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))  # noqa: SLF001
    pieces = RDD(sent, context, NoOpSerializer())
    found: list[Any] = pieces.mapPartitionsWithIndex(receive).collect()
    return found


class FrameTask:
    """What Java's side of a shuffle is written: the place, then the bytes; picklable."""

    def __init__(self, send: SendItems) -> None:
        self._send = send

    def __call__(self, items: Iterator[Any]) -> Iterator[bytes]:
        drop_zip_caches()
        for place, piece in self._send(items):
            yield struct.pack("!q", place)
            yield encode_block(piece)


def encode_block(block: ShuffleBlock) -> bytes:
    """A piece as it goes through a network."""
    sink = pa.BufferOutputStream()
    block.write(sink, compressed=True)
    found: bytes = sink.getvalue().to_pybytes()
    return found
