"""What every use of a Spark cluster shares: this package on its workers, and why a job failed."""

from __future__ import annotations

import contextlib
import functools
import itertools
import shutil
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

import reconciler
from reconciler.cluster.shelves import Kept, Piece, Shelf, pieces_of
from reconciler.errors import ReconcilerError

#: no name that somebody would give ``--py-files``
_ARCHIVE: Final = "reconciler-of-the-driver.zip"
_ABORTED: Final = "Job aborted due to stage failure: "
_TRACEBACK: Final = "Traceback (most recent call last):"
_SHIPPING: Final = threading.Lock()
_REPORT_EVERY_S: Final = 0.5
#: Spark takes about four seconds to kill the Python of a task
_LOOKS_AT_THE_END: Final = 150
_LOOK_EVERY_S: Final = 0.1
_OF_A_JOB: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_JOBS: Final = itertools.count(1)


def ship(context: Any) -> None:
    """Send this package to a SparkContext's workers, once, unless they share our process's host."""
    if is_one_host(context):
        return
    with _SHIPPING:
        _ship(context)


def is_one_host(context: Any) -> bool:
    """Whether all workers share our process's host and its disks."""
    master = context.master
    return bool(master == "local" or master.startswith("local["))  # not local-cluster


def _ship(context: Any) -> None:
    from pyspark import SparkFiles  # noqa: PLC0415 (heavy)

    if any(url.endswith(f"/{_ARCHIVE}") for url in context.listFiles):
        return  # sent before in this session: Spark refuses a second file of the name
    package = Path(reconciler.__file__).parent
    # executors fetch it whenever they start, so it has to stay as long as the session does
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as folder:
        made = shutil.make_archive(
            f"{folder}/reconciler", "zip", root_dir=package.parent, base_dir=package.name
        )
        archive = Path(made).replace(Path(SparkFiles.getRootDirectory()) / _ARCHIVE)
    context.addPyFile(str(archive))


def why(message: str) -> str:
    r"""The line of Spark's message that says why a job failed; of a Python error, its last.

    >>> why("Job aborted due to stage failure: Task 0 failed\nDriver stacktrace:")
    'Task 0 failed'
    >>> why("Lost task 0.0: E: Traceback (most recent call last):\n  f\nOSError: no\n\n\tat x")
    'Lost task 0.0: OSError: no'
    """
    first, _, rest = message.strip().partition("\n")
    first = first.removeprefix(_ABORTED)
    if not first.endswith(_TRACEBACK):
        return first
    where = first.removesuffix(_TRACEBACK).rstrip(": ").rpartition(": ")[0]
    lines = [line for line in rest.partition("\n\n")[0].splitlines() if line[:1].strip()]
    return f"{where}: {lines[-1]}" if where and lines else first


@contextlib.contextmanager
def job(
    context: Any, described: str, hide: Callable[[str], str], *, alone: bool = False
) -> Iterator[None]:
    """A group for the jobs of the block; when it fails, its tasks have ended afterwards.

    ``alone``: so have overtaken attempts at them when it succeeds; Spark does not wait for those.
    What Spark says of a failure is raised as a ReconcilerError of one sentence, which ``hide`` has
    gone over.
    """
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped] # noqa: PLC0415

    before = {key: context.getLocalProperty(key) for key in _OF_A_JOB}
    group = f"reconciler-{next(_JOBS)}"
    context.setJobGroup(group, described)
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(Exception):  # Java itself may be gone
            _end(context, group)
        if (java := getattr(error, "java_exception", None)) is not None:
            raise ReconcilerError(hide(why(str(java.getMessage())))) from error
        if isinstance(error, ConnectionError | Py4JNetworkError):
            raise ReconcilerError("the Java process of Spark's driver has ended") from error
        raise
    else:
        if alone and context.getConf().get("spark.speculation", "false").lower() == "true":
            with contextlib.suppress(Exception):
                _end(context, group)
    finally:
        with contextlib.suppress(Exception):
            for key, value in before.items():
                context.setLocalProperty(key, value)


def _end(context: Any, group: str) -> None:
    """Cancel what is left of a group and wait until nothing of it runs, or for a while."""
    context.cancelJobGroup(group)
    tracker = context.statusTracker()
    for _ in range(_LOOKS_AT_THE_END):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        if not any(stage.numActiveTasks for stage in stages if stage):
            return
        time.sleep(_LOOK_EVERY_S)


@contextlib.contextmanager
def reporting(done: Any, progress: Callable[[int], None]) -> Iterator[None]:
    """Tell ``progress`` what the tasks have counted, while they run and once more at the end."""
    stopped = threading.Event()
    told = 0

    def tell() -> None:
        nonlocal told
        now = int(done.value)
        if now > told:
            progress(now - told)
            told = now

    def watch() -> None:
        while not stopped.wait(_REPORT_EVERY_S):
            tell()

    thread = threading.Thread(target=watch, name="reconciler-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        tell()


#: where a piece goes, from 0 on, and the piece
Sent = tuple[int, Piece]
#: what a task makes of its items, and what another makes of a place's pieces, in any order
Send = Callable[[Iterator[Any]], Iterator[Sent]]
Receive = Callable[[int, Iterator[Any]], Iterator[Any]]


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

    with _scratch(SparkFiles.getRootDirectory()) as folder:
        yield functools.partial(_by_files, folder)


def _by_files(above: str, source: Any, send: Send, count: int, receive: Receive) -> list[Any]:
    with _scratch(above) as folder:
        files: list[Kept] = source.mapPartitions(_Shelved(send, folder)).collect()
        places = source.context.parallelize(range(count), count)
        found: list[Any] = places.mapPartitions(_Fetched(receive, files)).collect()
        return found


@contextlib.contextmanager
def _scratch(above: str) -> Iterator[str]:
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
        with Shelf(self._folder) as shelf:
            for place, piece in self._send(items):
                shelf.put(place, piece)
            yield shelf.kept()


class _Fetched:
    """Hands a place's pieces on; picklable."""

    def __init__(self, receive: Receive, files: Sequence[Kept]) -> None:
        self._receive, self._files = receive, files

    def __call__(self, places: Iterator[int]) -> Iterator[Any]:
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
    keyed = source.mapPartitions(_Framed(send), preservesPartitioning=True)
    keyed._bypass_serializer = True  # noqa: SLF001 (as partitionBy does)
    pairs = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001
    partitioner = context._jvm.PythonPartitioner(count, id(send))  # noqa: SLF001
    sent = context._jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))  # noqa: SLF001
    pieces = RDD(sent, context, NoOpSerializer())
    found: list[Any] = pieces.mapPartitionsWithIndex(receive).collect()
    return found


class _Framed:
    """What Java's side of a shuffle is written: the place, then the bytes; picklable."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def __call__(self, items: Iterator[Any]) -> Iterator[bytes]:
        for place, piece in self._send(items):
            sink = pa.BufferOutputStream()
            piece.write(sink, compressed=True)
            yield struct.pack("!q", place)
            yield sink.getvalue().to_pybytes()
