"""Stage the blocks of a job on a Spark cluster, so that several stages can read them.

Rows of a DataFrame arrive as Arrow batches. Between two stages no row becomes an object of Java or
Python.
"""

from __future__ import annotations

import contextlib
import pickle
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import pyarrow as pa

from reconciler.spark.jobs import drop_zip_caches
from reconciler.spark.spill_files import ShuffleBlock
from reconciler.spark.staged_rows import (
    Receive,
    RowSource,
    RunTasks,
    Send,
    StagedInFiles,
    StagedRows,
    write_spill_file,
)
from reconciler.spark.tasks import get_task_number
from reconciler.spark.workers import is_single_host

#: the frame that ``mapInArrow`` returns
_DATA: Final = "data binary"
#: opens staging in a SparkContext, for RDDs and for DataFrames; files that it leaves are removed
#: after the block
StagingOpener = Callable[[Any], AbstractContextManager[Callable[[Any], RowSource]]]


def choose_staging(context: Any) -> StagingOpener:
    """Return staging by files if all workers share a disk, else by Spark's shuffle files."""
    return open_file_staging if is_single_host(context) else open_shuffle_staging


@contextlib.contextmanager
def open_file_staging(context: Any) -> Iterator[Callable[[Any], RowSource]]:
    """Stage blocks in files of the session's folder, which workers map: nothing is copied.

    Each stage runs once, at once. Spark removes the folder at its end if reconciler cannot.
    """
    with open_session_folder() as folder:
        yield partial(_FileSource, partial(_run_tasks, context), folder)


def open_driver_source(folder: str, run: RunTasks, rows: Any) -> RowSource:
    """Return rows that Spark reads, and whose stages ``run`` runs in this process.

    For a session whose only worker is this process: every job of Spark costs it Python processes
    that begin with nothing imported, and Java that is compiled for little work.
    """
    return _FileSource(run, folder, rows)


@contextlib.contextmanager
def open_session_folder() -> Iterator[str]:
    """Make a folder on the disks of the session, which goes after the block."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    folder = tempfile.mkdtemp(prefix="reconciler-", dir=SparkFiles.getRootDirectory())
    try:
        yield folder
    finally:
        # a cancelled task may still write there; Spark removes that at its end
        shutil.rmtree(folder, ignore_errors=True)


class _FileSource:
    """The items of an RDD, or the Arrow batches of a DataFrame, for staging in files."""

    def __init__(self, run: RunTasks, folder: str, rows: Any) -> None:
        self._run, self._folder, self._rows = run, folder, rows

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = partial(write_spill_file, send, self._folder)
        if hasattr(self._rows, "mapInArrow"):
            pickled = partial(_map_batches, partial(_pickle_results, task))
            rows = self._rows.mapInArrow(pickled, _DATA).collect()
            files = [pickle.loads(row[0]) for row in rows]  # noqa: S301 (this module's own)
        else:
            files = self._rows.mapPartitionsWithIndex(partial(_run_task, task)).collect()
        return StagedInFiles(self._run, files, count, self._folder)


def _run_tasks(context: Any, task: Receive, count: int) -> list[Any]:
    partitions = context.parallelize(range(count), count)
    results: list[Any] = partitions.mapPartitionsWithIndex(partial(_run_task, task)).collect()
    return results


@contextlib.contextmanager
def open_shuffle_staging(_context: Any) -> Iterator[Callable[[Any], RowSource]]:
    """Stage blocks in Spark's shuffle files, which Spark reads again for every use.

    What is lost with an executor, Spark computes again, from the source if need be.
    """
    yield _ShuffleSource


class _ShuffleSource:
    """The items of an RDD, or the Arrow batches of a DataFrame, for staging in shuffle files."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = partial(_frame_blocks, send)
        if hasattr(self._rows, "mapInArrow"):
            rows = self._rows.mapInArrow(partial(_map_batches, task), _DATA).rdd
            framed = rows.mapPartitions(_take_data)
        else:
            framed = self._rows.mapPartitionsWithIndex(partial(_run_task, task))
        return _StagedInShuffle.from_framed(framed, count)


class _StagedInShuffle:
    """Blocks in the files of a shuffle; ``pairs``: Java's RDD of them by partition."""

    def __init__(self, context: Any, pairs: Any) -> None:
        self._context, self._pairs = context, pairs

    @classmethod
    def from_framed(cls, framed: Any, count: int) -> _StagedInShuffle:
        """Partition an RDD of alternating partition numbers and blocks, both as bytes.

        As ``RDD.partitionBy`` does, but without collecting blocks in the Python worker: each block
        is sent as soon as it is made, and received one by one.
        """
        context = framed.context
        framed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
        pairs = context._jvm.PairwiseRDD(framed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
        # one id for all: Spark unites two by partition only if their partitioners are equal
        partitioner = context._jvm.PythonPartitioner(count, 0)  # noqa: SLF001
        return cls(context, pairs.partitionBy(partitioner))

    def union(self, other: _StagedInShuffle) -> _StagedInShuffle:
        return _StagedInShuffle(self._context, self._pairs.union(other._pairs))

    def shuffle(self, send: Send, count: int) -> _StagedInShuffle:
        return _StagedInShuffle.from_framed(self._map(partial(_frame_blocks, send)), count)

    def collect(self, receive: Receive) -> list[Any]:
        results: list[Any] = self._map(receive).collect()
        return results

    def discard(self) -> None:
        """Spark removes the files once nothing refers to them."""

    def _map(self, task: Receive) -> Any:
        from pyspark import RDD  # noqa: PLC0415 (heavy)
        from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

        blocks = self._context._jvm.PythonRDD.valueOfPair(self._pairs)  # noqa: SLF001
        rows = RDD(blocks, self._context, NoOpSerializer())
        # the result has no partitioner, because Spark shuffles nothing if both are equal
        return rows.mapPartitionsWithIndex(partial(_run_task, task))


def _run_task(task: Receive, number: int, items: Iterator[Any]) -> Iterator[Any]:
    """Run a task on a worker."""
    drop_zip_caches()
    return task(number, items)


def _map_batches(task: Receive, batches: Iterator[Any]) -> Iterator[Any]:
    """Run a task that yields bytes in ``mapInArrow``; yield a batch for each result."""
    for data in _run_task(task, get_task_number(), batches):
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], ["data"])


def _pickle_results(task: Receive, number: int, items: Iterator[Any]) -> Iterator[bytes]:
    return map(pickle.dumps, task(number, items))


def _take_data(rows: Iterator[Any]) -> Iterator[bytes]:
    return (bytes(row[0]) for row in rows)


def _frame_blocks(send: Send, number: int, items: Iterator[Any]) -> Iterator[bytes]:
    """Yield what Java's side of a shuffle reads: partition number, then bytes."""
    for partition, block in send(number, items):
        yield struct.pack("!q", partition)
        yield _encode_block(block)


def _encode_block(block: ShuffleBlock) -> bytes:
    """Return a block as the bytes that go through a network."""
    sink = pa.BufferOutputStream()
    block.write(sink, compressed=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data
