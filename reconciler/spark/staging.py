"""Pieces that wait for their places on a Spark cluster, for jobs of several stages.

The rows of a DataFrame come in as batches of Arrow; no row is ever an object of Java's or Python's
between two stages.
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

#: of what mapInArrow gives back
_ROW: Final = ["place", "piece"]
#: opens a way to hold what the rows of DataFrames become; what it leaves is removed after the block
StagingOpener = Callable[[Any], AbstractContextManager[Callable[["DataFrame"], RowSource]]]


def choose_staging(context: Any) -> StagingOpener:
    """By files where every worker can map them, else by the files of Spark's shuffle."""
    return open_file_staging if is_single_host(context) else open_shuffle_staging


@contextlib.contextmanager
def open_file_staging(_context: Any) -> Iterator[Callable[[DataFrame], RowSource]]:
    """Files of the session's own folder; what is sent is made once, and at once."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with make_scratch_folder(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_FrameSourceByFiles, folder)


class _FrameSourceByFiles:
    """A DataFrame's rows, as batches of Arrow."""

    def __init__(self, folder: str, frame: DataFrame) -> None:
        self._folder, self._frame = folder, frame

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = _SpillFrameTask(send, self._folder)
        told = self._frame.mapInArrow(task, "kept binary").collect()
        files = [pickle.loads(row[0]) for row in told]  # noqa: S301 (this module's own)
        return _StagedInFiles(self._frame.sparkSession.sparkContext, files, count, self._folder)


class _SpillFrameTask:
    """Writes what is made of a task's batches into one file; picklable."""

    def __init__(self, resend: Send, folder: str) -> None:
        self._resend, self._folder = resend, folder

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        drop_zip_caches()
        kept = write_spill_file(self._resend(get_task_number(), batches), self._folder)
        yield pa.RecordBatch.from_pydict({"kept": pa.array([pickle.dumps(kept)], pa.binary())})


class _StagedInFiles:
    """Pieces in files that all workers map."""

    def __init__(self, context: Any, files: Sequence[SpillFile], count: int, folder: str) -> None:
        self._context, self._files, self._count, self._folder = context, files, count, folder

    def union(self, other: _StagedInFiles) -> _StagedInFiles:
        files = [*self._files, *other._files]
        return _StagedInFiles(self._context, files, self._count, self._folder)

    def shuffle(self, send: Send, count: int) -> _StagedInFiles:
        made = self._partitions().mapPartitions(_RespillTask(send, self._files, self._folder))
        return _StagedInFiles(self._context, made.collect(), count, self._folder)

    def collect(self, receive: Receive) -> list[Any]:
        found: list[Any] = (
            self._partitions().mapPartitions(FetchTask(receive, self._files)).collect()
        )
        return found

    def _partitions(self) -> Any:
        return self._context.parallelize(range(self._count), self._count)


class _RespillTask:
    """Writes what is made of a place's pieces into one file; picklable."""

    def __init__(self, resend: Send, files: Sequence[SpillFile], folder: str) -> None:
        self._resend, self._files, self._folder = resend, files, folder

    def __call__(self, places: Iterator[int]) -> Iterator[SpillFile]:
        drop_zip_caches()
        for place in places:
            yield write_spill_file(
                self._resend(place, read_blocks(self._files, place)), self._folder
            )


@contextlib.contextmanager
def open_shuffle_staging(_context: Any) -> Iterator[Callable[[DataFrame], RowSource]]:
    """Spark's shuffle, whose files are read again as often as the pieces are asked for.

    What is lost with an executor Spark makes again, of the DataFrame in the end.
    """
    yield _FrameSourceByShuffle


class _FrameSourceByShuffle:
    """A DataFrame's rows, as batches of Arrow."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def shuffle(self, send: Send, count: int) -> StagedRows:
        task = _FrameBlocksTask(send)
        rows = self._frame.mapInArrow(task, "place long, piece binary").rdd
        return _StagedInShuffle.from_framed(
            rows.mapPartitions(_FrameRowsTask(), preservesPartitioning=True), count
        )


class _FrameBlocksTask:
    """Rows of a place and a piece, as mapInArrow takes them; picklable."""

    def __init__(self, resend: Send) -> None:
        self._resend = resend

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        drop_zip_caches()
        for place, piece in self._resend(get_task_number(), batches):
            data = pa.array([encode_block(piece)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([place], pa.int64()), data], _ROW)


class _FrameRowsTask:
    """What Java's side of a shuffle is written, of rows of a place and a piece."""

    def __call__(self, rows: Iterator[Any]) -> Iterator[bytes]:
        for place, piece in rows:
            yield struct.pack("!q", place)
            yield bytes(piece)


class _StagedInShuffle:
    """Pieces in the files of a shuffle; ``pairs``: Java's, by place."""

    def __init__(self, context: Any, pairs: Any, count: int) -> None:
        self._context, self._pairs, self._count = context, pairs, count

    @classmethod
    def from_framed(cls, framed: Any, count: int) -> _StagedInShuffle:
        """``framed``: an RDD of places and pieces in turn, as bytes."""
        context = framed.context
        framed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
        pairs = context._jvm.PairwiseRDD(framed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
        # one id for all: Spark joins two by place only if it takes their partitioners for the same
        partitioner = context._jvm.PythonPartitioner(count, 0)  # noqa: SLF001
        return cls(context, pairs.partitionBy(partitioner), count)

    def union(self, other: _StagedInShuffle) -> _StagedInShuffle:
        return _StagedInShuffle(self._context, self._pairs.union(other._pairs), self._count)

    def shuffle(self, send: Send, count: int) -> _StagedInShuffle:
        made = self._blocks().mapPartitionsWithIndex(send)
        return _StagedInShuffle.from_framed(
            made.mapPartitions(FrameTask(iter), preservesPartitioning=True), count
        )

    def collect(self, receive: Receive) -> list[Any]:
        found: list[Any] = self._blocks().mapPartitionsWithIndex(receive).collect()
        return found

    def _blocks(self) -> Any:
        from pyspark import RDD  # noqa: PLC0415 (heavy)
        from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

        pieces = self._context._jvm.PythonRDD.valueOfPair(self._pairs)  # noqa: SLF001
        return RDD(pieces, self._context, NoOpSerializer())
