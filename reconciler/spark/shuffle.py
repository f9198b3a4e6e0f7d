"""Shuffle blocks from the tasks of one stage to those of the next; Java never decodes them."""

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

#: a task of the first stage: turns its items into blocks for the next stage
SendItems = Callable[[Iterator[Any]], Iterator[BlockForPartition]]


class Shuffle(Protocol):
    """Sends blocks from the tasks of one stage to the tasks of the next."""

    def __call__(self, source: Any, send: SendItems, count: int, receive: Receive) -> list[Any]:
        """Run ``send`` on an RDD's partitions, and ``receive`` on ``count`` partitions of blocks.

        Returns all results. Where a task runs again or twice, the blocks of one attempt count.
        """


#: opens a shuffle in a SparkContext; files that it leaves are removed after the block
ShuffleOpener = Callable[[Any], AbstractContextManager[Shuffle]]


def choose_shuffle(context: Any) -> ShuffleOpener:
    """Return the shuffle by files where all workers share a disk, else Spark's own shuffle."""
    return open_file_shuffle if is_single_host(context) else open_spark_shuffle


@contextlib.contextmanager
def open_file_shuffle(_context: Any) -> Iterator[Shuffle]:
    """Shuffle through files in the session's folder, which workers map: nothing is copied.

    Spark removes the folder at its end if we cannot.
    """
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with make_scratch_folder(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_shuffle_by_files, folder)


def _shuffle_by_files(
    parent: str, source: Any, send: SendItems, count: int, receive: Receive
) -> list[Any]:
    with make_scratch_folder(parent) as folder:
        files: list[SpillFile] = source.mapPartitions(_SpillTask(send, folder)).collect()
        partitions = source.context.parallelize(range(count), count)
        results: list[Any] = partitions.mapPartitions(FetchTask(receive, files)).collect()
        return results


@contextlib.contextmanager
def make_scratch_folder(parent: str) -> Iterator[str]:
    """Make a folder that is removed after the block."""
    folder = tempfile.mkdtemp(prefix="reconciler-", dir=parent)
    try:
        yield folder
    finally:
        # a cancelled task may still write there; Spark removes that at its end
        shutil.rmtree(folder, ignore_errors=True)


class _SpillTask:
    """Writes the blocks of a task's items into one spill file; picklable."""

    def __init__(self, send: SendItems, folder: str) -> None:
        self._send, self._folder = send, folder

    def __call__(self, items: Iterator[Any]) -> Iterator[SpillFile]:
        drop_zip_caches()
        yield write_spill_file(self._send(items), self._folder)


class FetchTask:
    """Runs ``receive`` on the blocks of partitions; picklable."""

    def __init__(self, receive: Receive, files: Sequence[SpillFile]) -> None:
        self._receive, self._files = receive, files

    def __call__(self, partitions: Iterator[int]) -> Iterator[Any]:
        drop_zip_caches()
        for partition in partitions:
            yield from self._receive(partition, read_blocks(self._files, partition))


@contextlib.contextmanager
def open_spark_shuffle(_context: Any) -> Iterator[Shuffle]:
    """Shuffle through Spark's own shuffle."""
    yield _shuffle_by_spark


def _shuffle_by_spark(source: Any, send: SendItems, count: int, receive: Receive) -> list[Any]:
    """Shuffle as ``RDD.partitionBy`` does, but without collecting blocks in the Python worker.

    Each block is sent as soon as it is made, and received one by one.
    """
    from pyspark import RDD  # noqa: PLC0415 (heavy)
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    context = source.context
    keyed = source.mapPartitions(FrameTask(send), preservesPartitioning=True)
    keyed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
    pairs = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
    partitioner = context._jvm.PythonPartitioner(count, id(send))  # noqa: SLF001
    sent = context._jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))  # noqa: SLF001
    blocks = RDD(sent, context, NoOpSerializer())
    results: list[Any] = blocks.mapPartitionsWithIndex(receive).collect()
    return results


class FrameTask:
    """Writes what Java's side of a shuffle reads: partition number, then bytes; picklable."""

    def __init__(self, send: SendItems) -> None:
        self._send = send

    def __call__(self, items: Iterator[Any]) -> Iterator[bytes]:
        drop_zip_caches()
        for partition, block in self._send(items):
            yield struct.pack("!q", partition)
            yield encode_block(block)


def encode_block(block: ShuffleBlock) -> bytes:
    """Return a block as the bytes that go through a network."""
    sink = pa.BufferOutputStream()
    block.write(sink, compressed=True)
    results: bytes = sink.getvalue().to_pybytes()
    return results
