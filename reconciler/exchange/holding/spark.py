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

from reconciler.cluster.spark import is_one_host, unburden
from reconciler.exchange.held import Brought, Held, Receive, Resend, shelved
from reconciler.exchange.shelves import Kept, pieces_of
from reconciler.exchange.spark import Fetched, Framed, scratch, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: of what mapInArrow gives back
_ROW: Final = ["place", "piece"]
#: opens a way to hold what the rows of DataFrames become; what it leaves is removed after the block
Holding = Callable[[Any], AbstractContextManager[Callable[["DataFrame"], Brought]]]


def holding_of(context: Any) -> Holding:
    """By files where every worker can map them, else by the files of Spark's shuffle."""
    return held_in_files if is_one_host(context) else held_in_shuffle


@contextlib.contextmanager
def held_in_files(_context: Any) -> Iterator[Callable[[DataFrame], Brought]]:
    """Files of the session's own folder; what is sent is made once, and at once."""
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    with scratch(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_FrameToFiles, folder)


class _FrameToFiles:
    """A DataFrame's rows, as batches of Arrow."""

    def __init__(self, folder: str, frame: DataFrame) -> None:
        self._folder, self._frame = folder, frame

    def sent(self, resend: Resend, count: int) -> Held:
        task = _ShelvedFrame(resend, self._folder)
        told = self._frame.mapInArrow(task, "kept binary").collect()
        files = [pickle.loads(row[0]) for row in told]  # noqa: S301 (this module's own)
        return _InFiles(self._frame.sparkSession.sparkContext, files, count, self._folder)


class _ShelvedFrame:
    """Writes what is made of a task's batches into one file; picklable."""

    def __init__(self, resend: Resend, folder: str) -> None:
        self._resend, self._folder = resend, folder

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        unburden()
        kept = shelved(self._resend(_task(), batches), self._folder)
        yield pa.RecordBatch.from_pydict({"kept": pa.array([pickle.dumps(kept)], pa.binary())})


class _InFiles:
    """Pieces in files that all workers map."""

    def __init__(self, context: Any, files: Sequence[Kept], count: int, folder: str) -> None:
        self._context, self._files, self._count, self._folder = context, files, count, folder

    def beside(self, other: _InFiles) -> _InFiles:
        files = [*self._files, *other._files]
        return _InFiles(self._context, files, self._count, self._folder)

    def sent(self, resend: Resend, count: int) -> _InFiles:
        made = self._places().mapPartitions(_Reshelved(resend, self._files, self._folder))
        return _InFiles(self._context, made.collect(), count, self._folder)

    def collected(self, receive: Receive) -> list[Any]:
        found: list[Any] = self._places().mapPartitions(Fetched(receive, self._files)).collect()
        return found

    def _places(self) -> Any:
        return self._context.parallelize(range(self._count), self._count)


class _Reshelved:
    """Writes what is made of a place's pieces into one file; picklable."""

    def __init__(self, resend: Resend, files: Sequence[Kept], folder: str) -> None:
        self._resend, self._files, self._folder = resend, files, folder

    def __call__(self, places: Iterator[int]) -> Iterator[Kept]:
        unburden()
        for place in places:
            yield shelved(self._resend(place, pieces_of(self._files, place)), self._folder)


@contextlib.contextmanager
def held_in_shuffle(_context: Any) -> Iterator[Callable[[DataFrame], Brought]]:
    """Spark's shuffle, whose files are read again as often as the pieces are asked for.

    What is lost with an executor Spark makes again, of the DataFrame in the end.
    """
    yield _FrameToShuffle


class _FrameToShuffle:
    """A DataFrame's rows, as batches of Arrow."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def sent(self, resend: Resend, count: int) -> Held:
        task = _FramedFrame(resend)
        rows = self._frame.mapInArrow(task, "place long, piece binary").rdd
        return _InShuffle.of(rows.mapPartitions(_FramedRows(), preservesPartitioning=True), count)


class _FramedFrame:
    """Rows of a place and a piece, as mapInArrow takes them; picklable."""

    def __init__(self, resend: Resend) -> None:
        self._resend = resend

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        unburden()
        for place, piece in self._resend(_task(), batches):
            data = pa.array([written(piece)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([place], pa.int64()), data], _ROW)


class _FramedRows:
    """What Java's side of a shuffle is written, of rows of a place and a piece."""

    def __call__(self, rows: Iterator[Any]) -> Iterator[bytes]:
        for place, piece in rows:
            yield struct.pack("!q", place)
            yield bytes(piece)


class _InShuffle:
    """Pieces in the files of a shuffle; ``pairs``: Java's, by place."""

    def __init__(self, context: Any, pairs: Any, count: int) -> None:
        self._context, self._pairs, self._count = context, pairs, count

    @classmethod
    def of(cls, framed: Any, count: int) -> _InShuffle:
        """``framed``: an RDD of places and pieces in turn, as bytes."""
        context = framed.context
        framed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
        pairs = context._jvm.PairwiseRDD(framed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
        # one id for all: Spark joins two by place only if it takes their partitioners for the same
        partitioner = context._jvm.PythonPartitioner(count, 0)  # noqa: SLF001
        return cls(context, pairs.partitionBy(partitioner), count)

    def beside(self, other: _InShuffle) -> _InShuffle:
        return _InShuffle(self._context, self._pairs.union(other._pairs), self._count)

    def sent(self, resend: Resend, count: int) -> _InShuffle:
        made = self._pieces().mapPartitionsWithIndex(resend)
        return _InShuffle.of(made.mapPartitions(Framed(iter), preservesPartitioning=True), count)

    def collected(self, receive: Receive) -> list[Any]:
        found: list[Any] = self._pieces().mapPartitionsWithIndex(receive).collect()
        return found

    def _pieces(self) -> Any:
        from pyspark import RDD  # noqa: PLC0415 (heavy)
        from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

        pieces = self._context._jvm.PythonRDD.valueOfPair(self._pairs)  # noqa: SLF001
        return RDD(pieces, self._context, NoOpSerializer())


def _task() -> int:
    from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    number: int = context.partitionId()
    return number
