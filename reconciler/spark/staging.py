"""Stage the blocks of a job on a Spark cluster, so that several stages can read them.

DataFrame rows arrive as Arrow batches. Between two stages no row becomes an object of Java or
Python.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.spark.jobs import drop_zip_caches, is_single_host
from reconciler.spark.shuffle import FetchTask, FrameTask, encode_block, make_scratch_folder
from reconciler.spark.spill_files import SpillFile, read_blocks
from reconciler.spark.staged_rows import Receive, RowSource, Send, StagedRows, write_spill_file
from reconciler.spark.tasks import get_task_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: the columns of the frame that mapInArrow returns
_ROW: Final = ["partition", "block"]
#: opens staging in a SparkContext; files that it leaves are removed after the block
StagingOpener = Callable[[Any], AbstractContextManager[Callable[["DataFrame"], RowSource]]]


def choose_staging(context: Any) -> StagingOpener:
    """Return staging by files where all workers share a disk, else by Spark's shuffle files."""
    return open_file_staging if is_single_host(context) else open_shuffle_staging


@contextlib.contextmanager
def open_file_staging(_context: Any) -> Iterator[Callable[[DataFrame], RowSource]]:
    """Stage blocks in files of the session's folder; each stage runs once, at once."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with make_scratch_folder(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_FrameSourceByFiles, folder)


class _FrameSourceByFiles:
    """The rows of a DataFrame as Arrow batches, shuffled through spill files."""

    def __init__(self, folder: str, frame: DataFrame) -> None:
        self._folder, self._frame = folder, frame

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = _SpillFrameTask(send, self._folder)
        rows = self._frame.mapInArrow(task, "kept binary").collect()
        files = [pickle.loads(row[0]) for row in rows]  # noqa: S301 (this module's own)
        return _StagedInFiles(self._frame.sparkSession.sparkContext, files, count, self._folder)


class _SpillFrameTask:
    """Writes the blocks of a task's batches into one spill file; picklable."""

    def __init__(self, send: Send, folder: str) -> None:
        self._resend, self._folder = send, folder

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        drop_zip_caches()
        file = write_spill_file(self._resend(get_task_number(), batches), self._folder)
        yield pa.RecordBatch.from_pydict({"kept": pa.array([pickle.dumps(file)], pa.binary())})


class _StagedInFiles:
    """Blocks in spill files that all workers map."""

    def __init__(self, context: Any, files: Sequence[SpillFile], count: int, folder: str) -> None:
        self._context, self._files, self._count, self._folder = context, files, count, folder

    def union(self, other: _StagedInFiles) -> _StagedInFiles:
        files = [*self._files, *other._files]
        return _StagedInFiles(self._context, files, self._count, self._folder)

    def shuffle(self, send: Send, count: int) -> _StagedInFiles:
        sent = self._partitions().mapPartitions(_RespillTask(send, self._files, self._folder))
        return _StagedInFiles(self._context, sent.collect(), count, self._folder)

    def collect(self, receive: Receive) -> list[Any]:
        results: list[Any] = (
            self._partitions().mapPartitions(FetchTask(receive, self._files)).collect()
        )
        return results

    def _partitions(self) -> Any:
        return self._context.parallelize(range(self._count), self._count)


class _RespillTask:
    """Writes the blocks made of a partition's blocks into one spill file; picklable."""

    def __init__(self, send: Send, files: Sequence[SpillFile], folder: str) -> None:
        self._resend, self._files, self._folder = send, files, folder

    def __call__(self, partitions: Iterator[int]) -> Iterator[SpillFile]:
        drop_zip_caches()
        for partition in partitions:
            yield write_spill_file(
                self._resend(partition, read_blocks(self._files, partition)), self._folder
            )


@contextlib.contextmanager
def open_shuffle_staging(_context: Any) -> Iterator[Callable[[DataFrame], RowSource]]:
    """Stage blocks in Spark's shuffle files, which Spark reads again for every use.

    What is lost with an executor, Spark computes again, from the DataFrame if need be.
    """
    yield _FrameSourceByShuffle


class _FrameSourceByShuffle:
    """The rows of a DataFrame as Arrow batches, shuffled through Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = _FrameBlocksTask(send)
        rows = self._frame.mapInArrow(task, "partition long, block binary").rdd
        return _StagedInShuffle.from_framed(
            rows.mapPartitions(_FrameRowsTask(), preservesPartitioning=True), count
        )


class _FrameBlocksTask:
    """Yields a batch per block with its partition and bytes, for mapInArrow; picklable."""

    def __init__(self, send: Send) -> None:
        self._resend = send

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        drop_zip_caches()
        for partition, block in self._resend(get_task_number(), batches):
            data = pa.array([encode_block(block)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([partition], pa.int64()), data], _ROW)


class _FrameRowsTask:
    """Writes what Java's side of a shuffle reads, from rows of a partition and a block."""

    def __call__(self, rows: Iterator[Any]) -> Iterator[bytes]:
        for partition, block in rows:
            yield struct.pack("!q", partition)
            yield bytes(block)


class _StagedInShuffle:
    """Blocks in the files of a shuffle; ``pairs``: Java's RDD of them by partition."""

    def __init__(self, context: Any, pairs: Any, count: int) -> None:
        self._context, self._pairs, self._count = context, pairs, count

    @classmethod
    def from_framed(cls, framed: Any, count: int) -> _StagedInShuffle:
        """Partition an RDD of alternating partition numbers and blocks, both as bytes."""
        context = framed.context
        framed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
        pairs = context._jvm.PairwiseRDD(framed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
        # one id for all: Spark unites two by partition only if their partitioners are equal
        partitioner = context._jvm.PythonPartitioner(count, 0)  # noqa: SLF001
        return cls(context, pairs.partitionBy(partitioner), count)

    def union(self, other: _StagedInShuffle) -> _StagedInShuffle:
        return _StagedInShuffle(self._context, self._pairs.union(other._pairs), self._count)

    def shuffle(self, send: Send, count: int) -> _StagedInShuffle:
        sent = self._blocks().mapPartitionsWithIndex(send)
        return _StagedInShuffle.from_framed(
            sent.mapPartitions(FrameTask(iter), preservesPartitioning=True), count
        )

    def collect(self, receive: Receive) -> list[Any]:
        results: list[Any] = self._blocks().mapPartitionsWithIndex(receive).collect()
        return results

    def _blocks(self) -> Any:
        from pyspark import RDD  # noqa: PLC0415 (heavy)
        from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

        blocks = self._context._jvm.PythonRDD.valueOfPair(self._pairs)  # noqa: SLF001
        return RDD(blocks, self._context, NoOpSerializer())
